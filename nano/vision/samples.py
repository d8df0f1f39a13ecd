"""Pictures to train on, with what is to be read in them."""

import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from nano.tokenizer import Encoder
from nano.vision.drawing import Face, Setting, draw, draw_face, draw_theme, faces_in, scaled
from nano.vision.screens import Line, draw_screen, text_of
from nano.vision.transcript import CELL, Place, cells_of, characters_at, parts_of, tokens_at

OWN_CELL = (9, 19)
"""The cell in which Glimmer itself draws a terminal; a fifth of the pictures have it."""


@dataclass(frozen=True, slots=True)
class Pictures:
    """A batch: pixels [B, 3, H, W] in -1..1, ids of cells [B, rows * columns], characters
    [B, patches, 2], and the tokens that failing lines have in the middle of patches [B, patches]."""

    pixels: Tensor
    cells: Tensor
    characters: Tensor
    tokens: Tensor


class Painter:
    """Draws batches of pictures of one grid."""

    def __init__(self, rng: random.Random, fonts: Path | None, encoder: Encoder) -> None:
        self._rng, self._encoder = rng, encoder
        self._fonts = faces_in(fonts)

    def batch(self, count: int, grid: tuple[int, int], unseen: bool = False) -> Pictures:
        """`count` pictures of `grid` (rows, columns) cells."""
        drawn = [self._picture(grid, unseen) for _ in range(count)]
        pixels = torch.from_numpy(np.stack([pixels for pixels, *_ in drawn]))
        return Pictures(
            pixels.permute(0, 3, 1, 2).contiguous().float() / 127.5 - 1.0,
            torch.from_numpy(np.stack([cells.reshape(-1) for _, cells, *_ in drawn])),
            torch.from_numpy(np.stack([characters.reshape(-1, 2) for _, _, characters, _ in drawn])),
            torch.from_numpy(np.stack([tokens.reshape(-1) for *_, tokens in drawn])),
        )

    def _picture(self, grid: tuple[int, int], unseen: bool) -> tuple[np.ndarray, ...]:
        """Pixels, cells, characters and tokens. In a low picture the failing line is at a random height."""
        rng, (rows, columns) = self._rng, grid
        screen = draw_screen(rng, unseen)
        line = text_of(screen.lines[screen.failed[0]])
        face = self._face(line, columns * CELL)
        stretch = rng.choice((1.0, 1.0, rng.uniform(0.93, 1.08))), rng.choice((1.0, rng.uniform(0.95, 1.06)))
        width, height = round(columns * CELL / stretch[0]), round(rows * CELL / stretch[1])
        visible = -(-height // face.high)
        if rows >= 8 and len(screen.lines) <= visible:
            start, top = 0, rng.randint(0, 12)
        else:
            at = rng.randrange(max(1, height // face.high))
            start, top = screen.failed[0] - at, rng.randint(0, max(0, height - (at + 1) * face.high))
            top = min(top, face.high - 1) - (face.high if rng.random() < 0.5 and at else 0)
        lines: list[Line] = [
            screen.lines[number] if 0 <= number < len(screen.lines) else ()
            for number in range(start, start + visible + 2)
        ]
        left = rng.choice((0, 0, rng.randint(0, 14)))
        noise = rng.choice((0.0, 0.0, 4.0, 8.0))
        setting = Setting(face, draw_theme(rng), left, top, noise)
        pixels = scaled(draw(lines, setting, width, height), columns * CELL, rows * CELL)
        across, down = columns * CELL / width, rows * CELL / height
        place = Place(left * across, top * down, face.wide * across, face.high * down)
        failed = [number - start for number in screen.failed if 0 <= number - start < len(lines)]
        cells = cells_of(lines, failed, self._encoder, place, grid)
        own = {number: self._tokens(text_of(lines[number])) for number in failed}
        return pixels, cells, characters_at(lines, place, grid), tokens_at(own, place, grid)

    def _tokens(self, line: str) -> list[int]:
        """The token of every character of a failing line."""
        found: list[int] = []
        for _, text in parts_of(line):
            spelt = self._encoder.tokenizer.encode(text, add_special_tokens=False)
            for token, (first, last) in zip(spelt.ids, spelt.offsets, strict=True):
                found += [token] * (last - first)
        return found

    def _face(self, line: str, width: int) -> Face:
        """A face in which the name and, mostly, the whole line fit into `width` pixels."""
        rng = self._rng
        needed = line.find(" - ", line.find("::"))
        needed = len(line) if needed < 0 or rng.random() < 0.7 else needed + 3
        most = max(7, min(11, (width - 14) // needed))
        wide = rng.randint(7, most)
        if most >= OWN_CELL[0] and rng.random() < 0.25:
            regular = next(
                (pair for pair in self._fonts if pair[0] and "DejaVu" in pair[0].name), self._fonts[0]
            )
            return Face(*regular, 15, *OWN_CELL)
        return draw_face(rng, self._fonts, wide)
