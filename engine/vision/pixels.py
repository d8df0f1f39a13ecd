"""A picture's pixels, and the key by which it is known again."""

import hashlib
import warnings
from dataclasses import dataclass
from io import BytesIO

from PIL import Image as Pillow
from PIL import UnidentifiedImageError

from engine.errors import EngineError
from engine.messages import Image

MOST_PIXELS = 110_000_000
"""A larger picture is refused before it is decoded."""


@dataclass(frozen=True, slots=True)
class Pixels:
    """`rgb` are width * height * 3 bytes, row by row. `key` is the SHA-256 of size and pixels."""

    width: int
    height: int
    rgb: bytes
    key: bytes


def pixels_of(image: Image) -> Pixels:
    """Decode a picture. Raises EngineError where it is none or too large."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Pillow.DecompressionBombWarning)
            with Pillow.open(BytesIO(image.data), formats=("PNG", "JPEG")) as opened:
                if opened.width * opened.height > MOST_PIXELS:
                    raise _unreadable(f"It has {opened.width} x {opened.height} pixels.")
                picture = opened.convert("RGB")
    except (OSError, ValueError, SyntaxError, UnidentifiedImageError) as error:
        raise _unreadable("Its file is damaged, or none of a PNG or JPEG picture.") from error
    except (Pillow.DecompressionBombError, Pillow.DecompressionBombWarning) as error:
        raise _unreadable("It has far too many pixels.") from error
    rgb = picture.tobytes()
    size = f"{picture.width}x{picture.height}:".encode()
    return Pixels(picture.width, picture.height, rgb, hashlib.sha256(size + rgb).digest())


def _unreadable(why: str) -> EngineError:
    return EngineError("A picture could not be read.", why, "Remove it, or attach another one.")
