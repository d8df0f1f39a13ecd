"""What a picture's first bytes say: its format and size. Nothing is decoded, and no name is believed."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Literal

Format = Literal["PNG", "JPEG", "WEBP", "GIF", "BMP"]

_MOST_SEGMENTS = 5000
_BLOCK = 1 << 20
_NO_SIZE = frozenset({0xC4, 0xC8, 0xCC})
_PROGRESSIVE = frozenset({0xC2, 0xC6, 0xCA, 0xCE})
_OTHERS = (
    (b"%PDF-", 0, "a PDF document"),
    (b"II*\0", 0, "a TIFF picture"),
    (b"MM\0*", 0, "a TIFF picture"),
    (b"ftypavi", 4, "an AVIF picture"),
    (b"ftyphei", 4, "a HEIC picture"),
    (b"ftypmif1", 4, "a HEIC picture"),
    (b"ftyp", 4, "a video"),
    (b"\xff\x0a", 0, "a JPEG XL picture"),
    (b"\0\0\0\x0cJXL ", 0, "a JPEG XL picture"),
    (b"<svg", 0, "an SVG drawing"),
    (b"PK\x03\x04", 0, "an archive"),
    (b"\x7fELF", 0, "a program"),
)


@dataclass(frozen=True, slots=True)
class Header:
    """Format and declared size. `scans` is above 1 for a JPEG that is refined in passes."""

    format: Format
    width: int
    height: int
    scans: int = 1


class NotAPicture(Exception):
    """The bytes are of no format that is read; the message says what they are."""


class Damaged(Exception):
    """The bytes begin as a picture and do not go on as one."""


def read_header(stream: BinaryIO) -> Header:
    """The header of a stream at its beginning. Raises NotAPicture, Damaged, or the stream's OSError."""
    head = stream.read(32)
    try:
        match head:
            case _ if head.startswith(b"\x89PNG\r\n\x1a\n"):
                return _png(head)
            case _ if head.startswith(b"\xff\xd8\xff"):
                return _jpeg(stream)
            case _ if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
                return _webp(head)
            case _ if head.startswith((b"GIF87a", b"GIF89a")):
                return _gif(stream, head)
            case _ if head.startswith(b"BM") and len(head) > 25:
                return _bmp(head)
            case _:
                raise NotAPicture(_described(head + stream.read(4096)))
    except (struct.error, IndexError) as fault:
        raise Damaged("it ends inside its header") from fault


def _png(head: bytes) -> Header:
    if head[12:16] != b"IHDR":
        raise Damaged("its header is missing")
    return Header("PNG", *struct.unpack_from(">II", head, 16))


def _jpeg(stream: BinaryIO) -> Header:
    stream.seek(2)
    for _ in range(_MOST_SEGMENTS):
        marker = _marker(stream)
        if marker in (0xDA, 0xD9):
            break
        if marker == 0x01 or 0xD0 <= marker <= 0xD8:
            continue
        (length,) = struct.unpack(">H", stream.read(2))
        if 0xC0 <= marker <= 0xCF and marker not in _NO_SIZE:
            _, height, width = struct.unpack(">BHH", stream.read(5))
            return Header("JPEG", width, height, _scans(stream) if marker in _PROGRESSIVE else 1)
        stream.seek(max(0, length - 2), 1)
    raise Damaged("it says no size")


def _marker(stream: BinaryIO) -> int:
    if stream.read(1) != b"\xff":
        raise Damaged("its segments do not follow each other")
    for _ in range(_MOST_SEGMENTS):
        code = stream.read(1)[0]
        if code != 0xFF:
            return code
    raise Damaged("its segments do not follow each other")


def _scans(stream: BinaryIO) -> int:
    """How often a scan begins; inside the data of a scan these two bytes cannot stand side by side."""
    count, last = 0, b""
    while block := stream.read(_BLOCK):
        count += (last + block).count(b"\xff\xda")
        last = block[-1:] if block.endswith(b"\xff") else b""
    return max(1, count)


def _webp(head: bytes) -> Header:
    match head[12:16]:
        case b"VP8 " if head[23:26] == b"\x9d\x01\x2a":
            width, height = struct.unpack_from("<HH", head, 26)
            return Header("WEBP", width & 0x3FFF, height & 0x3FFF)
        case b"VP8L" if head[20] == 0x2F:
            (bits,) = struct.unpack_from("<I", head, 21)
            return Header("WEBP", (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
        case b"VP8X":
            width, height = head[24:27], head[27:30]
            if len(height) < 3:
                raise Damaged("it ends inside its header")
            return Header("WEBP", int.from_bytes(width, "little") + 1, int.from_bytes(height, "little") + 1)
        case _:
            raise Damaged("it holds no picture")


def _gif(stream: BinaryIO, head: bytes) -> Header:
    """The screen, made larger where the first frame goes beyond it."""
    width, height, flags = struct.unpack_from("<HHB", head, 6)
    stream.seek(13 + _colours(flags))
    for _ in range(_MOST_SEGMENTS):
        match stream.read(1):
            case b"!":
                stream.read(1)
                for _size in _sub_blocks(stream):
                    pass
            case b",":
                left, top, across, down = struct.unpack("<HHHH", stream.read(8))
                return Header("GIF", max(width, left + across), max(height, top + down))
            case _:
                break
    raise Damaged("it holds no picture")


def _colours(flags: int) -> int:
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0


def _sub_blocks(stream: BinaryIO) -> Iterator[int]:
    while size := stream.read(1)[0]:
        yield size
        stream.seek(size, 1)


def _bmp(head: bytes) -> Header:
    (size,) = struct.unpack_from("<I", head, 14)
    if size == 12:
        return Header("BMP", *struct.unpack_from("<HH", head, 18))
    width, height = struct.unpack_from("<ii", head, 18)
    return Header("BMP", width, abs(height))


def _described(head: bytes) -> str:
    if not head:
        return "an empty file"
    for start, offset, what in _OTHERS:
        if head[offset:].startswith(start):
            return what
    text = head.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "ignore")
    if "<svg" in text.lower():
        return "an SVG drawing"
    is_text = len(text.encode()) >= len(head) - 6 and "\0" not in text
    return "text" if is_text else "data of another kind"
