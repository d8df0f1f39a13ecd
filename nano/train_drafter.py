"""Train the drafter of the demonstration model: `python -m nano.train_drafter --minutes 15`.

The target is read from its GGUF and stays as it is. From each conversation some blocks are drawn at places
where the model writes; the loss of a position falls with its distance from the block's beginning, since one
wrong token makes all later ones worthless.
"""

import argparse
import itertools
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from engine.chat_format import Marker
from nano.batches import Corpus, Sample
from nano.drafter import Drafter, DraftShape
from nano.optimizer import Muon
from nano.prefix import prefix_pieces
from nano.restore import restore_model, restore_tokenizer
from nano.tokenizer import MASK, Encoder

DECAY = 7.0
"""Positions over which the loss weight falls to 1/e, for a block of 16 (the paper's value)."""
BLOCKS = 48
"""Blocks drawn from one conversation."""
LONGEST = 2000
SAVE_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Blocks:
    """Blocks of one conversation: what the drafter sees and what it must say.

    features [T, taps * width], anchors [N] (positions), first [N] (the anchors' tokens), labels [N, block-1]
    and `counts` [N, block-1]: whether a label is a token that the model itself writes.
    """

    features: Tensor
    anchors: Tensor
    first: Tensor
    labels: Tensor
    counts: Tensor


class Source:
    """Turns conversations into blocks with the target's features."""

    def __init__(self, model: Path, shape: DraftShape, encoder: Encoder) -> None:
        self.target = restore_model(model).eval().requires_grad_(False)
        self.shape = shape
        pieces = [{"marker": p.value} if isinstance(p, Marker) else p for p in prefix_pieces("low")]
        self.prefix = encoder.encode(pieces)
        """Ids of the system block that every conversation begins with."""
        prefix = torch.tensor(self.prefix)
        with torch.no_grad():
            first = self.target.remembered(prefix[:1])
            _, tapped = self.target.hidden(first, prefix[None, 1:], shape.taps)
        self._ahead = torch.cat(tapped, -1)[0, -shape.window :]
        self.ahead = len(self._ahead)
        """How many positions of the system block the blocks' positions count."""
        self._remembered = self.target.remembered(prefix)

    def blocks(self, sample: Sample, rng: random.Random) -> Blocks | None:
        """Blocks at random places where the model writes; None where there is no room for one."""
        size = self.shape.block
        ids = torch.from_numpy(sample.ids.astype(np.int64))
        written = torch.from_numpy(sample.turn >= 0)
        places = [p for p in range(1, len(ids) - size) if bool(written[p + 1])]
        if not places:
            return None
        at = torch.tensor(sorted(rng.sample(places, min(BLOCKS, len(places)))))
        with torch.no_grad():
            _, tapped = self.target.hidden(self._remembered, ids[None], self.shape.taps)
        features = torch.cat((self._ahead, torch.cat(tapped, -1)[0]))
        next_ones = at[:, None] + torch.arange(1, size)
        counts = written[next_ones].long().cumprod(1).bool()
        return Blocks(features, at + len(self._ahead), ids[at], ids[next_ones], counts)


def predict(drafter: Drafter, source: Source, blocks: Blocks, mask: int) -> Tensor:
    """Logits [N, block-1, vocab] for the masks of the blocks."""
    tokens = torch.full((len(blocks.first), drafter.shape.block), mask)
    tokens[:, 0] = blocks.first
    embedded = source.target.embedding(tokens)
    return source.target.logits(drafter(blocks.features, embedded, blocks.anchors)[:, 1:])


def loss_of(logits: Tensor, blocks: Blocks) -> Tensor:
    """Cross-entropy in nats, weighted by exp(-position / DECAY)."""
    weights = torch.exp(-torch.arange(logits.shape[1]) / DECAY) * blocks.counts
    losses = F.cross_entropy(logits.flatten(0, 1), blocks.labels.flatten(), reduction="none")
    return (losses.view_as(weights) * weights).sum() / weights.sum()


@torch.no_grad()
def accepted(drafter: Drafter, source: Source, samples: list[Sample], mask: int) -> list[float]:
    """For each position of the block, the share of blocks whose tokens are right up to there."""
    rng = random.Random(1)
    rows: list[Tensor] = []
    for sample in samples:
        blocks = source.blocks(sample, rng)
        if blocks is not None:
            right = predict(drafter, source, blocks, mask).argmax(-1) == blocks.labels
            rows.append((right & blocks.counts).long().cumprod(1))
    return torch.cat(rows).float().mean(0).tolist()


