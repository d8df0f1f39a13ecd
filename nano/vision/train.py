"""Train the encoder on two CPU cores: `python -m nano.vision.train --minutes 60 --out DIR --fonts DIR`.

It learns to say a failing test's line in the language model's own vectors: every cell of a picture is held
against the (normed) embedding table and the two vectors beside it, by cosine. The language model itself takes
no part. Early blocks are also asked for the characters they see; that head is not exported.

Pictures grow while it learns: first strips with little but the failing line, at the end whole screens.
Training goes on from the checkpoint in the folder; `--stop` ends one run earlier than the budget does.
"""

import argparse
import random
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nano.model import rms_norm
from nano.optimizer import Muon
from nano.restore import restore_model, restore_tokenizer
from nano.tokenizer import Encoder
from nano.vision.drawing import FIRST, LAST
from nano.vision.encoder import Eye, EyeShape
from nano.vision.samples import Painter, Pictures
from nano.vision.transcript import BLANK

PATCHES = 4800
"""Patches a step, whatever the size of its pictures."""
BLANK_WEIGHT, SPACE_WEIGHT, EARLY_WEIGHT, CLOSE_WEIGHT = 0.08, 0.15, 0.5, 1.0
MIDDLE_WEIGHT = 0.5
SAVE_SECONDS = 120.0
WIDE = (20, 22, 24, 26, 26, 26, 28)


class Reader(nn.Module):
    """The encoder with what is needed to teach it: a table of vectors [vocabulary + 2, out], the last two
    `MARK` and `BLANK`, and a head for characters."""

    def __init__(self, shape: EyeShape, table: Tensor) -> None:
        super().__init__()
        self.eye = Eye(shape)
        self.register_buffer("table", F.normalize(table, dim=-1))
        self.sharpness = nn.Parameter(torch.tensor(12.0))
        self.characters = nn.Linear(shape.width, 2 * (LAST - FIRST + 1))
        self.tokens = nn.Linear(shape.width, len(table))

    def forward(self, pixels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Scores of every vector of the table for every cell, of characters for every patch and half, and the
        patches that tokens are asked of."""
        vectors, (early, middle) = self.eye(pixels)
        scores = F.normalize(vectors, dim=-1) @ self.table.T * self.sharpness
        return scores, self.characters(early).unflatten(-1, (2, -1)), middle


def loss_of(reader: Reader, pictures: Pictures) -> tuple[Tensor, tuple[float, float, float]]:
    """The loss; the shares of cells with text and of characters that are right, and the loss of tokens where
    they stand."""
    scores, characters, middle = reader(pictures.pixels)
    cells = pictures.cells.flatten() % scores.shape[-1]
    text = pictures.cells.flatten() != BLANK
    weights = torch.where(text, 1.0, BLANK_WEIGHT)
    losses = F.cross_entropy(scores.flatten(0, 1), cells, reduction="none")
    late = (losses * weights).sum() / weights.sum()
    near = scores.flatten(0, 1).gather(1, cells[:, None])[:, 0] / reader.sharpness
    late = late + CLOSE_WEIGHT * ((1 - near) * weights).sum() / weights.sum()
    wanted, found = pictures.characters.flatten(), characters.flatten(0, 2)
    inked = wanted != 0
    weights = torch.where(inked, 1.0, SPACE_WEIGHT)
    early = (F.cross_entropy(found, wanted, reduction="none") * weights).sum() / weights.sum()
    right = (scores.flatten(0, 1).argmax(-1) == cells)[text].float().mean().item()
    read = (found.argmax(-1) == wanted)[inked].float().mean().item()
    named = pictures.tokens.flatten() != BLANK
    here = F.cross_entropy(reader.tokens(middle.flatten(0, 1)[named]), pictures.tokens.flatten()[named])
    return late + EARLY_WEIGHT * early + MIDDLE_WEIGHT * here, (right, read, here.item())


def grid_at(progress: float, rng: random.Random) -> tuple[int, int]:
    """Rows and columns of a step's pictures; they grow with the part of the budget that is spent."""
    columns = rng.choice(WIDE)
    draw = rng.random()
    if progress < 0.62:
        return (1 if draw < 0.75 else 2), columns
    if progress < 0.8:
        return rng.choice((1, 1, 2, 3, 4)), columns
    if draw < 0.6:
        return rng.choice((1, 2, 3, 5)), columns
    return rng.choice((8, 10, 12, 14, 16)), columns


def rate(progress: float, step: int) -> float:
    """Learning-rate factor: a short warm-up, held, then linear to zero over the last half."""
    return min(1.0, (step + 1) / 50) * min(1.0, max(0.0, (1 - progress) / 0.5))


def table_with(model: Path, marks: Path) -> Tensor:
    """The normed vectors of the vocabulary of a language model, and the two beside it."""
    language = restore_model(model)
    table = rms_norm(language.embedding.weight.detach(), None, language.shape.eps)
    return torch.cat((table, torch.load(marks, weights_only=True)))


def encoder_of(model: Path, folder: Path) -> Encoder:
    """The tokenizer inside a language model's file."""
    place = folder / "tokenizer.json"
    if not place.exists():
        restore_tokenizer(model).save(str(place))
    return Encoder(place)


@dataclass
class Progress:
    """How far training is: seconds of work, steps, pictures seen."""

    spent: float = 0.0
    step: int = 0
    seen: int = 0


class Training:
    """The reader with its optimizers, going on from the checkpoint in `folder` if there is one."""

    def __init__(self, folder: Path, shape: EyeShape, table: Tensor) -> None:
        self._place = folder / "eye.pt"
        self.reader = Reader(shape, table)
        blocks = [p for p in self.reader.eye.blocks.parameters() if p.ndim == 2]
        adapter = [p for p in self.reader.eye.mm.parameters()]
        inside = {id(p) for p in (*blocks, *adapter, *self.reader.tokens.parameters())}
        rest = [p for p in self.reader.parameters() if id(p) not in inside]
        adam = torch.optim.AdamW(rest, lr=0.002, betas=(0.9, 0.98), weight_decay=0.0)
        tokens = torch.optim.AdamW(self.reader.tokens.parameters(), lr=0.004, betas=(0.9, 0.98))
        self.optimizers = [Muon([*blocks, *adapter], lr=0.02, decay=0.02), adam, tokens]
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["base"] = group["lr"]
        self.progress = Progress()
        if self._place.exists():
            self._load()

    def step(self, pictures: Pictures, progress: float) -> tuple[float, ...]:
        """One update; `progress` is the part of the budget that is spent. Returns loss and figures."""
        factor = rate(progress, self.progress.step)
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = group["base"] * factor
        loss, figures = loss_of(self.reader, pictures)
        loss.backward()
        nn.utils.clip_grad_norm_(self.reader.parameters(), 1.0)
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad()
        self.progress.step += 1
        self.progress.seen += len(pictures.pixels)
        return loss.item(), *figures

    def save(self) -> None:
        """Write the checkpoint, whole or not at all."""
        state = {
            "eye": self.reader.eye.state_dict(),
            "head": {
                name: own for name, own in self.reader.named_parameters() if not name.startswith("eye.")
            },
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
            "shape": asdict(self.reader.eye.shape),
            "progress": asdict(self.progress),
        }
        torch.save(state, self._place.with_suffix(".new"))
        self._place.with_suffix(".new").rename(self._place)

    def _load(self) -> None:
        state = torch.load(self._place, weights_only=True)
        self.reader.eye.load_state_dict(state["eye"])
        self.reader.load_state_dict(state["head"], strict=False)
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=False):
            optimizer.load_state_dict(saved)
        self.progress = Progress(**state["progress"])


