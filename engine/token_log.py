"""What has been said, as token ids: which messages are in, and what a new history still needs.

The log is the conversation as the model reads it: blocks of ids, one after the other. Generated ids stay
as they were drawn, so the next turn reads only what is new. `cached` says how many of the ids, from the
first on, the model's cache holds now. Nothing here touches the model.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from engine.messages import Role

SpanKind = Role | Literal["reply"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """A block that the history asks for. `source` is what it is rendered from, compared by value."""

    kind: Role
    message_id: str
    source: object


@dataclass(frozen=True, slots=True)
class Block:
    """A block that is to be appended, with its ids."""

    kind: SpanKind
    message_id: str
    source: object
    ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Span:
    """Where a block lies: ids[start:end]. A reply that was just drawn has kind "reply"."""

    kind: SpanKind
    message_id: str
    source: object
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Plan:
    """The log as it will be. `keepable` is the longest exact prefix of it that the cache holds now.

    `known` are the ranges of `ids` that the model has read before, wherever they lay then.
    """

    ids: tuple[int, ...]
    spans: tuple[Span, ...]
    keepable: int
    known: tuple[tuple[int, int], ...]

    @property
    def common(self) -> int:
        """How many of the first ids the log had, and the model had read, before."""
        return self.known[0][1]

    def reread(self, kept: int, until: int) -> int:
        """How many of ids[kept:until] are read for a second time."""
        return sum(max(0, min(end, until) - max(start, kept)) for start, end in self.known)


@dataclass(frozen=True, slots=True)
class LogState:
    """All that a log holds, to be saved. `source` of the spans is not: they are compared by their ids."""

    ids: tuple[int, ...]
    spans: tuple[Span, ...]
    replies: dict[str, tuple[int, ...]]
    cached: int
    read: int


class TokenLog:
    """An append-only list of ids in blocks, rewritten only by `apply`."""

    def __init__(self) -> None:
        self._ids: list[int] = []
        self._spans: list[Span] = []
        self._replies: dict[str, tuple[int, ...]] = {}
        self._read = 0
        self.cached = 0

    @property
    def last(self) -> int:
        """The newest id."""
        return self._ids[-1]

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(self._ids)

    @property
    def spans(self) -> tuple[Span, ...]:
        return tuple(self._spans)

    @property
    def waiting(self) -> int:
        """How many ids, the last ones, the cache does not hold."""
        return len(self._ids) - self.cached

    def pending(self, limit: int) -> list[int]:
        """The next ids, at most `limit`, that the cache does not hold."""
        return self._ids[self.cached : self.cached + limit]

    def advance(self, count: int) -> None:
        """The cache now holds `count` more ids."""
        if not 0 <= count <= self.waiting:
            raise ValueError(f"the log has no {count} pending ids")
        self.cached += count
        self._read = max(self._read, self.cached)

    def append(self, token: int) -> None:
        """A token was drawn; it belongs to the last block, which must be a reply."""
        last = self._spans[-1] if self._spans else None
        if last is None or last.kind != "reply":
            raise ValueError("no reply is being written")
        self._ids.append(token)
        self._spans[-1] = replace(last, end=len(self._ids))

    def matched(self, wanted: Sequence[Wanted]) -> int:
        """How many of the wanted blocks, from the first on, are in the log as they stand."""
        count = 0
        for span, block in zip(self._spans, wanted, strict=False):
            if not _is_same(span, block):
                break
            count += 1
        return count

    def reply(self, wanted: Wanted) -> tuple[int, ...] | None:
        """The ids of a reply that was drawn before, if `wanted` is one; they are not to be made anew."""
        if wanted.kind != "assistant":
            return None
        for span in self._spans:
            if span.kind == "reply" and span.message_id == wanted.message_id:
                return tuple(self._ids[span.start : span.end])
        return self._replies.get(wanted.message_id)

    def plan(self, matched: int, blocks: Sequence[Block], close: int) -> Plan:
        """The log with its first `matched` blocks kept and `blocks` after them.

        A reply that does not end in `close` gets it where a block follows.
        """
        spans = self._spans[:matched]
        ids = self._ids[: spans[-1].end] if spans else []
        shared = min(len(ids), self._read)
        for block in blocks:
            if spans and spans[-1].kind == "reply" and ids[-1] != close:
                ids.append(close)
                spans[-1] = replace(spans[-1], end=len(ids))
            start = len(ids)
            ids.extend(block.ids)
            spans.append(Span(block.kind, block.message_id, block.source, start, len(ids)))
        common = self._common(ids, shared)
        known = ((0, common), *self._moved(spans, common))
        return Plan(tuple(ids), tuple(spans), min(common, self.cached, max(0, len(ids) - 1)), known)

    def apply(self, plan: Plan, kept: int) -> None:
        """Become `plan`, with `kept` of its ids in the cache."""
        if not 0 <= kept <= plan.keepable:
            raise ValueError(f"the cache cannot hold {kept} ids of this plan")
        for span in self._spans:
            if span.kind == "reply":
                self._replies[span.message_id] = tuple(self._ids[span.start : span.end])
        common = plan.common
        self._ids = list(plan.ids)
        self._spans = list(plan.spans)
        self._read = common
        self.cached = kept

    def store(self) -> LogState:
        """Everything, for `restore`."""
        return LogState(tuple(self._ids), tuple(self._spans), dict(self._replies), self.cached, self._read)

    def restore(self, state: LogState) -> None:
        """Become what `store` gave. Raises ValueError where that is no log."""
        ends = [0, *(span.end for span in state.spans)]
        starts = [*(span.start for span in state.spans), len(state.ids)]
        if starts != ends or not 0 <= state.cached <= len(state.ids) or state.read < state.cached:
            raise ValueError("the spans do not cover the ids")
        self._ids = list(state.ids)
        self._spans = list(state.spans)
        self._replies = dict(state.replies)
        self._read = state.read
        self.cached = state.cached

    def lose_cache(self) -> None:
        """The cache was emptied; the conversation is as it was."""
        self.cached = 0

    def forget(self) -> None:
        """The conversation is over. Its ids stay until others take their place: the cache holds them."""
        self._replies.clear()
        self._spans = [Span("user", "", None, 0, len(self._ids))] if self._ids else []

    def clear(self) -> None:
        """Forget everything."""
        self._ids.clear()
        self._spans.clear()
        self._replies.clear()
        self._read = 0
        self.cached = 0

    def _common(self, ids: list[int], shared: int) -> int:
        """The length of the prefix of `ids` that was read before; the first `shared` are known to be."""
        limit = min(len(ids), self._read)
        while shared < limit and ids[shared] == self._ids[shared]:
            shared += 1
        return shared

    def _moved(self, spans: Sequence[Span], common: int) -> list[tuple[int, int]]:
        """Ranges of the new blocks past `common` that were read before, at another position."""
        ranges: list[tuple[int, int]] = []
        dropped = [span for span in self._spans if span.end > common and span.start < self._read]
        for new in spans:
            if new.end <= common:
                continue
            for old in dropped:
                if (old.kind, old.message_id) == (new.kind, new.message_id) and old.source == new.source:
                    start = max(new.start, common)
                    read = min(old.end, self._read) - max(old.start, common)
                    ranges.append((start, min(new.end, start + read)))
                    break
        return ranges


def _is_same(span: Span, wanted: Wanted) -> bool:
    if span.kind == "reply":
        return wanted.kind == "assistant" and span.message_id == wanted.message_id
    if span.kind != wanted.kind or span.source != wanted.source:
        return False
    return span.kind == "system" or span.message_id == wanted.message_id
