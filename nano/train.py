"""Train the demonstration model: `python -m nano.train --corpus nano/out --out nano/out --minutes 60`.

Runs in the background, writes a checkpoint every few minutes and goes on from it when started again. The
learning rate is held, then falls to zero over the last part of the budget (`--minutes`, all runs together).
"""

import argparse
import itertools
import random
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.chat_format import Marker
from engine.messages import STRENGTHS, Strength
from nano.batches import FOREIGN, Batch, Corpus
from nano.model import Glimmer, Layer, Shape
from nano.optimizer import Muon
from nano.prefix import prefix_pieces
from nano.restore import restore_model, restore_tokenizer
from nano.tokenizer import PAD, Encoder, plain_texts, train

VOCABULARY = 2048
SAVE_SECONDS = 240.0
LONGEST = 2400
"""Tokens of the longest conversation that is trained on."""
FOREIGN_SHARE = 0.2
"""The share of read tokens whose loss is computed; the head is a tenth of the work."""
SHORT_PREFIX = 256
"""Tokens of the system block that most batches see; attention to all of it costs as much as all the rest."""
FULL_SHARE, FULL_FROM = 0.12, 0.75
"""The share of batches that see the whole block, and the part of the budget from which on all do."""


def loss_of(model: Glimmer, prefix: Tensor, batch: Batch) -> Tensor:
    """Weighted cross-entropy of the next token, in nats."""
    hidden, _ = model.hidden(model.remembered(prefix), batch.ids[:, :-1])
    weights = batch.weights[:, 1:]
    wanted = (weights > FOREIGN) | ((weights > 0) & (torch.rand_like(weights) < FOREIGN_SHARE))
    weights, targets = weights[wanted], batch.ids[:, 1:][wanted]
    losses = F.cross_entropy(model.logits(hidden[wanted]), targets, reduction="none")
    return (losses * weights).sum() / weights.sum()


@torch.no_grad()
def scores(model: Glimmer, prefix: Tensor, batches: list[Batch]) -> str:
    """Token accuracy, and the share of assistant messages right to the last token, teacher-forced."""
    right = total = whole = messages = 0
    for batch in batches:
        hidden, _ = model.hidden(model.remembered(prefix), batch.ids[:, :-1])
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


@dataclass
class Progress:
    """How far training is: seconds spent, steps, tokens seen, passes."""

    spent: float = 0.0
    step: int = 0
    seen: int = 0
    passes: int = 0


class Training:
    """The model with its optimizers, going on from the checkpoint in `folder` if there is one."""

    def __init__(self, folder: Path, encoder: Encoder) -> None:
        self.shape = Shape(vocab=encoder.size)
        self.model = Glimmer(self.shape)
        self.optimizers = optimizers(self.model)
        self.progress = Progress()
        self.prefixes = {strength: torch.tensor(encoder.encode(_stored(strength))) for strength in STRENGTHS}
        self._place = folder / "checkpoint.pt"
        if self._place.exists():
            self._load()

    def step(self, batch: Batch, progress: float, rng: random.Random) -> float:
        """One update; `progress` is the part of the budget that is spent. Returns the loss."""
        self._set_rate(rate(progress, self.progress.step))
        prefix = self.prefixes["low" if rng.random() < 0.7 else rng.choice(STRENGTHS[1:])]
        if progress <= FULL_FROM and rng.random() >= FULL_SHARE:
            prefix = prefix[-SHORT_PREFIX:]
        loss = loss_of(self.model, prefix, batch)
        loss.backward()
        self._update()
        self.progress.step += 1
        self.progress.seen += batch.ids.numel()
        return loss.item()

    def _set_rate(self, factor: float) -> None:
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = group["base"] * factor

    def _update(self) -> None:
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad()

    def save(self) -> None:
        """Write the checkpoint, whole or not at all."""
        state = {
            "model": self.model.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
            "shape": asdict(self.shape),
            **asdict(self.progress),
        }
        torch.save(state, self._place.with_suffix(".new"))
        self._place.with_suffix(".new").rename(self._place)

    def _load(self) -> None:
        state = torch.load(self._place, weights_only=True)
        self.model.load_state_dict(state["model"])
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        self.progress = Progress(**{name: state[name] for name in asdict(self.progress) if name in state})


def _stored(strength: Strength) -> list[object]:
    return [{"marker": p.value} if isinstance(p, Marker) else p for p in prefix_pieces(strength)]


def fuse() -> None:
    """Compile the small operations around attention into few; takes a minute at the first steps."""
    torch._dynamo.config.cache_size_limit = 64
    Layer.project = torch.compile(Layer.project, dynamic=True)
    Layer.finish = torch.compile(Layer.finish, dynamic=True)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, default=Path("nano/out"))
    parser.add_argument("--held-out", type=Path, default=Path("nano/out/held-out"))
    parser.add_argument("--out", type=Path, default=Path("nano/out"))
    parser.add_argument("--start", type=Path, help="a GGUF of the same recipe to begin from")
    parser.add_argument("--minutes", type=float, default=80.0)
    parser.add_argument("--tokens", type=int, default=4500, help="tokens a batch")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--compile", action="store_true", help="fuse small operations; a minute to start")
    return parser.parse_args()


def main() -> None:
    """Train within the budget."""
    options = arguments()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    if options.compile:
        fuse()
    options.out.mkdir(parents=True, exist_ok=True)
    shards = sorted(options.corpus.glob("corpus-*.jsonl"))
    if options.start and not (options.out / "tokenizer.json").exists():
        restore_tokenizer(options.start).save(str(options.out / "tokenizer.json"))
    encoder = build_tokenizer(shards, options.out / "tokenizer.json")
    pad = encoder.specials[PAD]
    corpus = Corpus(shards, encoder, LONGEST)
    held_out = Corpus(sorted(options.held_out.glob("*.jsonl")), encoder, LONGEST)
    check = list(itertools.islice(held_out.epoch(random.Random(1), 12_000, pad), 6))
    training = Training(options.out, encoder)
    if options.start and not training.progress.step:
        training.model.load_state_dict(restore_model(options.start).state_dict())
    parameters = sum(p.numel() for p in training.model.parameters())
    print(f"{parameters / 1e6:.2f} M parameters, {len(corpus.samples)} conversations", flush=True)
    run(training, corpus, check, options, pad)
    progress = training.progress
    print(f"done: {progress}; {scores(training.model, training.prefixes['low'], check)}", flush=True)


def run(
    training: Training, corpus: Corpus, check: list[Batch], options: argparse.Namespace, pad: int
) -> None:
    """Step until the budget is spent, with a checkpoint every few minutes and at the end."""
    progress, budget = training.progress, options.minutes * 60
    rng = random.Random(100 + progress.step)
    clock, before, last_save = time.monotonic(), progress.spent, time.monotonic()
    while progress.spent < budget:
        corpus.refresh()
        progress.passes += 1
        for batch in corpus.epoch(rng, options.tokens, pad):
            loss = training.step(batch, progress.spent / budget, rng)
            progress.spent = before + time.monotonic() - clock
            if progress.step % 20 == 0:
                minutes, millions = progress.spent / 60, progress.seen / 1e6
                print(
                    f"step {progress.step} {minutes:.1f} min {millions:.2f} M tokens loss {loss:.4f}",
                    flush=True,
                )
            if progress.step % 100 == 0:
                print(f"  {scores(training.model, training.prefixes['low'], check)}", flush=True)
            if time.monotonic() - last_save > SAVE_SECONDS:
                training.save()
                last_save = time.monotonic()
            if progress.spent >= budget:
                break
    training.save()


if __name__ == "__main__":
    main()
