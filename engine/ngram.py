"""Drafts from the conversation itself: where it repeats itself, what followed last time follows again. Pure.

An edit quotes the file that was just read; a second look costs no model at all.
"""

from collections.abc import Sequence
from dataclasses import dataclass

SHORTEST = 4
"""Tokens that must repeat before anything is drafted."""
LONGEST = 48
"""Tokens compared at most; a longer match says no more."""


@dataclass(frozen=True, slots=True)
class Match:
    """Where the end of the conversation stood before: `length` tokens matched, `tokens` came after them."""

    length: int
    tokens: tuple[int, ...]


class NgramIndex:
    """The places of every run of SHORTEST tokens, kept up as the conversation grows or is cut."""

    def __init__(self) -> None:
        self._ids: list[int] = []
        self._ends: dict[tuple[int, ...], list[int]] = {}

    def follow(self, ids: Sequence[int]) -> None:
        """Take over the conversation's ids; only what changed at its end costs time."""
        shared = min(len(self._ids), len(ids))
        if self._ids[:shared] != list(ids[:shared]):
            shared = next(i for i in range(shared) if self._ids[i] != ids[i])
        self._cut(shared)
        for token in ids[shared:]:
            self.append(token)

    def append(self, token: int) -> None:
        """One more token."""
        self._ids.append(token)
        end = len(self._ids)
        if end >= SHORTEST:
            self._ends.setdefault(tuple(self._ids[end - SHORTEST :]), []).append(end)

    def match(self, most: int) -> Match | None:
        """The longest earlier match of the end, the latest among equals, with at most `most` tokens."""
        size = len(self._ids)
        if size < SHORTEST or most < 1:
            return None
        best, best_length = 0, 0
        for end in reversed(self._ends.get(tuple(self._ids[size - SHORTEST :]), ())[-16:]):
            if end < size and (length := self._length(end)) > best_length:
                best, best_length = end, length
                if length >= LONGEST:
                    break
        return Match(best_length, tuple(self._ids[best : best + most])) if best else None

    def _length(self, end: int) -> int:
        """How many tokens before `end` equal those before the conversation's end."""
        ids, size, length = self._ids, len(self._ids), SHORTEST
        while length < min(LONGEST, end) and ids[end - length - 1] == ids[size - length - 1]:
            length += 1
        return length

    def _cut(self, size: int) -> None:
        """Forget all from `size` on."""
        while len(self._ids) > size:
            end = len(self._ids)
            if end >= SHORTEST:
                key = tuple(self._ids[end - SHORTEST :])
                self._ends[key].pop()
                if not self._ends[key]:
                    del self._ends[key]
            self._ids.pop()
