"""One reply: read what is new, draw tokens, hand out what they mean. Blocking; runs on the worker thread.

The token log is always true to the cache: ids enter it when they are planned or drawn, and are counted as
cached when a decode step took them. So a reply may stop anywhere and the next one goes on from there.
"""

import threading
import time
from collections.abc import Generator as Yields
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass

from engine.cache import Cache
from engine.chat_format import GENERATION_PROMPT, ImagePiece, Marker, Piece, message_pieces, system_pieces
from engine.checkpoints import DEFAULT_BUDGET
from engine.errors import ContextFull, EngineError
from engine.eviction import next_removal, removable
from engine.memory import Memory
from engine.messages import Message, text_of
from engine.protocol import (
    Delta,
    Done,
    Kept,
    PrefillProgress,
    Request,
    Sampling,
    SpanEvicted,
    StopReason,
    Timings,
    Usage,
)
from engine.reply import Reply
from engine.sampler import Sampler
from engine.speculator import Speculator
from engine.token_log import Block, Plan, TokenLog, Wanted
from engine.verifier import verified
from engine.vocabulary import Vocabulary

_ROOM_SHARE = 16
"""Once room must be made, a 16th of the context is freed, so that it need not be made at every step."""


@dataclass(frozen=True, slots=True)
class GeneratorOptions:
    """`drafts` fixes the drafts a step (None: as many as pay); `evicts`: whether old spans may make room."""

    drafts: int | None = None
    evicts: bool = True
    checkpoint_bytes: int = DEFAULT_BUDGET


