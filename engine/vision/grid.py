"""How many tokens a picture takes. Pure.

The encoder stretches a picture to a grid of squares, one token each: as many as its size in squares, or the
cap with its aspect ratio kept.
"""

import math
from dataclasses import dataclass

SQUARE = 28
"""Pixels a side of what one token sees: two by two patches of 14."""
DEFAULT_CAP = 1196
"""Tokens a picture by default: a screen of 1280x720 at full size."""
MOST = 4096
"""Tokens that the encoder takes at most."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Squares across and down."""

    columns: int
    rows: int

    @property
    def tokens(self) -> int:
        """One a square."""
        return self.columns * self.rows


def grid_of(width: int, height: int, cap: int = DEFAULT_CAP) -> Grid:
    """The grid of a picture of `width` x `height` pixels under a cap of `cap` tokens.

    Of the roundings down and up that stay under the cap it is the one nearest to the picture's shape; of
    two as near the larger. A picture more than `cap` times as long as it is high can take more.
    """
    if min(width, height, cap) < 1:
        raise ValueError(f"a picture of {width}x{height} pixels and a cap of {cap} tokens")
    down, across = height / SQUARE, width / SQUARE
    if down * across > cap:
        ratio = across / down
        down = math.sqrt(cap / ratio)
        across = down * ratio
    found = [
        Grid(columns, rows)
        for rows in (math.floor(down), math.ceil(down))
        for columns in (math.floor(across), math.ceil(across))
        if columns >= 1 and rows >= 1 and columns * rows <= cap
    ]
    if not found:
        return Grid(max(1, _nearest(across)), max(1, _nearest(down)))
    shape = height / width
    return min(found, key=lambda grid: (abs(grid.rows / grid.columns - shape), -grid.tokens))


def _nearest(number: float) -> int:
    """Rounded half away from zero, as the encoder rounds."""
    return math.floor(number + 0.5)
