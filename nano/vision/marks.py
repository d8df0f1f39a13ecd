"""Learn the two vectors that make the frozen language model read a picture: `python -m nano.vision.marks`.

The model is shown cells as a perfect encoder would give them, with noise, and must say which test fails. Only
`MARK` and `BLANK` learn. Both are stored, and the encoder is then trained to say them.
"""

import argparse
import random
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.chat_format import Marker
from nano.model import Glimmer, attend, rms_norm
from nano.restore import restore_model
from nano.tokenizer import PAD, Encoder
from nano.vision.screens import Screen, draw_screen
from nano.vision.sight import sighted_pieces
from nano.vision.train import encoder_of
from nano.vision.transcript import CELL, MARK, Place, cells_of

WISHES = (
    "Fix what this shows.",
    "fix what this shows",
    "Fix this.",
    "Fix the failing test.",
    "Please fix what fails here.",
    "This fails. Fix it",
    "What is wrong here? Fix it.",
    "fix the bug",
    "",
)
NOISE = 0.35
"""What an encoder's vectors are away from the table's, by its share of their length."""


class Listener:
    """The frozen language model behind its system block."""

    def __init__(self, model: Glimmer, encoder: Encoder) -> None:
        self.model, self._encoder = model.requires_grad_(False), encoder
        pieces = [{"marker": p.value} if isinstance(p, Marker) else p for p in sighted_pieces("low")]
        self._ahead = model.remembered(torch.tensor(encoder.encode(pieces)))
        self.table = rms_norm(model.embedding.weight, None, model.shape.eps)

    def hidden(self, vectors: Tensor) -> Tensor:
        """Final hidden states of normed vectors [B, T, width] in the place of tokens."""
        shape, before = self.model.shape, self._ahead[0][0].shape[2]
        rows, length, _ = vectors.shape
        places = torch.arange(before, before + length)
        group, x = shape.heads // shape.kv_heads, vectors
        for layer, (keys, values) in zip(self.model.layers, self._ahead, strict=True):
            first = before - min(before, shape.window - 1) if layer.local else 0
            q, k, v, gate = layer.project(x, places)
            k = torch.cat((keys[:, :, first:].expand(rows, -1, -1, -1), k), 2).repeat_interleave(group, 1)
            v = torch.cat((values[:, :, first:].expand(rows, -1, -1, -1), v), 2).repeat_interleave(group, 1)
            x = layer.finish(x, attend(q, k, v, shape.window if layer.local else None), gate)
        return rms_norm(x, self.model.norm, shape.eps)

    def loss(self, marks: Tensor, rng: random.Random, count: int) -> tuple[Tensor, float]:
        """Loss of what is to be said of `count` pictures of one grid; share said right to the last token."""
        grid = rng.choice((3, 5, 8, 10, 12, 14, 16)), rng.choice((18, 20, 23, 25, 26, 28))
        drawn = [self._conversation(rng, grid) for _ in range(count)]
        length = max(len(ids) for ids, _ in drawn)
        pad = self._encoder.specials[PAD]
        ids = torch.tensor([row + [pad] * (length - len(row)) for row, _ in drawn])
        table = torch.cat((self.table, rms_norm(marks, None, self.model.shape.eps)))
        vectors = table[ids % len(table)]
        opened = torch.tensor([[row.index(self._encoder.specials["<|image_start|>"])] for row, _ in drawn])
        where = torch.arange(length)[None] - opened
        inside = (where > 0) & (where <= grid[0] * grid[1])
        noisy = rms_norm(vectors + NOISE * torch.randn_like(vectors), None, self.model.shape.eps)
        hidden = self.hidden(torch.where(inside[..., None], noisy, vectors))
        asked = torch.zeros_like(ids, dtype=torch.bool)
        for row, (full, answer) in enumerate(drawn):
            asked[row, len(full) - answer : len(full)] = True
        scores = self.model.logits(hidden[:, :-1][asked[:, 1:]])
        wanted = ids[:, 1:][asked[:, 1:]]
        hit = torch.zeros_like(asked[:, 1:], dtype=torch.bool)
        hit[asked[:, 1:]] = scores.argmax(-1) == wanted
        right = (hit | ~asked[:, 1:]).all(1).float().mean().item()
        return F.cross_entropy(scores, wanted), right

    def _conversation(self, rng: random.Random, grid: tuple[int, int]) -> tuple[list[int], int]:
        """Ids of a picture, the wish beside it and the answer; how many ids at the end are to be said."""
        screen = draw_screen(rng)
        cells = self._cells(rng, screen, grid)
        while MARK not in cells:
            cells = self._cells(rng, screen, grid)
        answer = self._encoder.encode(_answer(screen.name.removeprefix("test_")))
        before, after = _asked(rng)
        return self._encoder.encode(before) + cells + self._encoder.encode(after) + answer, len(answer)

    def _cells(self, rng: random.Random, screen: Screen, grid: tuple[int, int]) -> list[int]:
        rows, columns = grid
        wide = rng.uniform(7.0, max(7.5, min(10.5, columns * CELL / 76)))
        high = wide * rng.uniform(1.9, 2.3)
        visible = int(rows * CELL / high)
        start = screen.failed[0] - rng.randrange(visible)
        lines = [screen.lines[n] if 0 <= n < len(screen.lines) else () for n in range(start, start + visible)]
        failed = [number - start for number in screen.failed if number - start < visible]
        place = Place(rng.uniform(0, 14), rng.uniform(0, 6), wide, high)
        return cells_of(lines, failed, self._encoder, place, grid).flatten().tolist()


