"""Where drafts come from, and whether drafting pays.

Two sources: the conversation itself, where it repeats, and the drafter. Each step takes the one that promises
more tokens a second, or neither.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Literal

from engine.cache import Cache
from engine.confidence import Confidence
from engine.depth import Costs, Depth
from engine.ngram import Match, NgramIndex
from engine.vision.pictures import is_place

Origin = Literal["none", "drafter", "ngram"]

_NGRAM_MOST = 23
_LENGTHS = (8, 16)
"""Where a match counts as middling and as long."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """Drafted tokens. `kind` numbers the books that its outcome belongs into.

    Of a drafter's draft `tokens` are those worth reading; `chances` are those of all, and `drafting_s` the
    seconds that drafting took.
    """

    tokens: tuple[int, ...]
    origin: Origin
    kind: int = 0
    chances: tuple[float, ...] = ()
    drafting_s: float = 0.0


_NOTHING = Proposal((), "none")


class Speculator:
    """Proposes drafts for each step and learns from what came of them."""

    def __init__(self, cache: Cache, fixed: int | None = None, *, cuts: bool = True) -> None:
        """`fixed` drafts that many tokens at every step with the drafter alone; 0 never drafts. With `cuts`
        only those of them are read that are worth it."""
        self._cache = cache
        self._cuts = cuts
        self._confidence = Confidence()
        self._fixed = fixed
        self._index = NgramIndex()
        most = cache.drafter.most if cache.drafter else 0
        self._drafter = Depth(most, is_cut=cuts) if most else None
        costs = Costs()
        hopes = (0.5, 0.7, 0.9)
        self._ngram = tuple(Depth(_NGRAM_MOST, hoped, costs) for hoped in hopes)
        self._ngram_costs = costs

    def begin(self, ids: Sequence[int]) -> None:
        """A reply to the conversation `ids` begins."""
        if self._fixed is None:
            self._index.follow(ids)

    def append(self, token: int) -> None:
        """The conversation grew by a token."""
        if self._fixed is None:
            self._index.append(token)

    def propose(self, last: int, position: int, room: int) -> Proposal:
        """At most `room` tokens that may follow `last`, the token at `position` that was not read yet."""
        if room < 1 or self._fixed == 0:
            return _NOTHING
        if self._fixed is not None:
            return self._draft(last, position, min(self._fixed, room))
        depth = self._wanted_of_drafter(room)
        if found := self._repeated(room, depth):
            return found
        if not depth:
            return _NOTHING
        return self._draft(last, position, depth)

    def _draft(self, last: int, position: int, depth: int) -> Proposal:
        """What of the drafter's draft is worth reading."""
        started = time.perf_counter()
        draft = self._cache.draft(last, position, depth)
        if not draft.tokens:
            return _NOTHING
        count = self._confidence.cut(draft.chances) if self._cuts else depth
        took = time.perf_counter() - started
        return Proposal(draft.tokens[:count], "drafter", 0, draft.chances, took)

    def observe(self, proposal: Proposal, stood: int, seconds: float) -> None:
        """Of the proposal's tokens `stood` stood, and the step took so long."""
        if proposal.origin == "drafter":
            self._observe_draft(proposal, stood, seconds)
        if self._fixed is not None:
            return
        if proposal.origin == "none":
            self._ngram_costs.observe(0, seconds)
            if self._drafter is not None:
                self._drafter.observe(0, stood, seconds)
        elif proposal.origin == "ngram":
            self._ngram[proposal.kind].observe(len(proposal.tokens), stood, seconds)
        used = self._ngram[proposal.kind] if proposal.origin == "ngram" else self._drafter
        for book in (*self._ngram, self._drafter):
            if book is not None and book is not used:
                book.wait(seconds)

    def _observe_draft(self, proposal: Proposal, stood: int, seconds: float) -> None:
        """Learn from a draft; what the drafter had to catch up with is not the draft's cost."""
        caught_up = self._cache.drafter.caught_up_s if self._cache.drafter is not None else 0.0
        read = len(proposal.tokens)
        reading = max(0.0, seconds - proposal.drafting_s)
        seconds = max(0.0, seconds - caught_up)
        self._confidence.observe(proposal.chances, read, stood, seconds, reading)
        if self._drafter is not None:
            self._drafter.observe(len(proposal.chances), stood, seconds, read)
            self._drafter.lose(caught_up)

    @property
    def drafter_depth(self) -> Depth | None:
        """The books of the drafter, to report from."""
        return self._drafter

    def _wanted_of_drafter(self, room: int) -> int:
        """How many tokens the drafter is to draft now."""
        if self._drafter is None or self._cache.drafter is None:
            return 0
        choice = self._drafter.choose(room)
        if not choice.is_trial:
            self._cache.drafter.is_in_use = choice.depth > 0
        return choice.depth

    def _repeated(self, room: int, depth: int) -> Proposal | None:
        """A draft from the conversation, where it promises more than `depth` tokens of the drafter."""
        match = self._index.match(min(room, _NGRAM_MOST))
        if match is None:
            return None
        tokens = tuple(takewhile(lambda token: not is_place(token), match.tokens))
        if not tokens:
            return None
        kind = _kind(match)
        choice = self._ngram[kind].choose(len(tokens))
        if not choice.depth:
            return None
        rival = self._drafter.rate(depth) if self._drafter else self._ngram[kind].rate(0)
        if not choice.is_trial and choice.rate <= rival:
            return None
        return Proposal(tokens[: choice.depth], "ngram", kind)


def _kind(match: Match) -> int:
    return sum(match.length >= length for length in _LENGTHS)
