"""Bytes to text and back, so that an edit changes only what it means to change.

A file's encoding, byte order mark and line ends are facts to keep. Inside the tools text has plain LF line
ends; `LineEnds` leads back to the file's own.
"""

import codecs
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass

BOMS = (
    (codecs.BOM_UTF8, "utf-8", "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le", "UTF-32"),
    (codecs.BOM_UTF32_BE, "utf-32-be", "UTF-32"),
    (codecs.BOM_UTF16_LE, "utf-16-le", "UTF-16"),
    (codecs.BOM_UTF16_BE, "utf-16-be", "UTF-16"),
)
CONTROLS = bytes(set(range(32)) - {8, 9, 10, 12, 13, 27})


@dataclass(frozen=True, slots=True)
class TextFile:
    """A decoded file. `text` has the file's own line ends; `label` names an encoding other than UTF-8."""

    text: str
    codec: str = "utf-8"
    bom: bytes = b""
    label: str = ""

    def encode(self, text: str) -> bytes:
        """The bytes of another text in this file's encoding. Raises UnicodeEncodeError."""
        return self.bom + text.encode(self.codec)


def decode(data: bytes, whole: bool = True) -> TextFile | None:
    """Decode a file's bytes, or None when it is not text. `whole` False: the last character may be torn."""
    for bom, codec, label in BOMS:
        if data.startswith(bom):
            try:
                text = codecs.getincrementaldecoder(codec)().decode(data[len(bom) :], final=whole)
            except UnicodeDecodeError:
                continue
            return TextFile(text, codec, bom, "" if label == "utf-8" else label)
    if b"\0" in data:
        return None
    try:
        return TextFile(codecs.getincrementaldecoder("utf-8")().decode(data, final=whole))
    except UnicodeDecodeError:
        return _decode_single_byte(data)


def _decode_single_byte(data: bytes) -> TextFile | None:
    sample = data[:65536]
    if len(sample) - len(sample.translate(None, CONTROLS)) > len(sample) // 50:
        return None
    if any(0x80 <= byte < 0xA0 for byte in sample):
        try:
            return TextFile(data.decode("cp1252"), "cp1252", label="cp1252")
        except UnicodeDecodeError:
            pass
    return TextFile(data.decode("latin-1"), "latin-1", label="latin-1")


def decode_line(line: bytes, torn: bool = False) -> str:
    """A line as text without its line end: UTF-8, else byte by byte. `torn`: it was cut somewhere."""
    line = line.removesuffix(b"\r")
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(line, final=not torn)
    except UnicodeDecodeError:
        return line.decode("latin-1")


def split_lines(text: str) -> list[str]:
    """The lines of a text with LF line ends, without them. An empty last piece is no line."""
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def plural(count: int, noun: str, nouns: str = "") -> str:
    """A count with its noun, as in "1 line" and "2 lines"."""
    return f"{count} {noun}" if count == 1 else f"{count} {nouns or noun + 's'}"


def spliced(text: str, pieces: Iterable[tuple[int, int, str]]) -> str:
    """The text with `text[start:end]` replaced for each (start, end, new), given in order."""
    parts: list[str] = []
    at = 0
    for start, end, new in pieces:
        parts += (text[at:start], new)
        at = end
    return "".join(parts) + text[at:]


class LineEnds:
    """Where a text's CRLF line ends are, seen from the same text with LF line ends (`text`)."""

    def __init__(self, raw: str) -> None:
        self.raw = raw
        self.text = raw.replace("\r\n", "\n")
        self._crlf: list[int] = []
        at = raw.find("\r\n")
        while at >= 0:
            self._crlf.append(at - len(self._crlf))
            at = raw.find("\r\n", at + 2)

    @property
    def label(self) -> str:
        """What to tell the model: "" for LF throughout, "CRLF", or "mixed line ends"."""
        if not self._crlf:
            return ""
        return "CRLF" if len(self._crlf) == self.text.count("\n") else "mixed line ends"

    @property
    def dominant(self) -> str:
        """The line end that most lines have; LF on a draw or without any."""
        return "\r\n" if len(self._crlf) * 2 > self.text.count("\n") else "\n"

    def replace(self, start: int, end: int, new: str) -> tuple[int, int, str]:
        """Lead a replacement of `text[start:end]` back to `raw`, touching no more than differs.

        The new lines get the line end of the place they go to.
        """
        old = self.text[start:end]
        head = _common_prefix(old, new)
        tail = _common_prefix(old[head:][::-1], new[head:][::-1])
        start, end, new = start + head, end - tail, new[head : len(new) - tail]
        if "\n" in new:
            new = new.replace("\n", self._end_near(start))
        return self._to_raw(start), self._to_raw(end), new

    def _to_raw(self, index: int) -> int:
        return index + bisect_left(self._crlf, index)

    def _end_near(self, index: int) -> str:
        if not self._crlf:
            return "\n"
        at = self.text.find("\n", index)
        if at < 0:
            at = self.text.rfind("\n")
        found = bisect_left(self._crlf, at)
        return "\r\n" if found < len(self._crlf) and self._crlf[found] == at else "\n"


def _common_prefix(one: str, other: str) -> int:
    limit = min(len(one), len(other))
    if one[:limit] == other[:limit]:
        return limit
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low
