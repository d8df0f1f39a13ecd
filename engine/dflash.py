"""DFlash: a small model that drafts a block of tokens in one step, from what the target's layers hold.

After a target decode, `absorb` takes its features; they become keys and values in every drafter layer, at
the same positions. A draft is one decode of the last token and masks after it (arXiv 2602.06036). What the
drafter holds never changes what is written, only how fast: where it cannot follow, it starts anew.
"""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.batch import Batch
from engine.context import Context
from engine.errors import EngineError
from engine.features import LayerInputs

_NEAR = 8.0
"""Scores further below the best than this add nothing that counts to the sum of chances."""
_HOPELESS = 0.02
_ROWS = 128
"""Vectors handed over in one decode: it bounds the memory that a wide model's features take."""
_WAITING_BYTES = 8 << 20
"""Vectors that wait to be handed over, unless _ROWS of them take more."""


@dataclass(frozen=True, slots=True)
class DflashShape:
    """What drafting needs to know: tokens a block, the mask's id, and of the target its layers and sizes, and
    what its head does to scores: `scale` them and bound them by `cap` (0: not at all)."""

    block: int
    mask: int
    layers: tuple[int, ...]
    width: int
    vocabulary: int
    scale: float = 1.0
    cap: float = 0.0


@dataclass(frozen=True, slots=True)
class Draft:
    """Drafted tokens, and for each the drafter's own chance that it stands if those before it do."""

    tokens: tuple[int, ...]
    chances: tuple[float, ...]


NO_DRAFT = Draft((), ())


class Dflash:
    """A drafter over the context of its own that borrows the target's embeddings and head."""

    def __init__(self, context: Context, target: Context, shape: DflashShape) -> None:
        self._context = context
        self._shape = shape
        self._inputs = LayerInputs(target, shape.layers, shape.width)
        self._vectors = Batch(min(_ROWS, context.batch_size), len(shape.layers) * shape.width)
        self._masks = [shape.mask] * (shape.block - 1)
        width = len(shape.layers) * shape.width
        most = max(self._vectors.capacity, min(2 * self.window, _WAITING_BYTES // (4 * width)))
        self._waiting = np.empty((most, width), np.float32)
        self._waiting_rows = 0
        self._end = 0
        self.is_in_use = True
        """Whether drafts are wanted of it, and not only tried: else its state is not worth storing."""
        self.caught_up_s = 0.0
        """Seconds that the last draft spent on what had piled up while none was wanted."""

    @property
    def most(self) -> int:
        """The most tokens of one draft."""
        return self._shape.block - 1

    @property
    def window(self) -> int:
        """How many positions back it looks; older features need not be absorbed."""
        return self._context.window

    def absorb(self, count: int, position: int) -> None:
        """Take the features of the first `count` rows of the target's last decode, read at `position`."""
        if position != self._end + self._waiting_rows:
            self.start_at(position)
        if self._waiting_rows + count > len(self._waiting):
            self._make_room(count)
        if count > len(self._waiting):
            self._read_at_once(count)
            return
        self._inputs.rows(self._waiting[self._waiting_rows : self._waiting_rows + count])
        self._waiting_rows += count

    def draft(self, last: int, position: int, depth: int) -> Draft:
        """At most `depth` tokens that may follow `last`, which stands at `position` and was not absorbed."""
        self.caught_up_s = 0.0
        piled_up = self._waiting_rows > 2 * self._shape.block
        started = time.perf_counter()
        self._hand_over()
        if piled_up:
            self.caught_up_s = time.perf_counter() - started
        depth = min(depth, self.most)
        if position != self._end or depth < 1:
            return NO_DRAFT
        try:
            # The library's drafter graph scores every row and hands out the first ones, so all are asked for.
            self._context.decode([last, *self._masks[:depth]], position, 0)
        except EngineError:
            self.start_at(position)
            return NO_DRAFT
        rows = self._context.scores(1, depth * self._shape.vocabulary).reshape(depth, -1)
        tokens: list[int] = rows.argmax(1).tolist()
        chances = tuple(self._chances(rows, tokens))
        self._context.drop(position, -1)
        return Draft(tuple(tokens), chances)

    def _chances(self, rows: npt.NDArray[np.float32], tokens: Sequence[int]) -> Iterator[float]:
        """How sure the drafter is of each token, as the target's head would have it; 0 once it hardly is."""
        scale, cap = self._shape.scale, self._shape.cap
        stands = 1.0
        for row, token in zip(rows, tokens, strict=True):
            if stands < _HOPELESS:
                yield 0.0
                continue
            best = float(row[token])
            near = row[row > best - _NEAR / scale] * scale
            if cap:
                near, best = np.tanh(near / cap) * cap, math.tanh(best * scale / cap) * cap
            else:
                best *= scale
            chance = float(1.0 / np.exp(near - best).sum())
            stands *= chance
            yield chance

    def rewind(self, position: int) -> None:
        """Forget what was absorbed from `position` on."""
        if position >= self._end + self._waiting_rows:
            return
        if position < self._end:
            if self._context.can_rewind(position):
                self._context.rewind(position)
                self._end = position
            else:
                self.start_at(position)
                return
        self._waiting_rows = min(self._waiting_rows, position - self._end)

    def drop(self, start: int, end: int) -> None:
        """Forget the positions `start` to `end` - 1, which lie beyond the window."""
        self._hand_over()
        self._context.drop(start, end)

    def start_at(self, position: int) -> None:
        """Forget everything; the next features are those of `position`."""
        self._context.clear()
        self._waiting_rows = 0
        self._end = position

    def store(self, position: int) -> bytes:
        """Its cache as bytes, for `restore`, when `position` is next; empty where it did not follow, or is
        not in use: to start anew costs it only speed."""
        if not self.is_in_use:
            return b""
        self._hand_over()
        is_behind = self._end != position or self._context.is_empty
        return b"" if is_behind else self._context.store("whole")

    def restore(self, state: bytes, position: int) -> None:
        """Take over what `store` gave when `position` was next."""
        self.start_at(position)
        if state:
            self._context.restore("whole", state)

    def close(self) -> None:
        """Free its cache; the weights are the caller's."""
        self._vectors.close()
        self._context.close()

    def _hand_over(self) -> None:
        """Make keys and values of the waiting features."""
        rows = self._waiting[: self._waiting_rows]
        self._waiting_rows = 0
        end = self._end + len(rows)
        try:
            for start in range(0, len(rows), self._vectors.capacity):
                part = rows[start : start + self._vectors.capacity]
                self._context.step(self._vectors.vectors(part, self._end))
                self._end += len(part)
        except EngineError:
            self.start_at(end)

    def _make_room(self, count: int) -> None:
        """Let `count` more wait: hand over what does, or forget what the next draft cannot see."""
        kept = self.window
        if self._waiting_rows < kept or kept + count > len(self._waiting):
            self._hand_over()
            return
        gone = self._waiting_rows - kept
        self._waiting[:kept] = self._waiting[gone : self._waiting_rows].copy()
        end = self._end + gone
        self.start_at(end)
        self._waiting_rows = kept

    def _read_at_once(self, count: int) -> None:
        """More rows than can wait: hand them over piece by piece."""
        rows = np.empty((count, self._waiting.shape[1]), np.float32)
        self._inputs.rows(rows)
        for start in range(0, count, len(self._waiting)):
            part = rows[start : start + len(self._waiting)]
            self._waiting[: len(part)] = part
            self._waiting_rows = len(part)
            self._hand_over()