def spent() -> float:
    """Seconds of work: the processor's time by core, so that a pause is no work."""
    return time.process_time() / torch.get_num_threads()


def run(training: Training, painter: Painter, rng: random.Random, budget: float, stop: float) -> None:
    """Step until the budget or this run's time is spent, with checkpoints."""
    progress, began = training.progress, spent()
    before, saved = progress.spent, began
    means = [0.0] * 4
    share = 1.0
    while progress.spent < budget and progress.spent - before < stop:
        rows, columns = grid_at(progress.spent / budget, rng)
        count = max(1, PATCHES // (4 * rows * columns))
        figures = training.step(painter.batch(count, (rows, columns)), progress.spent / budget)
        means = [mean + share * (figure - mean) for mean, figure in zip(means, figures, strict=True)]
        share = max(0.05, share * 0.8)
        progress.spent = before + spent() - began
        if progress.step % 20 == 0:
            loss, right, read, here = means
            print(
                f"step {progress.step} {progress.spent / 60:.1f} min {progress.seen} pictures "
                f"loss {loss:.3f} tokens {right:.3f} characters {read:.3f} in place {here:.2f}",
                flush=True,
            )
        if spent() - saved > SAVE_SECONDS:
            training.save()
            saved = spent()
    training.save()


def main() -> None:
    """Train within the budget."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, default=Path("glimmer_tui/models/glimmer-nano.gguf"))
    parser.add_argument("--marks", type=Path, default=Path("nano/out/vision/marks.pt"))
    parser.add_argument("--fonts", type=Path, help="a folder of fonts; without it Pillow's own")
    parser.add_argument("--out", type=Path, default=Path("nano/out/vision"))
    parser.add_argument("--minutes", type=float, default=60.0, help="the whole budget")
    parser.add_argument("--stop", type=float, default=1e9, help="minutes of this run")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    options.out.mkdir(parents=True, exist_ok=True)
    training = Training(options.out, EyeShape(), table_with(options.model, options.marks))
    rng = random.Random(1000 + training.progress.step)
    painter = Painter(rng, options.fonts, encoder_of(options.model, options.out))
    parameters = sum(p.numel() for p in training.reader.eye.parameters())
    print(f"{parameters / 1e6:.2f} M parameters", flush=True)
    run(training, painter, rng, options.minutes * 60, options.stop * 60)
    print(f"stopped: {training.progress}", flush=True)


if __name__ == "__main__":
    main()
