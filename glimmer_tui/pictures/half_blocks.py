"""A picture as coloured characters: each cell shows two pixels, its upper half in front of its lower."""

import math
from io import BytesIO

from PIL import Image

HALF = "\N{UPPER HALF BLOCK}"
MOST_COLUMNS, MOST_ROWS = 48, 12

Colour = tuple[int, int, int]
Cells = tuple[tuple[tuple[Colour, Colour], ...], ...]


def size_in_cells(width: int, height: int, columns: int, rows: int) -> tuple[int, int]:
    """Columns and rows for a picture of this size in pixels: its shape is kept, and it never grows."""
    scale = min(1.0, columns / max(1, width), 2 * rows / max(1, height))
    return max(1, round(width * scale)), max(1, math.ceil(round(height * scale) / 2))


def thumbnail(data: bytes) -> Image.Image | None:
    """The picture, small enough to be kept for drawing; None for what cannot be decoded. Blocks."""
    try:
        with Image.open(BytesIO(data), formats=("PNG", "JPEG")) as picture:
            picture.draft("RGB", (MOST_COLUMNS, 2 * MOST_ROWS))
            small = picture.convert("RGB")
    except (OSError, ValueError, SyntaxError, MemoryError, Image.DecompressionBombError):
        return None
    small.thumbnail((MOST_COLUMNS, 2 * MOST_ROWS), Image.Resampling.BOX)
    return small


def cells_of(small: Image.Image, columns: int, rows: int) -> Cells:
    """`rows` rows of `columns` cells, each as the colours of its upper and its lower half."""
    fitted = small.resize((columns, 2 * rows), Image.Resampling.BOX)
    data = fitted.tobytes()
    pixels = [(data[at], data[at + 1], data[at + 2]) for at in range(0, len(data), 3)]
    lines = [pixels[at : at + columns] for at in range(0, len(pixels), columns)]
    return tuple(
        tuple(zip(upper, lower, strict=True)) for upper, lower in zip(lines[::2], lines[1::2], strict=True)
    )
