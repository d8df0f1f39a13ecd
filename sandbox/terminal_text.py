"""Turning what a program wrote to a terminal into plain, bounded text."""

import codecs
import re
from collections import deque

_SEQUENCE = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*(?P<final>[@-~])?"  # CSI: colours, cursor moves, erasing
    "|(?:\x1b[\\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\\\|\x9c)?"  # OSC, DCS, APC ...
    "|\x1b[ -/]*[0-~]?"  # the rest: character sets, resets, saved cursors
)
_ERASE_RIGHT = frozenset(("\x1b[K", "\x1b[0K", "\x9bK", "\x9b0K"))
_ERASE_LINE = frozenset(("\x1b[2K", "\x9b2K"))
_RIGHT, _ALL = "\ufdd0", "\ufdd1"
_CONTROL = re.compile("[\x00-\x07\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_MOVES = re.compile(f"[\b\r{_RIGHT}{_ALL}]")


def plain(text: str) -> str:
    """The text without terminal control: no escape sequences, carriage returns and backspaces carried out.

    A progress bar that was redrawn a hundred times is one line. Tabs and newlines stay.
    """
    text = text.replace(_RIGHT, "\ufffd").replace(_ALL, "\ufffd")
    text = _CONTROL.sub("", _SEQUENCE.sub(_erasure, text))
    if not _MOVES.search(text):
        return text
    return "\n".join(_settle(line) if _MOVES.search(line) else line for line in text.split("\n"))


def _erasure(found: re.Match[str]) -> str:
    if found["final"] != "K":
        return ""
    sequence = found[0]
    if sequence in _ERASE_RIGHT:
        return _RIGHT
    return _ALL if sequence in _ERASE_LINE else ""


def _settle(line: str) -> str:
    cells: list[str] = []
    column = 0
    for char in line.rstrip("\r"):
        match char:
            case "\r":
                column = 0
            case "\b":
                column = max(0, column - 1)
            case "\ufdd0":
                del cells[column:]
            case "\ufdd1":
                cells = [" "] * column
            case _:
                cells[column : column + 1] = [char]
                column += 1
    return "".join(cells)


def bounded(text: str, limit: int) -> tuple[str, int]:
    """At most `limit` characters of the text, its head and its longer tail, and how many were left out."""
    if len(text) <= limit:
        return text, 0
    head = limit * 2 // 5
    tail = limit - head
    cut = len(text) - limit
    return joined(text[:head], text[len(text) - tail :], cut), cut


def joined(head: str, tail: str, cut: int) -> str:
    """Head and tail with a line between them that says what is missing."""
    return f"{head}\n[… {cut} characters left out …]\n{tail}" if cut else head + tail


class Recording:
    """The head and the tail of a byte stream of any length, in bounded memory."""

    def __init__(self, head: int, tail: int) -> None:
        self._room = head
        self._most = tail
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._held = 0
        self._cut = 0

    def add(self, chunk: bytes) -> None:
        """Take the next bytes of the stream."""
        if self._room > 0:
            self._head += chunk[: self._room]
            chunk, self._room = chunk[self._room :], self._room - len(chunk)
        if not chunk:
            return
        self._tail.append(chunk)
        self._held += len(chunk)
        while self._held - len(self._tail[0]) >= self._most:
            self._drop(self._tail.popleft())

    def parts(self) -> tuple[str, str, int]:
        """Head, tail and the number of characters dropped between them. Invalid UTF-8 becomes U+FFFD."""
        tail = b"".join(self._tail)
        if len(tail) > self._most:
            dropped, tail = tail[: -self._most], tail[-self._most :]
            cut = self._cut + _characters(dropped)
        else:
            cut = self._cut
        if not cut:
            return (bytes(self._head) + tail).decode("utf-8", "replace"), "", 0
        return bytes(self._head).decode("utf-8", "replace"), tail.decode("utf-8", "replace"), cut

    def _drop(self, chunk: bytes) -> None:
        self._held -= len(chunk)
        self._cut += _characters(chunk)


_CONTINUATION = bytes(range(0x80, 0xC0))


def _characters(chunk: bytes) -> int:
    return len(chunk.translate(None, _CONTINUATION))


class Live:
    """Output on its way to the screen: decoded, gathered, and at most `most` characters a delivery."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._waiting = bytearray()
        self._cut = 0

    def add(self, chunk: bytes) -> None:
        """Take bytes; older ones that nobody saw yet make room for newer ones."""
        self._waiting += chunk
        surplus = len(self._waiting) - 4 * self._most
        if surplus > 0:
            self._cut += _characters(bytes(self._waiting[:surplus]))
            del self._waiting[:surplus]

    def take(self, *, final: bool = False) -> str:
        """What to deliver now, possibly nothing."""
        text = self._decoder.decode(bytes(self._waiting), final)
        self._waiting.clear()
        cut = self._cut + max(0, len(text) - self._most)
        self._cut = 0
        return joined("", text[-self._most :], cut) if cut else text
