"""What the encoder is to say: the line that names a failing test, as tokens in the cells where it stands.

A cell is what one token of a picture sees: 28 x 28 pixels. The line falls into four parts: `FAILED`, the
file, `::` with the test's name, and the message. The tokens of a part follow one another without a gap, from
the cell where the part begins on the screen, or later where the part before it takes more cells than it is
wide.
So every token stands near the characters it is made of, and the language model reads parts without holes.
Everything else is blank.

The language model never saw blank cells in its own training. Two vectors that are no token's make it take
them for nothing, and the line for a report: `BLANK`, and `MARK` in the place of the word `FAILED`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
import numpy.typing as npt

from nano.vision.drawing import FIRST
from nano.vision.screens import Line, text_of

CELL = 28
BLANK, MARK = -1, -2
"""Ids beside the vocabulary's: counted from the end of the table, which holds them last."""


class Speller(Protocol):
    """A tokenizer."""

    def encode(self, pieces: Iterable[object]) -> list[int]:
        """Ids of pieces of plain text."""
        ...


@dataclass(frozen=True, slots=True)
class Place:
    """Where the text of a picture stands: pixels of its first cell and of every cell, fractions allowed."""

    left: float
    top: float
    wide: float
    high: float


def parts_of(line: str) -> list[tuple[int, str]]:
    """The parts of a summary line, each with the number of its first column."""
    name = line.find("::")
    message = line.find(" - ", name)
    message = message if message >= 0 else len(line)
    cuts = [0, len("FAILED"), name, message, len(line)]
    return [(start, line[start:end]) for start, end in pairwise(cuts) if end > start]


def row_of(line: str, speller: Speller, place: Place, columns: int) -> npt.NDArray[np.int64]:
    """The ids of a row of `columns` cells for a summary line."""
    row = np.full(columns, BLANK, np.int64)
    free = 0
    for start, text in parts_of(line):
        ids = [MARK] if start == 0 else speller.encode([text])
        first = start + len(text) - len(text.lstrip())
        at = max(free, int((place.left + first * place.wide) // CELL))
        ids = ids[: max(0, columns - at)]
        row[at : at + len(ids)] = ids
        free = at + len(ids)
    return row


def cells_of(
    lines: list[Line], failed: list[int], speller: Speller, place: Place, grid: tuple[int, int]
) -> npt.NDArray[np.int64]:
    """The ids of a grid of (rows, columns) cells. A line that is cut off above or below is not read, nor one
    whose row is taken."""
    rows, columns = grid
    cells = np.full(grid, BLANK, np.int64)
    for number in failed:
        top = place.top + number * place.high
        row = int((top + place.high / 2) // CELL)
        if top < -0.1 * place.high or top + 0.9 * place.high > rows * CELL or (cells[row] != BLANK).any():
            continue
        cells[row] = row_of(text_of(lines[number]), speller, place, columns)
    return cells


def characters_at(lines: list[Line], place: Place, grid: tuple[int, int]) -> npt.NDArray[np.int64]:
    """The characters at two points of every patch, [2 * rows, 2 * columns, 2], counted from the space: in the
    middle of its left half and of its right half. Outside of the text is a space."""
    rows, columns = grid
    width = max((len(text_of(line)) for line in lines), default=0) + 1
    codes = np.zeros((len(lines) + 1, width), np.int64)
    for number, line in enumerate(lines):
        text = text_of(line).encode("ascii", "replace")
        codes[number, : len(text)] = np.frombuffer(text, np.uint8).astype(np.int64) - FIRST
    half = CELL / 4
    across = (np.arange(4 * columns) + 0.5) * half
    down = (np.arange(2 * rows) + 0.5) * 2 * half
    column = np.floor((across - place.left) / place.wide).astype(np.int64)
    line = np.floor((down - place.top) / place.high).astype(np.int64)
    column[(column < 0) | (column >= width)] = width - 1
    line[(line < 0) | (line >= len(lines))] = len(lines)
    return codes[line[:, None], column[None]].reshape(2 * rows, 2 * columns, 2)


def tokens_at(lines: dict[int, list[int]], place: Place, grid: tuple[int, int]) -> npt.NDArray[np.int64]:
    """The ids in the middle of every patch, [2 * rows, 2 * columns], of some lines, given by number with an
    id a character; `BLANK` where there is none."""
    rows, columns = grid
    found = np.full((2 * rows, 2 * columns), BLANK, np.int64)
    half = CELL / 2
    across = np.floor(((np.arange(2 * columns) + 0.5) * half - place.left) / place.wide).astype(np.int64)
    down = np.floor(((np.arange(2 * rows) + 0.5) * half - place.top) / place.high).astype(np.int64)
    for number, ids in lines.items():
        inside = (across >= 0) & (across < len(ids))
        row = np.where(inside, np.array([*ids, BLANK])[np.where(inside, across, len(ids))], BLANK)
        found[down == number] = row
    return found