def optimizers(drafter: Drafter) -> list[torch.optim.Optimizer]:
    """Muon for the matrices, AdamW for the gains."""
    matrices = [p for p in drafter.parameters() if p.ndim == 2]
    gains = [p for p in drafter.parameters() if p.ndim == 1]
    made: list[torch.optim.Optimizer] = [
        Muon(matrices, lr=0.02, decay=0.02),
        torch.optim.AdamW(gains, lr=0.004, weight_decay=0.0),
    ]
    for optimizer in made:
        for group in optimizer.param_groups:
            group["base"] = group["lr"]
    return made


def endless(corpus: Corpus, rng: random.Random) -> Iterator[Sample]:
    """The corpus over and over, in another order each time."""
    while True:
        yield from rng.sample(corpus.samples, len(corpus.samples))


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, default=Path("glimmer_tui/models/glimmer-nano.gguf"))
    parser.add_argument("--corpus", type=Path, default=Path("nano/out"))
    parser.add_argument("--held-out", type=Path, default=Path("nano/out/held-out"))
    parser.add_argument("--out", type=Path, default=Path("nano/out"))
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("--accumulate", type=int, default=3, help="conversations a step")
    return parser.parse_args()


def main() -> None:
    """Train for the given time, from the checkpoint if there is one."""
    options = arguments()
    torch.set_num_threads(2)
    torch.manual_seed(1)
    options.out.mkdir(parents=True, exist_ok=True)
    place = options.out / "drafter.pt"
    tokenizer = options.out / "tokenizer.json"
    if not tokenizer.exists():
        restore_tokenizer(options.model).save(str(tokenizer))
    encoder = Encoder(tokenizer)
    mask = encoder.specials[MASK]
    corpus = Corpus(sorted(options.corpus.glob("corpus-*.jsonl")), encoder, LONGEST)
    held_out = Corpus(sorted(options.held_out.glob("*.jsonl")), encoder, LONGEST).samples[:24]
    shape = DraftShape(restore_model(options.model).shape)
    source = Source(options.model, shape, encoder)
    drafter = Drafter(shape)
    if place.exists():
        drafter.load_state_dict(torch.load(place, weights_only=True))
    train(drafter, source, corpus, held_out, options, mask)
    torch.save(drafter.state_dict(), place)
    shares = accepted(drafter, source, held_out, mask)
    print("accepted by position:", " ".join(f"{share:.3f}" for share in shares))
    print(f"accepted a block: {sum(shares):.2f} of {shape.block - 1}")


def train(
    drafter: Drafter,
    source: Source,
    corpus: Corpus,
    held_out: list[Sample],
    options: argparse.Namespace,
    mask: int,
) -> None:
    """Step until the time is over; the learning rate falls to zero over all of it."""
    steppers, rng = optimizers(drafter), random.Random(5)
    samples = endless(corpus, rng)
    start = last_save = time.monotonic()
    budget = options.minutes * 60
    for step in itertools.count(1):
        spent = time.monotonic() - start
        if spent >= budget:
            return
        factor = min(1.0, step / 30) * max(0.0, 1 - spent / budget)
        for optimizer in steppers:
            for group in optimizer.param_groups:
                group["lr"] = group["base"] * factor
        total = 0.0
        for sample in itertools.islice(samples, options.accumulate):
            blocks = source.blocks(sample, rng)
            if blocks is None:
                continue
            loss = loss_of(predict(drafter, source, blocks, mask), blocks) / options.accumulate
            loss.backward()
            total += loss.item()
        torch.nn.utils.clip_grad_norm_(drafter.parameters(), 1.0)
        for optimizer in steppers:
            optimizer.step()
            optimizer.zero_grad()
        if step % 100 == 0:
            shares = accepted(drafter, source, held_out, mask)
            print(f"step {step} {spent / 60:.1f} min loss {total:.3f} accepted {sum(shares):.2f}", flush=True)
        if time.monotonic() - last_save > SAVE_SECONDS:
            torch.save(drafter.state_dict(), options.out / "drafter.pt")
            last_save = time.monotonic()


if __name__ == "__main__":
    main()
