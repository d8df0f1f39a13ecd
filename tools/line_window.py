"""A window of a text's lines that fits what a model can read, from texts of any size."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from tools.shown import shortened
from tools.text_file import BOMS, decode, decode_line

MOST_LINES = 2000
MOST_CHARACTERS = 60_000
LONGEST_LINE = 2000
BLOCK = 1 << 20
SAMPLE = 1 << 16
MOST_COUNTED = 4 << 30


@dataclass(frozen=True, slots=True)
class Window:
    """Lines up to number `stopped` as `text`; `last` is where the range asked for ends.

    `of` is the number of lines in the file, with a plus when it was too large to count. `notes` say what
    is unusual: an encoding, line ends.
    """

    text: str
    stopped: int
    last: int
    of: str
    notes: tuple[str, ...] = ()


def small_window(text: str, first: int, last: int | None, notes: tuple[str, ...] = ()) -> Window:
    """Lines `first` to `last` (None: to the end) of a text in memory, with LF line ends."""
    lines = text.split("\n")
    ended = not lines[-1]
    if ended:
        lines.pop()
    count = len(lines)
    last = count if last is None else min(last, count)
    chosen = lines[first - 1 : min(last, first - 1 + MOST_LINES)]
    body, stopped = _fitting(iter(chosen), first)
    if stopped == count and not ended:
        body = body.removesuffix("\n")
    return Window(body, stopped, last, str(count), notes)


def large_window(
    head: bytes, rest: BinaryIO, first: int, last: int | None, cancelled: threading.Event
) -> Window | None:
    """The same from a file too large for memory, or None when it is binary.

    `head` is its beginning, already read. Wide encodings (UTF-16, UTF-32) count as binary here.
    """
    sample = decode(head[:SAMPLE], whole=False)
    if sample is None or (sample.bom and sample.codec != BOMS[0][1]):
        return None
    notes = tuple(note for note in (sample.label, "CRLF" if "\r\n" in sample.text else "") if note)
    scan = _Scan(first, first - 1 + MOST_LINES)
    scanned = 0
    complete = True
    for block in _blocks(head[len(sample.bom) :], rest):
        if scanned > MOST_COUNTED or cancelled.is_set():
            complete = False
            break
        scan.feed(block)
        scanned += len(block)
    count = scan.count()
    last = count if last is None else min(last, count)
    kept = [decode_line(bytes(line), torn=True) for line in scan.lines[: max(0, last - first + 1)]]
    body, stopped = _fitting(iter(kept), first)
    return Window(body, stopped, last, f"{count}{'' if complete else '+'}", notes)


def _blocks(head: bytes, rest: BinaryIO) -> Iterator[bytes]:
    yield head
    while block := rest.read(BLOCK):
        yield block


class _Scan:
    """Counts lines and keeps the beginnings of those from `first` to `last`."""

    def __init__(self, first: int, last: int) -> None:
        self.first = first
        self.last = last
        self.lines: list[bytearray] = []
        self._line = 1
        self._open = False

    def count(self) -> int:
        return self._line if self._open else self._line - 1

    def feed(self, block: bytes) -> None:
        ends = block.count(b"\n")
        self._open = not block.endswith(b"\n")
        if self._line + ends < self.first or self._line > self.last:
            self._line += ends
            return
        at = 0
        while at < len(block) and self._line <= self.last:
            end = block.find(b"\n", at)
            stop = len(block) if end < 0 else end
            self._keep(block[at : min(stop, at + 4 * LONGEST_LINE)])
            if end < 0:
                return
            self._line += 1
            at = end + 1
        self._line += block.count(b"\n", at)

    def _keep(self, piece: bytes) -> None:
        index = self._line - self.first
        if index < 0:
            return
        if index == len(self.lines):
            self.lines.append(bytearray())
        line = self.lines[index]
        line += piece[: max(0, 4 * LONGEST_LINE + 4 - len(line))]


def _fitting(lines: Iterator[str], first: int) -> tuple[str, int]:
    """The lines that fit the bounds, each with its line end, and the number of the last one of them."""
    taken: list[str] = []
    room = MOST_CHARACTERS
    for line in lines:
        kept = shortened(line, LONGEST_LINE) + "\n"
        if len(kept) > room:
            break
        taken.append(kept)
        room -= len(kept)
    return "".join(taken), first - 1 + len(taken)
