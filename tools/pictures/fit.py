"""How large a picture the model can make use of."""

import math

_SQUARE = 28
"""Pixels a side of what one token stands for."""
MOST_PIXELS = 2560 * 1440
LONGEST_SIDE = 256 * _SQUARE


def fitted(width: int, height: int) -> tuple[int, int]:
    """The size to prepare a picture in: its own, or the largest of its shape of which all can be seen.

    What goes beyond 2560x1440 pixels, in whatever shape, lies beyond the encoder's cap. Never less than one
    pixel, so a picture of extreme shape is changed in shape.
    """
    scale = min(1.0, math.sqrt(MOST_PIXELS / (width * height)), LONGEST_SIDE / max(width, height))
    return max(1, round(width * scale)), max(1, round(height * scale))
