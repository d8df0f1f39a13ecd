"""One reply: read what is new, draw tokens, hand out what they mean. Blocking; runs on the worker thread.

The token log is always true to the cache: ids enter it when they are planned or drawn, and are counted as
cached when a decode step took them. So a reply may stop anywhere and the next one goes on from there.
"""

import threading
import time
from collections.abc import Generator as Yields
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass

from engine.blocks import Blocks, pieces_of
from engine.cache import Cache
from engine.chat_format import GENERATION_PROMPT, ImagePiece, Marker, Piece
from engine.checkpoints import DEFAULT_BUDGET
from engine.constraint import CallConstraint
from engine.errors import ContextFull, EngineError
from engine.eviction import next_removal, removable
from engine.keeper import SHORTEST_PREFIX, Keeper
from engine.memory import Memory, MemoryState
from engine.messages import ToolSchema
from engine.protocol import (
    Delta,
    Done,
    EngineNotice,
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
from engine.state_file import ConversationState, StateUnusable
from engine.token_log import Block, LogState, Plan, TokenLog, Wanted
from engine.verifier import verified
from engine.vocabulary import Vocabulary

_ROOM_SHARE = 16
"""Once room must be made, a 16th of the context is freed, so that it need not be made at every step."""


@dataclass(frozen=True, slots=True)
class GeneratorOptions:
    """`drafts` fixes the drafts a step (None: as many as pay); `evicts`: whether old spans may make room;
    `constrains`: whether calls are kept well formed while they are drawn."""

    drafts: int | None = None
    evicts: bool = True
    constrains: bool = True
    keeper: Keeper | None = None
    """Where the system block is kept between runs."""
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
        self._keeper = options.keeper
        self._prefix: ConversationState | None = None
        self._constrains = options.constrains
        self._constraint: tuple[tuple[ToolSchema, ...], CallConstraint] | None = None
        self._log = TokenLog()
        self._blocks = Blocks()
        self._is_restored = False
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
        """Forget the conversation; what is held of its system block is of use for the next one."""
        self._log.forget()
        self._blocks.forget()

    def clear(self) -> None:
        """Forget everything, the system block too."""
        self._log.clear()
        self._blocks.forget()
        self._memory.clear()

    def store(self) -> ConversationState:
        """The conversation and all that the model holds of it."""
        return ConversationState(self._log.store(), self._memory.store(self._log.cached))

    def restore(self, state: ConversationState) -> None:
        """Become what `store` gave. Raises EngineError; the conversation is empty then."""
        self._is_restored = True
        try:
            self._log.restore(state.log)
            self._memory.restore(state.memory)
        except (EngineError, ValueError) as error:
            self._log.clear()
            self._memory.clear()
            raise StateUnusable("A stored cache was not used.", str(error)) from error

    def generate(self, request: Request, cancelled: threading.Event) -> Iterator[Delta]:
        """The deltas of one reply, `Done` last. Set `cancelled` to stop it within one decode step.

        Raises ContextFull before anything is read when the history leaves no room for a reply, and
        EngineError; the next call works in both cases.
        """
        constraint = self._constraint_for(request.tools)
        with closing(Sampler(request.sampling or self._sampling, constraint)) as sampler:
            yield from self._warm(request)
            self._recognize(request)
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
        self._keep_prefix()

    def close(self) -> None:
        """Free what is native: the grammars. The cache is the caller's."""
        if self._constraint is not None:
            self._constraint[1].close()
            self._constraint = None

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

    def _constraint_for(self, tools: tuple[ToolSchema, ...]) -> CallConstraint | None:
        """The constraint for these tools, at the beginning of a reply."""
        if not self._constrains:
            return None
        if self._constraint is None or self._constraint[0] != tools:
            self.close()
            self._constraint = (tools, CallConstraint(self._vocabulary, tools))
        self._constraint[1].reset()
        return self._constraint[1]

    @property
    def _in_use(self) -> int:
        """Cells of the cache that are taken."""
        return self._memory.in_use(self._log.cached)

    def _warm(self, request: Request) -> Iterator[Delta]:
        """Hold the system block from an earlier run, where nothing is held yet."""
        if self._keeper is None or self._log.ids:
            return
        try:
            system = self._blocks.wanted(request, ())[0]
            if (state := self._keeper.load_prefix(self._block(system).ids)) is not None:
                self.restore(state)
        except StateUnusable as problem:
            yield EngineNotice(str(problem))

    def _recognize(self, request: Request) -> None:
        """Find out with which reasoning strength a conversation that was just restored began."""
        if self._is_restored and self._log.spans:
            begun = self._log.ids[: self._log.spans[0].end]
            self._blocks.recognize(request, lambda source: self._ids(pieces_of(source)) == begun)
        self._is_restored = False

    def _note_prefix(self, end: int) -> None:
        """The system block was just read, and nothing after it: take down what is held, to keep it."""
        if self._keeper is None or end < SHORTEST_PREFIX:
            return
        log = LogState(self._log.ids[:end], self._log.spans[:1], {}, end, end)
        memory = MemoryState(self._cache.store(end), (), self._memory.checkpoints.kept)
        self._prefix = ConversationState(log, memory)

    def _keep_prefix(self) -> None:
        """Write what `_note_prefix` took down, now that nobody waits."""
        prefix, self._prefix = self._prefix, None
        if prefix is None or self._keeper is None:
            return
        with suppress(OSError):
            self._keeper.save_prefix(prefix.log.ids, prefix)

    def _plan(self, request: Request) -> Plan:
        """The log as the request wants it, with room for at least one token more. Changes nothing."""
        wanted = self._blocks.wanted(request, (span.message_id for span in self._log.spans))
        matched = self._log.matched(wanted)
        blocks = [self._block(block) for block in wanted[matched:]]
        blocks.append(Block("reply", request.reply_id, None, self._ids(GENERATION_PROMPT)))
        plan = self._log.plan(matched, blocks, self._eot)
        needed = len(plan.ids) - self._memory.holes.within(plan.common)
        if self._evicts:
            before = removable(plan.spans[:-1], self._memory.holes)
            needed -= sum(removal.end - removal.start for removal in before)
        if needed >= self._cache.size:
            raise _context_full(needed, self._cache.size)
        return plan

    def _block(self, wanted: Wanted) -> Block:
        if (drawn := self._log.reply(wanted)) is not None:
            return Block("reply", wanted.message_id, None, drawn)
        return Block(wanted.kind, wanted.message_id, wanted.source, self._ids(pieces_of(wanted.source)))

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
                is_system = coming == stations[0]
                self._memory.checkpoint(self._log.cached, pinned=is_system)
                if is_system:
                    self._note_prefix(self._log.cached)
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
            if forced := self._end_of_reasoning(reply):
                drawn = self._force(forced, sampler)
                continue
            if not self._log.waiting:
                drawn = [sampler.sample(self._cache, -1)]
                self._note(drawn)
                continue
            try:
                yield from self._make_room(self._log.waiting)
            except ContextFull:
                return "context_full"
            if self._log.waiting > 1:
                self._step(self._log.waiting - 1)
            drawn = self._write(reply, sampler)

    def _write(self, reply: Reply, sampler: Sampler) -> list[int]:
        """One decode step: read the newest token and drafts of what follows. Returns what was drawn."""
        position, last = self._log.cached, self._log.last
        free = self._cache.size - self._in_use
        room = min(free, self._cache.most_verified, reply.room) - 1
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

    def _end_of_reasoning(self, reply: Reply) -> tuple[int, ...]:
        """What is to be written where the model reasoned for too long; nothing where it did not.

        At first it may choose what to do instead. Where it goes on reasoning it is made to answer.
        """
        limit = reply.reasoning_limit
        if limit is None or not reply.is_reasoning or reply.reasoned < limit:
            return ()
        again: tuple[Piece, ...] = (Marker.EOM, *GENERATION_PROMPT)
        reply.reasoning_limit = limit + max(1, limit // 4)
        if reply.was_hurried:
            again = (*again, " to=user", Marker.MESSAGE)
        reply.was_hurried = True
        return self._ids(again)

    def _force(self, tokens: tuple[int, ...], sampler: Sampler) -> list[int]:
        """Write tokens that were not drawn."""
        for token in tokens:
            sampler.force(token)
        self._note(list(tokens))
        return list(tokens)

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
