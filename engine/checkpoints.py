"""Places in the conversation that the cache can return to, within a byte budget. Pure: it only keeps them.

A checkpoint holds the local layers' window (the global layers' cells stay where they are), so it is good as
long as every token before it is unchanged.
"""

from dataclasses import dataclass

from engine.cache import Snapshot

DEFAULT_BUDGET = 1 << 30
"""Bytes: about a dozen checkpoints of the 30B model (78 MiB each, and 40 of its drafter)."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A snapshot; `pinned` ones are dropped last (the end of the system block)."""

    snapshot: Snapshot
    pinned: bool = False

    @property
    def position(self) -> int:
        """The position that was next when it was taken."""
        return self.snapshot.position


class Checkpoints:
    """Checkpoints in order of position, at most one a position."""

    def __init__(self, budget: int = DEFAULT_BUDGET) -> None:
        self._budget = budget
        self._kept: list[Checkpoint] = []

    @property
    def positions(self) -> tuple[int, ...]:
        return tuple(kept.position for kept in self._kept)

    @property
    def size(self) -> int:
        """Bytes in use."""
        return sum(kept.snapshot.size for kept in self._kept)

    @property
    def kept(self) -> tuple[Checkpoint, ...]:
        return tuple(self._kept)

    def add(self, checkpoint: Checkpoint) -> None:
        """Keep it, and let go of the least useful while there are more bytes than the budget."""
        others = [kept for kept in self._kept if kept.position != checkpoint.position]
        self._kept = sorted([*others, checkpoint], key=lambda kept: kept.position)
        while self.size > self._budget and len(self._kept) > 1:
            self._kept.remove(self._least_useful())
        if self.size > self._budget:
            self._kept.clear()

    def nearest(self, position: int) -> Checkpoint | None:
        """The last checkpoint at or before `position`."""
        return next((kept for kept in reversed(self._kept) if kept.position <= position), None)

    def drop_after(self, position: int) -> None:
        """What lies at or after `position` was changed: only checkpoints up to it are good."""
        self._kept = [kept for kept in self._kept if kept.position <= position]

    def drop_seeing(self, start: int, end: int, window: int) -> None:
        """The positions `start` to `end` - 1 were removed: no checkpoint may bring some of them back."""
        self._kept = [kept for kept in self._kept if not start < kept.position < end + window]

    def clear(self) -> None:
        self._kept.clear()

    def _least_useful(self) -> Checkpoint:
        """The one whose loss costs the fewest tokens to read again, older ones first; never the last."""
        candidates = [kept for kept in self._kept[:-1] if not kept.pinned] or self._kept[:-1]
        before = {
            kept.position: kept.position - (self._kept[number - 1].position if number else 0)
            for number, kept in enumerate(self._kept)
        }
        return min(candidates, key=lambda kept: before[kept.position])
