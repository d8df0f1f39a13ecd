"""Train the demonstration model: `python -m nano.train --corpus nano/out --out nano/out --minutes 60`.

Runs in the background, writes a checkpoint every few minutes and goes on from it when started again. The
learning rate is held, then falls to zero over the last part of the budget (`--minutes`, of all runs together).
"""

import argparse
import itertools
import random
import time
from dataclasses import asdict
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.messages import STRENGTHS, Strength
from nano.batches import Batch, Corpus
from nano.model import Glimmer, Shape
from nano.optimizer import Muon
from nano.prefix import prefix_pieces
from nano.tokenizer import PAD, Encoder, plain_texts, train

VOCABULARY = 2048
SAVE_SECONDS = 240.0
SHORT_PREFIX = 256
"""Tokens of the system block that most batches see; attention to the whole of it costs as much as all the rest."""
FULL_SHARE, FULL_FROM = 0.12, 0.75
"""The share of batches that see the whole block, and the part of the budget from which on all do."""


def loss_of(model: Glimmer, prefix: Tensor, batch: Batch) -> Tensor:
    """Weighted cross-entropy of the next token, in nats."""
    hidden, _ = model.hidden(prefix, batch.ids[:, :-1])
    weights = batch.weights[:, 1:]
    wanted = weights > 0
    logits = model.logits(hidden[wanted])
    losses = F.cross_entropy(logits, batch.ids[:, 1:][wanted], reduction="none")
    return (losses * weights[wanted]).sum() / weights.sum()


@torch.no_grad()
def scores(model: Glimmer, prefix: Tensor, batches: list[Batch]) -> str:
    """Token accuracy, and the share of assistant messages that are right to the last token, teacher-forced."""
    right = total = whole = messages = 0
    for batch in batches:
        hidden, _ = model.hidden(prefix, batch.ids[:, :-1])
        turn = batch.turn[:, 1:]
        written = turn >= 0
        hit = model.logits(hidden[written]).argmax(-1) == batch.ids[:, 1:][written]
        right, total = right + int(hit.sum()), total + hit.numel()
        rows = torch.arange(len(turn))[:, None].expand_as(turn)[written]
        keys, inverse = torch.unique(rows * 1000 + turn[written], return_inverse=True)
        misses = torch.zeros(len(keys)).index_add_(0, inverse, (~hit).float())
        whole, messages = whole + int((misses == 0).sum()), messages + len(keys)
    return f"token accuracy {right / total:.4f}, messages right {whole / messages:.4f}"


def rate(progress: float, step: int) -> float:
    """Learning-rate factor: a short warm-up, held, then linear to zero over the last 45 %."""
    return min(1.0, (step + 1) / 40) * min(1.0, max(0.0, (1 - progress) / 0.45))


def optimizers(model: Glimmer) -> list[torch.optim.Optimizer]:
    """Muon for the layers' matrices, AdamW for embedding, head and gains."""
    matrices = [p for p in model.layers.parameters() if p.ndim == 2]
    gains = [p for p in model.parameters() if p.ndim == 1]
    adam = torch.optim.AdamW(
        [
            {"params": [model.embedding.weight], "lr": 0.02},
            {"params": [model.head.weight], "lr": 0.008},
            {"params": gains, "lr": 0.004},
        ],
        betas=(0.9, 0.95),
        weight_decay=0.0,
    )
    made: list[torch.optim.Optimizer] = [Muon(matrices, lr=0.02, decay=0.02), adam]
    for optimizer in made:
        for group in optimizer.param_groups:
            group["base"] = group["lr"]
    return made


def build_tokenizer(shards: list[Path], place: Path) -> Encoder:
    """Load the tokenizer, or train it on the first part of the corpus and the system block."""
    if not place.exists():
        lines = list(
            itertools.islice(itertools.chain.from_iterable(p.open(encoding="utf-8") for p in shards), 3000)
        )
        system = [piece for piece in prefix_pieces("low") if isinstance(piece, str)]
        train(itertools.chain(plain_texts(lines), system * 4000), VOCABULARY).save(str(place))
    return Encoder(place)


