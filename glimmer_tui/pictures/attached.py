"""A picture the person gave, ready for a message, and the words that stand for it there."""

from dataclasses import dataclass
from pathlib import Path

from engine.messages import Image
from tools.pictures.decode import Decoded, decode_bytes, decode_file
from tools.pictures.errors import PictureError
from tools.shown import shown

__all__ = ["Attached", "PictureError", "picture_from_bytes", "picture_from_file"]

_LONGEST_NAME = 80


@dataclass(frozen=True, slots=True)
class Attached:
    """A prepared picture. `width` and `height` are the original's, when it stands upright."""

    image: Image
    name: str
    width: int
    height: int

    def placeholder(self, number: int) -> str:
        """What stands for it in the text, as in `[image 1: shot.png 1280x720]`."""
        return f"[image {number}: {self.name} {self.width}x{self.height}]"


def picture_from_file(path: Path) -> Attached:
    """The picture in a file, wherever it lies. Blocks; raises PictureError."""
    return _attached(decode_file(path), path.name)


def picture_from_bytes(data: bytes, name: str) -> Attached:
    """The picture in these bytes. Blocks; raises PictureError."""
    return _attached(decode_bytes(data, name), name)


def _attached(decoded: Decoded, name: str) -> Attached:
    picture = decoded.picture
    image = Image(picture.data, picture.width, picture.height)
    return Attached(image, _plain(name), decoded.width, decoded.height)


def _plain(name: str) -> str:
    """The name without what would end the placeholder early."""
    return shown(name).translate(str.maketrans("[]", "()"))[:_LONGEST_NAME]
