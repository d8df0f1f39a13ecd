"""Compare llama.cpp with PyTorch on unseen conversations: `python -m nano.check --out nano/out MODEL.gguf`.

For an f32 file the two must agree in every argmax; for q8_0 the weights differ, and the share is reported.
"""

import argparse
import random
from pathlib import Path

import numpy as np
import torch
from llama_cpp import llama_cpp as c

from nano.batches import Corpus
from nano.export import load_model
from nano.prefix import prefix_pieces
from nano.tokenizer import Encoder

UBATCH = 512


def llama_logits(path: Path, ids: list[int]) -> np.ndarray:
    """Logits [n, vocab] of llama.cpp for every position of `ids`."""
    c.llama_log_set(_SILENT, None)
    c.llama_backend_init()
    settings = c.llama_model_default_params()
    settings.n_gpu_layers = 0
    model = c.llama_model_load_from_file(str(path).encode(), settings)
    if not model:
        raise SystemExit(f"llama.cpp cannot load {path}.")
    options = c.llama_context_default_params()
    options.n_ctx, options.n_batch, options.n_ubatch = len(ids) + UBATCH, UBATCH, UBATCH
    context = c.llama_init_from_model(model, options)
    width = c.llama_vocab_n_tokens(c.llama_model_get_vocab(model))
    batch = c.llama_batch_init(UBATCH, 0, 1)
    rows: list[np.ndarray] = []
    for start in range(0, len(ids), UBATCH):
        part = ids[start : start + UBATCH]
        batch.n_tokens = len(part)
        for offset, token in enumerate(part):
            batch.token[offset], batch.pos[offset], batch.logits[offset] = token, start + offset, 1
            batch.n_seq_id[offset], batch.seq_id[offset][0] = 1, 0
        if c.llama_decode(context, batch) != 0:
            raise SystemExit("llama.cpp could not decode the conversation.")
        rows.append(np.ctypeslib.as_array(c.llama_get_logits(context), shape=(len(part), width)).copy())
    c.llama_batch_free(batch)
    c.llama_free(context)
    c.llama_model_free(model)
    return np.concatenate(rows)


@c.llama_log_callback
def _SILENT(_level: int, _text: bytes, _data: object) -> None:
    """llama.cpp's own words are not wanted here."""


def main() -> None:
    """Print the agreement."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--out", type=Path, default=Path("nano/out"))
    parser.add_argument("--held-out", type=Path, default=Path("nano/out/held-out"))
    parser.add_argument("--conversations", type=int, default=10)
    options = parser.parse_args()
    encoder = Encoder(options.out / "tokenizer.json")
    pieces = [{"marker": p.value} if hasattr(p, "value") else p for p in prefix_pieces("low")]
    prefix = encoder.encode(pieces)
    corpus = Corpus(sorted(options.held_out.glob("*.jsonl")), encoder, longest=2400)
    model = load_model(options.out / "checkpoint.pt")
    worst, same, total = 0.0, 0, 0
    for sample in random.Random(0).sample(corpus.samples, options.conversations):
        theirs = llama_logits(options.model, prefix + sample.ids.tolist())[len(prefix) :]
        with torch.no_grad():
            hidden, _ = model.hidden(
                model.remembered(torch.tensor(prefix)), torch.from_numpy(sample.ids.astype(np.int64))[None]
            )
            ours = model.logits(hidden[0]).numpy()
        worst = max(worst, float(np.abs(ours - theirs).max()))
        same += int((ours.argmax(1) == theirs.argmax(1)).sum())
        total += len(ours)
    print(
        f"{options.model}: {same} of {total} argmaxes equal ({same / total:.4%}), "
        f"largest logit difference {worst:.4f}"
    )


if __name__ == "__main__":
    main()