def main() -> None:
    """Train within the budget."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, default=Path("nano/out"))
    parser.add_argument("--held-out", type=Path, default=Path("nano/out/held-out"))
    parser.add_argument("--out", type=Path, default=Path("nano/out"))
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--tokens", type=int, default=6000, help="tokens a batch")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    options.out.mkdir(parents=True, exist_ok=True)
    shards = sorted(options.corpus.glob("corpus-*.jsonl"))
    encoder = build_tokenizer(shards, options.out / "tokenizer.json")
    marked: dict[Strength, Tensor] = {}
    for strength in STRENGTHS:
        pieces = [{"marker": p.value} if hasattr(p, "value") else p for p in prefix_pieces(strength)]
        marked[strength] = torch.tensor(encoder.encode(pieces))
    corpus = Corpus(shards, encoder, longest=2400)
    held_out = Corpus(sorted(options.held_out.glob("*.jsonl")), encoder, longest=2400)
    pad = encoder.specials[PAD]
    check = list(itertools.islice(held_out.epoch(random.Random(1), 12_000, pad), 6))
    shape = Shape(vocab=encoder.size)
    model = Glimmer(shape)
    made = optimizers(model)
    place = options.out / "checkpoint.pt"
    spent, step, seen, passes = 0.0, 0, 0, 0
    if place.exists():
        state = torch.load(place, weights_only=True)
        model.load_state_dict(state["model"])
        for optimizer, saved in zip(made, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        spent, step, seen, passes = state["spent"], state["step"], state["seen"], state["passes"]
    parameters = sum(p.numel() for p in model.parameters())
    mean = sum(len(s.ids) for s in corpus.samples) / len(corpus.samples)
    print(
        f"{parameters / 1e6:.2f} M parameters, prefix {len(marked['low'])} tokens, {len(corpus.samples)} samples of {mean:.0f}",
        flush=True,
    )

    def save() -> None:
        state = {
            "model": model.state_dict(),
            "optimizers": [o.state_dict() for o in made],
            "shape": asdict(shape),
            "spent": spent,
            "step": step,
            "seen": seen,
            "passes": passes,
        }
        torch.save(state, place.with_suffix(".new"))
        place.with_suffix(".new").rename(place)

    budget, last_save, rng = options.minutes * 60, time.monotonic(), random.Random(100 + step)
    clock, before = time.monotonic(), spent
    while spent < budget:
        corpus.refresh()
        passes += 1
        for batch in corpus.epoch(rng, options.tokens, pad):
            factor = rate(spent / budget, step)
            for optimizer in made:
                for group in optimizer.param_groups:
                    group["lr"] = group["base"] * factor
            strength: Strength = "low" if rng.random() < 0.7 else rng.choice(STRENGTHS[1:])
            whole = spent / budget > FULL_FROM or rng.random() < FULL_SHARE
            prefix = marked[strength] if whole else marked[strength][-SHORT_PREFIX:]
            loss = loss_of(model, prefix, batch)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            for optimizer in made:
                optimizer.step()
                optimizer.zero_grad()
            step, seen = step + 1, seen + batch.ids.numel()
            spent = before + time.monotonic() - clock
            if step % 20 == 0:
                print(
                    f"step {step} {spent / 60:.1f} min {seen / 1e6:.2f} M tokens loss {loss.item():.4f}",
                    flush=True,
                )
            if step % 100 == 0:
                print(
                    f"  {scores(model, marked['low'], check)} (pass {passes}, {len(corpus.samples)} samples)",
                    flush=True,
                )
            if time.monotonic() - last_save > SAVE_SECONDS:
                save()
                last_save = time.monotonic()
            if spent >= budget:
                break
    save()
    print(
        f"done: {step} steps, {seen / 1e6:.2f} M tokens, {passes} passes; {scores(model, marked['low'], check)}",
        flush=True,
    )


if __name__ == "__main__":
    main()
