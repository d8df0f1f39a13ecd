"""How many tokens a picture takes, and how large a picture the model can make use of."""

import math

PATCH = 28
"""Pixels a side of what one token stands for: two by two patches of 14."""
MOST_TOKENS = 4096
"""The most tokens that the encoder of Muse Glimmer makes of one picture."""
MOST_PIXELS = 2560 * 1440
LONGEST_SIDE = 256 * PATCH


def tokens_of(width: int, height: int, cap: int = MOST_TOKENS) -> int:
    """The tokens of a picture of this size in pixels when one picture may take `cap`.

    The encoder stretches a picture to whole patches: of the grids next to its own size, or next to the
    largest size below the cap, the one whose shape is nearest. A picture more than `cap` times as long as it
    is high can take more than `cap` tokens; `fitted` makes such pictures shorter.
    """
    columns, rows = grid_of(width, height, cap)
    return columns * rows


def grid_of(width: int, height: int, cap: int = MOST_TOKENS) -> tuple[int, int]:
    """Columns and rows of the patches that the encoder makes of a picture."""
    if min(width, height, cap) < 1:
        raise ValueError(f"A picture of {width}x{height} pixels and a cap of {cap} tokens.")
    across, down = width / PATCH, height / PATCH
    ratio = across / down
    if down * across > cap:
        down = math.sqrt(cap / ratio)
        across = down * ratio
    grids = [
        (columns, rows)
        for rows in (math.floor(down), math.ceil(down))
        for columns in (math.floor(across), math.ceil(across))
        if rows >= 1 and columns >= 1 and rows * columns <= cap
    ]
    if not grids:
        return max(1, math.floor(across + 0.5)), max(1, math.floor(down + 0.5))
    shape = height / width
    return min(grids, key=lambda grid: (abs(grid[1] / grid[0] - shape), -grid[0] * grid[1]))


def fitted(width: int, height: int) -> tuple[int, int]:
    """The size to prepare a picture in: its own, or the largest of its shape of which all can be seen.

    What goes beyond 2560x1440 pixels, in whatever shape, lies beyond the encoder's cap. Never less than one
    pixel, so a picture of extreme shape is changed in shape.
    """
    scale = min(1.0, math.sqrt(MOST_PIXELS / (width * height)), LONGEST_SIDE / max(width, height))
    return max(1, round(width * scale)), max(1, round(height * scale))