class Generator:
    """Replies to one conversation after the other over one cache."""

    def __init__(
        self,
        cache: Cache,
        vocabulary: Vocabulary,
        sampling: Sampling,
        options: GeneratorOptions | None = None,
    ) -> None:
        """`sampling` is used where a request names none."""
        options = options or GeneratorOptions()
        self._cache = cache
        self._memory = Memory(cache, options.checkpoint_bytes)
        self._vocabulary = vocabulary
        self._sampling = sampling
        self._evicts = options.evicts
        self._log = TokenLog()
        self.speculator = Speculator(cache, options.drafts)
        self._markers = {
            token: marker for marker in Marker if (token := vocabulary.special(marker.value)) is not None
        }
        self._eot = self._marker_id(Marker.EOT)
        self._stops = {token for token, marker in self._markers.items() if marker in _STOPS}

    @property
    def log(self) -> TokenLog:
        """The conversation as ids."""
        return self._log

    def reset(self) -> None:
        """Forget the conversation."""
        self._log.clear()
        self._memory.clear()

    def generate(self, request: Request, cancelled: threading.Event) -> Iterator[Delta]:
        """The deltas of one reply, `Done` last. Set `cancelled` to stop it within one decode step.

        Raises ContextFull before anything is read when the history leaves no room for a reply, and
        EngineError; the next call works in both cases.
        """
        with closing(Sampler(request.sampling or self._sampling)) as sampler:
            plan = self._plan(request)
            how, kept = self._keep(plan)
            started = time.perf_counter()
            yield from self._prefill(cancelled)
            read = self._log.cached - kept
            prefilled = time.perf_counter()
            reply = Reply(request, self._markers)
            if kept + read < len(plan.ids):
                stop: StopReason = "cancelled"
            else:
                self._memory.checkpoint(self._log.cached)
                self.speculator.begin(self._log.ids)
                stop = yield from self._decode(reply, sampler, cancelled)
            yield from reply.finish(stop)
            if stop == "end" and not reply.made_call:
                self._memory.checkpoint(self._log.cached)
            usage = Usage(
                prompt=len(plan.ids),
                reused=kept,
                prefilled=read,
                reread=plan.reread(kept, kept + read),
                generated=reply.generated,
                context_used=self._in_use,
                context_size=self._cache.size,
                kept=how,
                steps=reply.steps,
                drafted=reply.drafted,
                accepted=reply.accepted,
            )
            yield Done(stop, usage, Timings(prefilled - started, time.perf_counter() - prefilled))

    def evict(self, message_id: str) -> int:
        """Remove what can be removed of a message from the cache; returns the tokens freed.

        Nothing is recomputed: what came later keeps what it absorbed. Only what lies beyond the window
        can go, and never the system block or the person's last message.
        """
        freed = 0
        for removal in removable(self._log.spans, self._memory.holes):
            if removal.message_id == message_id and removal.end <= self._memory.passed(self._log.cached):
                self._memory.remove(removal.start, removal.end)
                freed += removal.end - removal.start
        return freed

    @property
    def _in_use(self) -> int:
        """Cells of the cache that are taken."""
        return self._memory.in_use(self._log.cached)

    def _plan(self, request: Request) -> Plan:
        """The log as the request wants it, with room for at least one token more. Changes nothing."""
        wanted = list(_wanted(request))
        matched = self._log.matched(wanted)
        blocks = [self._block(request, block) for block in wanted[matched:]]
        blocks.append(Block("reply", request.reply_id, None, self._ids(GENERATION_PROMPT)))
        plan = self._log.plan(matched, blocks, self._eot)
        needed = len(plan.ids) - self._memory.holes.within(plan.common)
        if self._evicts:
            open_spans = removable(plan.spans, self._memory.holes)
            needed -= sum(span.end - span.start for span in open_spans)
        if needed >= self._cache.size:
            raise _context_full(needed, self._cache.size)
        return plan

    def _block(self, request: Request, wanted: Wanted) -> Block:
        if (drawn := self._log.reply(wanted)) is not None:
            return Block("reply", wanted.message_id, None, drawn)
        match wanted.source:
            case Message() as message:
                pieces = message_pieces(message)
            case _:
                pieces = system_pieces(_system_text(request), request.tools, request.strength)
        return Block(wanted.kind, wanted.message_id, wanted.source, self._ids(pieces))

    def _ids(self, pieces: Iterable[Piece]) -> tuple[int, ...]:
        ids: list[int] = []
        for piece in pieces:
            match piece:
                case Marker():
                    ids.append(self._marker_id(piece))
                case str():
                    ids += self._vocabulary.tokenize(piece)
                case ImagePiece():
                    raise EngineError(
                        "This model cannot look at pictures.",
                        "It was loaded without a vision projector.",
                        "Remove the picture, or describe it in words.",
                    )
        return tuple(ids)

    def _marker_id(self, marker: Marker) -> int:
        token = self._vocabulary.special(marker.value)
        if token is None:
            raise EngineError(
                f"The model's vocabulary lacks {marker.value}.", "", "Choose another model file."
            )
        return token

    def _keep(self, plan: Plan) -> tuple[Kept, int]:
        """Make the cache hold a prefix of the plan, the longest that is exact, and adopt the plan."""
        how, kept = "appended", plan.keepable
        if kept < self._log.cached:
            how, kept = self._memory.go_back(kept)
        self._memory.holes.forget_after(plan.common)
        self._log.apply(plan, kept)
        return how, kept

    def _prefill(self, cancelled: threading.Event) -> Iterator[Delta]:
        """Read all pending ids, a batch at a time, unless it is cancelled between two batches."""
        total = self._log.waiting
        done = 0
        stations = self._stations()
        while done < total and not cancelled.is_set():
            limit = self._cache.batch_size
            here = self._log.cached
            if coming := next((station for station in stations if station > here), None):
                limit = min(limit, coming - here)
            limit = min(limit, self._log.waiting)
            yield from self._make_room(limit)
            done += self._step(limit)
            self._memory.reopen(self._log.cached)
            if self._log.cached == coming and done < total:
                self._memory.checkpoint(self._log.cached, pinned=coming == stations[0])
            yield PrefillProgress(done, total)

    def _stations(self) -> list[int]:
        """Where reading pauses for a checkpoint: after the system block, before the person's last message."""
        spans = self._log.spans
        users = [span.start for span in spans if span.kind == "user"]
        return sorted({spans[0].end, *users[-1:]})

    def _make_room(self, count: int) -> Iterator[Delta]:
        """Free cells until `count` more fit. Raises ContextFull where nothing more can go."""
        size = self._cache.size
        if self._in_use + count <= size:
            return
        while self._in_use + max(count, size // _ROOM_SHARE) > size:
            passed = self._memory.passed(self._log.cached)
            removal = next_removal(self._log.spans, self._memory.holes, passed) if self._evicts else None
            if removal is None:
                if self._in_use + count <= size:
                    return
                raise _context_full(self._in_use + count, size)
            self._memory.remove(removal.start, removal.end)
            yield SpanEvicted(removal.message_id, removal.end - removal.start)

    def _step(self, limit: int) -> int:
        """Decode at most `limit` pending ids. A failure empties the cache, and the log stays right."""
        batch = self._log.pending(limit)
        try:
            self._cache.read(batch, self._log.cached, self._log.waiting - len(batch))
        except BaseException:
            self._lose_cache()
            raise
        self._log.advance(len(batch))
        return len(batch)

    def _lose_cache(self) -> None:
        self._memory.lose()
        self._log.lose_cache()

    def _decode(
        self, reply: Reply, sampler: Sampler, cancelled: threading.Event
    ) -> Yields[Delta, None, StopReason]:
        """Draw tokens until something stops it; returns what did. The last one drawn may be uncached."""
        drawn: list[int] = []
        while True:
            for token in drawn:
                reply.generated += 1
                if token in self._stops:
                    return "end"
                yield from reply.feed(token, self._vocabulary.piece(token))
            if cancelled.is_set():
                return "cancelled"
            if reply.is_full:
                return "length"
            if not self._log.waiting:
                drawn = [sampler.sample(self._cache, -1)]
                self._note(drawn)
                continue
            try:
                yield from self._make_room(1)
            except ContextFull:
                return "context_full"
            drawn = self._write(reply, sampler)

    def _write(self, reply: Reply, sampler: Sampler) -> list[int]:
        """One decode step: read the newest token and drafts of what follows. Returns what was drawn."""
        position, last = self._log.cached, self._log.last
        free = self._cache.size - self._in_use
        room = min(free, self._cache.batch_size, reply.room) - 1
        started = time.perf_counter()
        try:
            proposal = self.speculator.propose(last, position, room)
            if proposal.tokens:
                self._cache.verify([last, *proposal.tokens], position)
                drawn = verified(proposal.tokens, lambda row: sampler.sample(self._cache, row), self._stops)
                self._cache.accept(position, len(drawn), len(proposal.tokens) + 1)
            else:
                self._cache.read([last], position)
                drawn = [sampler.sample(self._cache, -1)]
        except BaseException:
            self._lose_cache()
            raise
        self.speculator.observe(proposal, len(drawn) - 1, time.perf_counter() - started)
        reply.count_step(len(proposal.tokens), len(drawn) - 1)
        self._log.advance(1)
        self._note(drawn)
        self._log.advance(len(drawn) - 1)
        return drawn

    def _note(self, drawn: list[int]) -> None:
        """Put drawn tokens into the log; whatever ended a reply, the log says `<|eot|>`."""
        for token in drawn:
            noted = self._eot if token in self._stops else token
            self._log.append(noted)
            self.speculator.append(noted)


_STOPS = frozenset({Marker.EOT, Marker.END_OF_TEXT})


def _context_full(needed: int, size: int) -> ContextFull:
    return ContextFull(
        "The conversation no longer fits the context window.",
        f"It takes {needed} tokens of {size}.",
        "Compact it, start a new one, or load the model with a larger context.",
    )


def _wanted(request: Request) -> Iterator[Wanted]:
    """The blocks of a request's history: the system block, then each message."""
    first, rest = _split(request)
    system_id = first.id if first else ""
    yield Wanted("system", system_id, (_system_text(request), request.tools, request.strength))
    for message in rest:
        yield Wanted(message.role, message.id, message)


def _split(request: Request) -> tuple[Message | None, tuple[Message, ...]]:
    messages = request.messages
    if messages and messages[0].role == "system":
        return messages[0], messages[1:]
    return None, messages


def _system_text(request: Request) -> str:
    first, _ = _split(request)
    return text_of(first) if first else ""
