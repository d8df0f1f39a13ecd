"""Spans that were removed from the cache to make room. Pure: it only keeps the books.

The tokens stay in the log and keep their positions; later tokens keep what they absorbed from them. A hole is
open once its cells are free. After a rewind, or when the cache was lost, the span is read again, and the hole
is to be opened anew as soon as the window has passed it.
"""

from bisect import bisect_left, insort
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Hole:
    """The positions `start` to `end` - 1."""

    start: int
    end: int
    is_open: bool

    @property
    def length(self) -> int:
        return self.end - self.start


class Holes:
    """Holes in order, none touching another's inside."""

    def __init__(self, holes: tuple[Hole, ...] = ()) -> None:
        self._holes = list(holes)
        self._freed = _open_length(self._holes)

    @property
    def all(self) -> tuple[Hole, ...]:
        return tuple(self._holes)

    @property
    def freed(self) -> int:
        """Cells that open holes leave free."""
        return self._freed

    def add(self, start: int, end: int) -> None:
        """The cells of `start` to `end` - 1 were just freed. Raises ValueError where a hole is already."""
        if start >= end or self.covers(start, end):
            raise ValueError(f"no hole can be made from {start} to {end}")
        insort(self._holes, Hole(start, end, is_open=True), key=_start)
        self._freed += end - start

    def covers(self, start: int, end: int) -> bool:
        """Whether any of the positions `start` to `end` - 1 is in a hole."""
        before = bisect_left(self._holes, end, key=_start) - 1
        return before >= 0 and start < self._holes[before].end

    def within(self, position: int) -> int:
        """Tokens before `position` that are in holes."""
        return sum(min(hole.end, position) - hole.start for hole in self._holes if hole.start < position)

    def usable(self, position: int, window: int) -> int:
        """The last position up to `position` whose window has no open hole in it: only that is exact."""
        for hole in reversed(self._holes):
            if hole.is_open and hole.start < position < hole.end + window:
                position = hole.start
        return position

    def close_after(self, position: int) -> None:
        """All from `position` on left the cache: the holes there are to be opened anew."""
        self._holes = [replace(hole, is_open=hole.is_open and hole.end <= position) for hole in self._holes]
        self._freed = _open_length(self._holes)

    def forget_after(self, position: int) -> None:
        """The conversation is another one from `position` on."""
        self._holes = [
            hole if hole.end <= position else replace(hole, end=position)
            for hole in self._holes
            if hole.start < position
        ]
        self._freed = _open_length(self._holes)

    def due(self, position: int) -> tuple[Hole, ...]:
        """Holes that are to be opened, and lie before `position`."""
        return tuple(hole for hole in self._holes if not hole.is_open and hole.end <= position)

    def open(self, hole: Hole) -> None:
        """The cells of `hole` were freed."""
        self._holes[self._holes.index(hole)] = replace(hole, is_open=True)
        self._freed += hole.length

    def clear(self) -> None:
        self._holes.clear()
        self._freed = 0


def _start(hole: Hole) -> int:
    return hole.start


def _open_length(holes: list[Hole]) -> int:
    return sum(hole.length for hole in holes if hole.is_open)
