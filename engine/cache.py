"""The target's cache and the drafter's, kept in step: both hold the same conversation at every moment."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.batch import Batch
from engine.context import Context
from engine.dflash import NO_DRAFT, Dflash, Draft


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A cache's state when `position` was next: the target's (its window, or all of it) and the drafter's."""

    position: int
    target: bytes
    drafter: bytes

    @property
    def size(self) -> int:
        """Bytes."""
        return len(self.target) + len(self.drafter)


class Cache:
    """What the model remembers. Positions are those of the token log; removed spans leave holes."""

    def __init__(self, context: Context, vocabulary_size: int, drafter: Dflash | None = None) -> None:
        self.context = context
        self.drafter = drafter
        self._vocabulary_size = vocabulary_size
        self._vectors: Batch | None = None

    @property
    def size(self) -> int:
        """Tokens it can hold."""
        return self.context.size

    @property
    def batch_size(self) -> int:
        """The most tokens of one read."""
        return self.context.batch_size

    @property
    def most_verified(self) -> int:
        """The most tokens of one `verify`."""
        return self.context.most_scored

    @property
    def window(self) -> int:
        """Tokens that the local layers see; what lies before can be removed, from the drafter too."""
        return self.context.window

    def read(self, tokens: Sequence[int], position: int, ahead: int = 0) -> None:
        """Read tokens at `position`; the last row can be scored then. `ahead` more are known to follow.

        Raises EngineError; `clear` it then.
        """
        self.context.decode(tokens, position)
        if self.drafter is not None and ahead < self.drafter.window:
            self.drafter.absorb(len(tokens), position)

    def read_vectors(self, vectors: npt.NDArray[np.float32], position: int, ahead: int = 0) -> None:
        """Read vectors [n, width] that stand in place of tokens; no row can be scored then.

        Raises EngineError; `clear` it then.
        """
        if self._vectors is None:
            self._vectors = Batch(self.batch_size, vectors.shape[1])
        self.context.step(self._vectors.vectors(vectors, position))
        if self.drafter is not None and ahead < self.drafter.window:
            self.drafter.absorb(len(vectors), position)

    def verify(self, tokens: Sequence[int], position: int) -> None:
        """Read tokens some of which are guesses; every row can be scored then. `accept` must follow."""
        self.context.decode(tokens, position, 0)

    def accept(self, position: int, kept: int, read: int) -> None:
        """Keep the first `kept` of the `read` tokens that `verify` read at `position`."""
        if self.drafter is not None:
            self.drafter.absorb(kept, position)
        if kept < read:
            self.context.rewind(position + kept)

    def draft(self, last: int, position: int, depth: int) -> Draft:
        """At most `depth` tokens that may follow `last`, the token at `position` that was not read yet."""
        return NO_DRAFT if self.drafter is None else self.drafter.draft(last, position, depth)

    def scores(self, row: int) -> npt.NDArray[np.float32]:
        """The scores [vocabulary] of a row of the last read or verify; -1 is the last row. A view."""
        return self.context.scores(row, self._vocabulary_size)

    def can_rewind(self, position: int) -> bool:
        """Whether all from `position` on can be dropped and the rest is exact."""
        return self.context.can_rewind(position)

    def rewind(self, position: int) -> None:
        """Drop all from `position` on; ask `can_rewind` first."""
        self.context.rewind(position)
        if self.drafter is not None:
            self.drafter.rewind(position)

    def remove(self, start: int, end: int) -> None:
        """Free the cells of positions `start` to `end` - 1, all beyond the window. Nothing is recomputed."""
        self.context.drop(start, end)
        if self.drafter is not None:
            self.drafter.drop(start, end)

    def clear(self) -> None:
        """Empty it."""
        self.context.clear()
        if self.drafter is not None:
            self.drafter.start_at(0)

    def store_window(self, position: int) -> Snapshot:
        """What a later return to `position`, the next one now, needs beside the global layers' cells."""
        return Snapshot(position, self.context.store("window"), self._store_drafter(position))

    def restore_window(self, snapshot: Snapshot, removed: Iterable[tuple[int, int]] = ()) -> None:
        """Go back to a snapshot. All before it is still held but the spans `removed` (start, end) since then:
        the drafter's whole cache comes back with it, so they are removed there again."""
        self.context.restore("window", snapshot.target)
        self.context.drop(snapshot.position, -1)
        self._restore_drafter(snapshot)
        if self.drafter is not None:
            for start, end in removed:
                self.drafter.drop(start, end)

    def store(self, position: int) -> Snapshot:
        """All of it, when `position` is the next one."""
        return Snapshot(position, self.context.store("whole"), self._store_drafter(position))

    def restore(self, snapshot: Snapshot) -> None:
        """Become what `store` gave."""
        self.clear()
        self.context.restore("whole", snapshot.target)
        self._restore_drafter(snapshot)

    def close(self) -> None:
        """Free both caches."""
        if self.drafter is not None:
            self.drafter.close()
        if self._vectors is not None:
            self._vectors.close()
        self.context.close()

    def _store_drafter(self, position: int) -> bytes:
        return b"" if self.drafter is None else self.drafter.store(position)

    def _restore_drafter(self, snapshot: Snapshot) -> None:
        if self.drafter is not None:
            self.drafter.restore(snapshot.drafter, snapshot.position)
