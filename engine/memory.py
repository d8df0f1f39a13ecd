"""The cache with its books: where it can go back to, and what was removed from it.

It never gives a prefix that is not exact: going back is a rewind where the local window allows it, else the
nearest checkpoint, else nothing is left and all is read again.
"""

from dataclasses import dataclass

from engine.cache import Cache, Snapshot
from engine.checkpoints import DEFAULT_BUDGET, Checkpoint, Checkpoints
from engine.holes import Hole, Holes
from engine.protocol import Kept


@dataclass(frozen=True, slots=True)
class MemoryState:
    """All that `Memory` holds when `whole.position` is next, to be saved and taken over."""

    whole: Snapshot
    holes: tuple[Hole, ...]
    checkpoints: tuple[Checkpoint, ...]


class Memory:
    """What the model remembers of a conversation. Positions are those of the token log."""

    def __init__(self, cache: Cache, checkpoint_bytes: int = DEFAULT_BUDGET) -> None:
        self.cache = cache
        self.holes = Holes()
        self.checkpoints = Checkpoints(checkpoint_bytes)

    def in_use(self, position: int) -> int:
        """Cells taken when `position` is the next one."""
        return position - self.holes.freed

    def passed(self, position: int) -> int:
        """The first position that the window of the token at `position` still sees."""
        return position - self.cache.window

    def checkpoint(self, position: int, pinned: bool = False) -> None:
        """Remember how to come back to `position`, the next one now."""
        if position and position not in self.checkpoints.positions:
            self.checkpoints.add(Checkpoint(self.cache.store_window(position), pinned))

    def go_back(self, position: int) -> tuple[Kept, int]:
        """Drop all from `position` on, or from the nearest place before it that can be gone back to.

        Returns how, and the position that is next then.
        """
        how, kept = self._go_back(self.holes.usable(position, self.cache.window))
        self.holes.close_after(kept)
        self.checkpoints.drop_after(kept)
        return how, kept

    def remove(self, start: int, end: int) -> None:
        """Free the cells of `start` to `end` - 1, which the window has passed. Nothing is recomputed."""
        self.cache.remove(start, end)
        self.holes.add(start, end)
        self.checkpoints.drop_seeing(start, end, self.cache.window)

    def reopen(self, position: int) -> None:
        """Remove again what had been removed, and was read again only because the cache was lost."""
        for hole in self.holes.due(self.passed(position)):
            self.cache.remove(hole.start, hole.end)
            self.holes.open(hole)
            self.checkpoints.drop_seeing(hole.start, hole.end, self.cache.window)

    def lose(self) -> None:
        """Empty the cache; the holes are to be opened again."""
        self.cache.clear()
        self.checkpoints.clear()
        self.holes.close_after(0)

    def clear(self) -> None:
        """Forget everything."""
        self.lose()
        self.holes.clear()

    def store(self, position: int) -> MemoryState:
        """Everything, when `position` is the next one."""
        return MemoryState(self.cache.store(position), self.holes.all, self.checkpoints.kept)

    def restore(self, state: MemoryState) -> None:
        """Become what `store` gave. Raises EngineError; `clear` it then."""
        self.clear()
        self.cache.restore(state.whole)
        self.holes = Holes(state.holes)
        for checkpoint in state.checkpoints:
            self.checkpoints.add(checkpoint)

    def _go_back(self, position: int) -> tuple[Kept, int]:
        if position and self.cache.can_rewind(position):
            self.cache.rewind(position)
            return "rewound", position
        for limit in (position + 1, position):
            checkpoint = self.checkpoints.nearest(limit)
            if checkpoint is None:
                break
            removed = [(hole.start, hole.end) for hole in self.holes.all if hole.is_open]
            self.cache.restore_window(checkpoint.snapshot, removed)
            kept = min(position, checkpoint.position)
            if kept == checkpoint.position:
                return "restored", kept
            if self.cache.can_rewind(kept):
                self.cache.rewind(kept)
                return "restored", kept
        self.cache.clear()
        self.checkpoints.clear()
        return "reread", 0