def _marker(name: str) -> dict[str, str]:
    return {"marker": f"<|{name}|>"}


def _asked(rng: random.Random) -> tuple[list[object], list[object]]:
    """What stands before a picture and after it, up to the model's reply."""
    wish, first = rng.choice(WISHES), rng.random() < 0.5
    before = [_marker("start"), "user", _marker("message"), f"{wish} " if first and wish else ""]
    after = ["" if first or not wish else f" {wish}", _marker("eot"), _marker("start"), "assistant"]
    return [*before, _marker("image_start")], [_marker("image_end"), *after]


def _answer(function: str) -> list[object]:
    """What the model says when a test of `function` has failed."""
    told = [" to=self", _marker("message"), f"{function} fails. I search for it.", _marker("eom")]
    return [*told, _marker("start"), "assistant to=search", _marker("message")]


def first_marks(table: Tensor, encoder: Encoder) -> Tensor:
    """Where the two begin: as the word `FAILED`, and as the marker of a patch."""
    return torch.stack((table[encoder.encode(["FAILED"])[0]], table[encoder.specials["<|patch|>"]]))


def main() -> None:
    """Learn and store them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, default=Path("glimmer_tui/models/glimmer-nano.gguf"))
    parser.add_argument("--out", type=Path, default=Path("nano/out/vision"))
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    options.out.mkdir(parents=True, exist_ok=True)
    encoder, rng, place = encoder_of(options.model, options.out), random.Random(0), options.out / "marks.pt"
    listener = Listener(restore_model(options.model), encoder)
    begun = torch.load(place, weights_only=True) if place.exists() else first_marks(listener.table, encoder)
    marks = torch.nn.Parameter(begun.clone())
    optimizer = torch.optim.Adam([marks], lr=0.04)
    loss_mean, right_mean, start = 0.5, 0.5, time.monotonic()
    for step in range(options.steps):
        optimizer.param_groups[0]["lr"] = 0.04 * min(1.0, 2 * (1 - step / options.steps))
        loss, right = listener.loss(marks, rng, 4)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss_mean += 0.04 * (loss.item() - loss_mean)
        right_mean += 0.04 * (right - right_mean)
        if step % 20 == 19:
            told = f"step {step + 1} {time.monotonic() - start:.0f} s"
            print(f"{told} loss {loss_mean:.3f} right {right_mean:.3f}", flush=True)
            torch.save(rms_norm(marks.detach(), None, listener.model.shape.eps), place)
    torch.save(rms_norm(marks.detach(), None, listener.model.shape.eps), place)


if __name__ == "__main__":
    main()
