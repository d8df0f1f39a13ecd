"""Bytes or a file as a prepared picture: RGB, upright, no larger than the model can see, PNG.

Whatever the input, it ends in a picture or in a PictureError. Its format is told by its content. The size
it declares is checked before anything is decoded, so memory is bounded: about MOST_MEMORY for the largest
picture, and much less for what comes from a camera or a screen. Everything but the pixels is dropped: no
place, no time, no comment of the original reaches the model.
"""

import os
import stat
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from PIL import Image

from tools.base import Picture
from tools.pictures.errors import PictureError
from tools.pictures.fit import fitted
from tools.pictures.flatten import flattened
from tools.pictures.header import Damaged, Format, Header, NotAPicture, read_header
from tools.shown import shown, size

MOST_PIXELS = 100_000_000
MOST_BYTES = 256 << 20
MOST_BITMAP_BYTES = 4 * MOST_PIXELS + (1 << 20)
"""A BMP is not compressed: it is read in pieces, and may be as large as its pixels are."""
MOST_MEMORY = 2 << 30
MOST_SCANS = 100
"""Each pass over a large JPEG takes a while, and a pass can be written in a few bytes."""

_FORMATS = "PNG, JPEG, WebP, GIF or BMP"
_CONVERT = f"Convert it to {_FORMATS}."
_ORIENTATION = 0x0112
_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


@dataclass(frozen=True, slots=True)
class Decoded:
    """A prepared picture, and the size of the original when it stands upright."""

    picture: Picture
    width: int
    height: int


def decode_file(path: Path) -> Decoded:
    """The picture in a regular file. Blocks; raises PictureError."""
    name = shown(path.name or str(path))
    try:
        descriptor, length = _opened(path, name)
        with os.fdopen(descriptor, "rb") as stream:
            return _decoded(stream, length, name)
    except FileNotFoundError as fault:
        raise PictureError(f"There is no file {shown(str(path))}.", "", "Check the path.") from fault
    except PermissionError as fault:
        todo = "Change its permissions, or copy it."
        raise PictureError(f"{name} cannot be read.", "You have no right to read it.", todo) from fault
    except (OSError, ValueError) as fault:
        why = getattr(fault, "strerror", None) or str(fault)
        raise PictureError(
            f"{name} cannot be read.", f"The system says: {why}.", "Check the path."
        ) from fault


def decode_bytes(data: bytes, name: str = "The picture") -> Decoded:
    """The picture in these bytes; `name` stands for it in what PictureError says."""
    return _decoded(BytesIO(data), len(data), shown(name))


def as_png(picture: Image.Image) -> Picture:
    """An RGB picture of Pillow's as PNG bytes."""
    buffer = BytesIO()
    picture.save(buffer, "PNG")
    return Picture(buffer.getvalue(), picture.width, picture.height)


def _opened(path: Path, name: str) -> tuple[int, int]:
    """A descriptor of a regular file, and the file's length."""
    # Looked at first: to open a device can already do something. A pipe that came meanwhile does not block.
    _check_kind(os.stat(path), name)
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        return descriptor, _check_kind(os.fstat(descriptor), name)
    except BaseException:
        os.close(descriptor)
        raise


def _check_kind(facts: os.stat_result, name: str) -> int:
    if stat.S_ISDIR(facts.st_mode):
        raise PictureError(f"{name} is a folder.", "Only a picture can be shown.", "Name a file in it.")
    if not stat.S_ISREG(facts.st_mode):
        why = "It is a device, a pipe or a socket."
        raise PictureError(f"{name} is not an ordinary file.", why, "Save the picture to a file first.")
    return facts.st_size


def _decoded(stream: BinaryIO, length: int, name: str) -> Decoded:
    header = _header(stream, length, name)
    stream.seek(0)
    # Second line of defence, for sizes that are not in the header.
    Image.MAX_IMAGE_PIXELS = MOST_PIXELS
    try:
        with Image.open(stream, formats=[header.format]) as picture:
            if picture.size != (header.width, header.height):
                raise _damaged(name, "it declares two different sizes")
            return _prepared(picture)
    except PictureError:
        raise
    except MemoryError as fault:
        what = f"{name} does not fit into memory."
        why = f"It has {header.width}x{header.height} pixels."
        raise PictureError(what, why, "Make it smaller, or close other programs.") from fault
    except Exception as fault:
        # Hostile bytes make decoders raise nearly anything; all of it means the same to a person.
        raise _damaged(name, "its content does not match its header") from fault


def _header(stream: BinaryIO, length: int, name: str) -> Header:
    """The header of a picture that is not too large to decode."""
    try:
        header = read_header(stream)
    except NotAPicture as fault:
        what = f"{name} is not a picture." if length else f"{name} is empty."
        why = f"Its content is {fault}." if length else "It has 0 bytes."
        raise PictureError(what, why, _CONVERT if length else "Save it again.") from fault
    except Damaged as fault:
        raise _damaged(name, str(fault)) from fault
    if length > _most_bytes(header.format):
        why = f"It has {size(length)}; {size(_most_bytes(header.format))} are read at most."
        raise PictureError(f"{name} is too large.", why, "Make it smaller.")
    if min(header.width, header.height) < 1:
        raise _damaged(name, f"it declares a size of {header.width}x{header.height} pixels")
    if header.width * header.height > MOST_PIXELS:
        declared = f"It declares {header.width}x{header.height} pixels"
        why = f"{declared}; {MOST_PIXELS // 1_000_000} million are read at most."
        raise PictureError(f"{name} is too large.", why, "Make it smaller.")
    if header.scans > MOST_SCANS:
        why = f"It is written in {header.scans} passes; {MOST_SCANS} are read at most."
        raise PictureError(f"{name} takes too long to read.", why, "Save it again from a picture viewer.")
    return header


def _most_bytes(form: Format) -> int:
    return MOST_BITMAP_BYTES if form == "BMP" else MOST_BYTES


def _prepared(picture: Image.Image) -> Decoded:
    width, height = picture.size
    target = fitted(width, height)
    # A JPEG can be decoded at a half, a quarter or an eighth of its size; other formats leave it.
    picture.draft(None, target)
    picture.load()
    flat = flattened(picture, target)
    if flat.size != target:
        flat = flat.resize(target, Image.Resampling.LANCZOS)
    turn = _UPRIGHT.get(_orientation(picture))
    if turn is not None:
        flat = flat.transpose(turn)
    lies = turn is not None and turn not in (
        Image.Transpose.FLIP_LEFT_RIGHT,
        Image.Transpose.FLIP_TOP_BOTTOM,
        Image.Transpose.ROTATE_180,
    )
    return Decoded(as_png(flat), *((height, width) if lies else (width, height)))


def _orientation(picture: Image.Image) -> int:
    """How the camera was held, 1 to 8; 1 where the note about it cannot be read."""
    try:
        return int(picture.getexif().get(_ORIENTATION, 1))
    except Exception:
        # Hostile bytes again, and a picture whose note is damaged is still a picture.
        return 1


def _damaged(name: str, why: str) -> PictureError:
    return PictureError(f"{name} is damaged.", f"As a picture, {why}.", "Save it again, or convert it.")
