"""Compare llama.cpp's drafts with PyTorch's: `python -m nano.check_drafter --out nano/out`.

Unseen conversations are read by the engine, which drafts at places where the model writes; PyTorch drafts at
the same places. Both see q8_0 weights in the GGUF and the trained ones in PyTorch, so a few near ties differ.
"""

import argparse
import random
from pathlib import Path

import torch

from engine.errors import EngineError
from engine.loading import EngineOptions, load
from nano.batches import Corpus, Sample
from nano.drafter import Drafter, DraftShape
from nano.restore import restore_model
from nano.tokenizer import MASK, Encoder
from nano.train_drafter import LONGEST, Blocks, Source, predict

CONTEXT = 8192


def engine_drafts(
    options: EngineOptions, model: Path, prefix: list[int], found: list[tuple[Sample, Blocks]], ahead: int
) -> list[list[int]]:
    """What the engine drafts at each block's anchor; `ahead` is how far PyTorch's positions begin early."""
    loaded = load(model, options)
    cache, drafts = loaded.cache, []
    if cache.drafter is None:
        raise SystemExit("\n".join(loaded.capabilities.notices) or "There is no drafter.")
    for sample, blocks in found:
        ids = prefix + sample.ids.tolist()
        cache.clear()
        end = 0
        for anchor in blocks.anchors.tolist():
            position = anchor - ahead + len(prefix)
            while end < position:
                part = ids[end : min(position, end + cache.batch_size)]
                cache.read(part, end)
                end += len(part)
            drafts.append(list(cache.draft(ids[position], position, blocks.labels.shape[1]).tokens))
    loaded.close()
    return drafts


def main() -> None:
    """Print the agreement."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, default=Path("glimmer_tui/models/glimmer-nano.gguf"))
    parser.add_argument("--drafter", type=Path, default=Path("glimmer_tui/models/dflash-glimmer-nano.gguf"))
    parser.add_argument("--out", type=Path, default=Path("nano/out"))
    parser.add_argument("--held-out", type=Path, default=Path("nano/out/held-out"))
    parser.add_argument("--conversations", type=int, default=10)
    options = parser.parse_args()
    encoder = Encoder(options.out / "tokenizer.json")
    shape = DraftShape(restore_model(options.model).shape)
    source = Source(options.model, shape, encoder)
    drafter = Drafter(shape)
    drafter.load_state_dict(torch.load(options.out / "drafter.pt", weights_only=True))
    samples = Corpus(sorted(options.held_out.glob("*.jsonl")), encoder, LONGEST).samples
    rng = random.Random(0)
    drawn = [(s, source.blocks(s, rng)) for s in rng.sample(samples, options.conversations)]
    found = [(sample, blocks) for sample, blocks in drawn if blocks is not None]
    with torch.no_grad():
        ours = [
            row
            for _, blocks in found
            for row in predict(drafter, source, blocks, encoder.specials[MASK]).argmax(-1).tolist()
        ]
    settings = EngineOptions(CONTEXT, drafter=options.drafter)
    try:
        theirs = engine_drafts(settings, options.model, source.prefix, found, source.ahead)
    except EngineError as error:
        raise SystemExit(str(error)) from None
    pairs = [(a, b) for one, other in zip(ours, theirs, strict=True) for a, b in zip(one, other, strict=True)]
    same = sum(a == b for a, b in pairs)
    print(f"{options.drafter}: {same} of {len(pairs)} drafted tokens equal ({same / len(pairs):.2%})")


if __name__ == "__main__":
    main()
