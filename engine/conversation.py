"""The conversation as the model holds it: its ids, its cache, and how both follow a request's history.

The log is always true to the cache: ids enter it when they are planned or drawn, and are counted as cached
when a decode step took them. So a reply may stop anywhere and the next one goes on from there.
"""

import threading
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress

from engine.blocks import Blocks, StrengthNote, SystemSource, pieces_of
from engine.cache import Cache
from engine.chat_format import GENERATION_PROMPT, ImagePiece, Marker, Piece
from engine.errors import ContextFull, EngineError
from engine.eviction import removable
from engine.expiry import expired, marked
from engine.keeper import SHORTEST_PREFIX, Keeper
from engine.memory import Memory, MemoryState
from engine.messages import Image
from engine.protocol import Delta, EngineNotice, Kept, PrefillProgress, Request, SpanEvicted
from engine.state_file import ConversationState, StateUnusable
from engine.token_log import Block, LogState, Plan, Span, TokenLog, Wanted
from engine.vision.pictures import Pictures, is_place
from engine.vocabulary import Vocabulary

_ROOM_SHARE = 16
"""Once room must be made, a 16th of the context is freed, so that it need not be made at every step."""


class Conversation:
    """One conversation after the other over one cache."""

    def __init__(
        self,
        cache: Cache,
        vocabulary: Vocabulary,
        keeper: Keeper | None = None,
        pictures: Pictures | None = None,
    ) -> None:
        """`keeper` keeps the system block between runs; without `pictures` the model sees none."""
        self.cache = cache
        self.log = TokenLog()
        self._memory = Memory(cache)
        self._blocks = Blocks()
        self._vocabulary = vocabulary
        self._keeper = keeper
        self._pictures = pictures
        self._prefix: ConversationState | None = None
        self._is_restored = False
        self._eot = self.marker_id(Marker.EOT)

    @property
    def in_use(self) -> int:
        """Cells of the cache that are taken."""
        return self._memory.in_use(self.log.cached)

    @property
    def used_by_pictures(self) -> int:
        """Of the cells that are taken, those of pictures."""
        if self._pictures is None:
            return 0
        ids = self.log.ids[: self.log.cached]
        count = sum(is_place(token) for token in ids)
        freed = (ids[hole.start : hole.end] for hole in self._memory.holes.all if hole.is_open)
        return count - sum(is_place(token) for part in freed for token in part)

    def reset(self) -> None:
        """Forget the conversation; what is held of its system block is of use for the next one."""
        self.log.forget()
        self._forget_sources()

    def clear(self) -> None:
        """Forget everything, the system block too."""
        self.log.clear()
        self._forget_sources()
        self._memory.clear()

    def _forget_sources(self) -> None:
        """Forget what the messages of the conversation that is over were made of."""
        self._blocks.forget()
        if self._pictures is not None:
            self._pictures.forget()

    def store(self) -> ConversationState:
        """The conversation and all that the model holds of it."""
        return ConversationState(self.log.store(), self._memory.store(self.log.cached))

    def restore(self, state: ConversationState) -> None:
        """Become what `store` gave. Raises EngineError; the conversation is empty then."""
        self._is_restored = True
        self._blocks.forget()
        try:
            self.log.restore(state.log)
            self._memory.restore(state.memory)
        except (EngineError, ValueError) as error:
            self.log.clear()
            self._memory.clear()
            raise StateUnusable("A stored cache was not used.", str(error)) from error

    def evict(self, message_id: str) -> int:
        """Remove what can be removed of a message from the cache; returns the tokens freed.

        Nothing is recomputed: what came later keeps what it absorbed. Only what lies beyond the window
        can go, and never the system block or the person's last message.
        """
        freed = 0
        for removal in removable(self.log.spans, self._memory.holes):
            if removal.message_id == message_id and removal.end <= self._memory.passed(self.log.cached):
                self._remove(removal.start, removal.end)
                freed += removal.end - removal.start
        return freed

    def expire(self, request: Request) -> Iterator[Delta]:
        """Free the cells of what the request marks as expired, as far as the window has passed it."""
        messages = marked(request.messages)
        if not messages:
            return
        passed = self._memory.passed(self.log.cached)
        for removal in expired(self.log.spans, self.log.ids, messages, self._places):
            start, end = removal.start, removal.end
            if end <= passed and not self._memory.holes.covers(start, end):
                self._remove(start, end)
                yield SpanEvicted(removal.message_id, end - start)

    def _places(self, image: Image) -> tuple[int, ...]:
        return self._pictures.places(image) if self._pictures else ()

    def follow(self, request: Request) -> Iterator[Delta]:
        """Hold what an earlier run left of this conversation's beginning, where nothing is held yet."""
        if self._keeper is not None and not self.log.spans:
            yield from self._warm(self._keeper, request)
        self._recognize(request)

    def _warm(self, keeper: Keeper, request: Request) -> Iterator[Delta]:
        """Hold the system block from an earlier run."""
        try:
            system = self._blocks.wanted(request, ())[0]
            if (state := keeper.load_prefix(self._block(system).ids)) is not None:
                self.restore(state)
        except StateUnusable as problem:
            yield EngineNotice(str(problem))

    def _recognize(self, request: Request) -> None:
        """Find out with which reasoning strength a conversation that was just restored began, and where it
        changed."""
        if self._is_restored and self.log.spans:
            self._blocks.recognize(request, self.log.spans, self._lies_at)
        self._is_restored = False

    def _lies_at(self, source: SystemSource | StrengthNote, span: Span) -> bool:
        """Whether a span holds what `source` is as ids."""
        return self.ids(pieces_of(source)) == self.log.ids[span.start : span.end]

    def _note_prefix(self, end: int) -> None:
        """The system block was just read, and nothing after it: take down what is held, to keep it."""
        if self._keeper is None or end < SHORTEST_PREFIX:
            return
        log = LogState(self.log.ids[:end], self.log.spans[:1], {}, end, end)
        memory = MemoryState(self.cache.store(end), (), self._memory.checkpoints.kept)
        self._prefix = ConversationState(log, memory)

    def keep_prefix(self) -> None:
        """Write what `_note_prefix` took down, now that nobody waits."""
        prefix, self._prefix = self._prefix, None
        if prefix is None or self._keeper is None:
            return
        with suppress(OSError):
            self._keeper.save_prefix(prefix.log.ids, prefix)

    def plan(self, request: Request) -> Plan:
        """The log as the request wants it, with room for at least one token more. Changes nothing."""
        wanted = self._blocks.wanted(request, (span.message_id for span in self.log.spans))
        matched = self.log.matched(wanted)
        blocks = [self._block(block) for block in wanted[matched:]]
        blocks.append(Block("reply", request.reply_id, None, self.ids(GENERATION_PROMPT)))
        plan = self.log.plan(matched, blocks, self._eot)
        needed = len(plan.ids) - self._memory.holes.within(plan.common)
        before = removable(plan.spans[:-1], self._memory.holes)
        needed -= sum(removal.end - removal.start for removal in before)
        if needed >= self.cache.size:
            raise _context_full(needed, self.cache.size)
        return plan

    def _block(self, wanted: Wanted) -> Block:
        if (drawn := self.log.reply(wanted)) is not None:
            return Block("reply", wanted.message_id, None, drawn)
        return Block(wanted.kind, wanted.message_id, wanted.source, self.ids(pieces_of(wanted.source)))

    def ids(self, pieces: Iterable[Piece]) -> tuple[int, ...]:
        """Pieces as ids: a marker is its token, everything else plain text."""
        ids: list[int] = []
        for piece in pieces:
            match piece:
                case Marker():
                    ids.append(self.marker_id(piece))
                case str():
                    ids += self._vocabulary.tokenize(piece)
                case ImagePiece(image):
                    ids.append(self.marker_id(Marker.IMAGE_START))
                    ids += self._seen().places(image)
                    ids.append(self.marker_id(Marker.IMAGE_END))
        return tuple(ids)

    def _seen(self) -> Pictures:
        if self._pictures is None:
            raise EngineError(
                "This model cannot look at pictures.",
                "It was loaded without a vision projector.",
                "Put the file mmproj-Muse-Glimmer-30B-Q4_K_M.gguf beside the model, or describe the picture.",
            )
        return self._pictures

    def marker_id(self, marker: Marker) -> int:
        """A marker's token. Raises EngineError for a vocabulary without it."""
        token = self._vocabulary.special(marker.value)
        if token is None:
            raise EngineError(
                f"The model's vocabulary lacks {marker.value}.", "", "Choose another model file."
            )
        return token

    def checkpoint(self) -> None:
        """Remember how to come back to here."""
        self._memory.checkpoint(self.log.cached)

    def adopt(self, plan: Plan) -> tuple[Kept, int]:
        """Make the cache hold a prefix of the plan, the longest that is exact, and adopt the plan."""
        how, kept = "appended", plan.keepable
        if kept < self.log.cached:
            with self._or_lost():
                how, kept = self._memory.go_back(kept)
        self._memory.holes.forget_after(plan.common)
        self.log.apply(plan, kept)
        return how, kept

    def read(self, cancelled: threading.Event) -> Iterator[Delta]:
        """Read all pending ids, a batch at a time, unless it is cancelled between two batches."""
        total = self.log.waiting
        done = 0
        stations = self._stations()
        while done < total and not cancelled.is_set():
            limit = self.cache.batch_size
            here = self.log.cached
            if coming := next((station for station in stations if station > here), None):
                limit = min(limit, coming - here)
            limit = min(limit, self.log.waiting)
            yield from self.make_room(limit)
            if is_place(self.log.pending(1)[0]):
                yield from self._seen().see(self.log.pending(1), lambda: not cancelled.is_set())
                if cancelled.is_set():
                    return
            done += self.step(limit)
            with self._or_lost():
                self._memory.reopen(self.log.cached)
            if self.log.cached == coming and done < total:
                is_system = coming == stations[0]
                self._memory.checkpoint(self.log.cached, pinned=is_system)
                if is_system:
                    self._note_prefix(self.log.cached)
            yield PrefillProgress(done, total)

    def _stations(self) -> list[int]:
        """Where reading pauses for a checkpoint: after the system block, before the person's last message."""
        spans = self.log.spans
        users = [span.start for span in spans if span.kind == "user"]
        return sorted({spans[0].end, *users[-1:]})

    def make_room(self, count: int) -> Iterator[Delta]:
        """Free cells until `count` more fit. Raises ContextFull where nothing more can go."""
        size = self.cache.size
        if self.in_use + count <= size:
            return
        wanted = size - max(count, size // _ROOM_SHARE)
        passed = self._memory.passed(self.log.cached)
        for removal in removable(self.log.spans, self._memory.holes):
            if self.in_use <= wanted:
                return
            if removal.end <= passed:
                self._remove(removal.start, removal.end)
                yield SpanEvicted(removal.message_id, removal.end - removal.start)
        if self.in_use + count > size:
            raise _context_full(self.in_use + count, size)

    def step(self, limit: int) -> int:
        """Decode at most `limit` pending ids, tokens or a picture's vectors, and say how many.

        A failure empties the cache, and the log stays right.
        """
        batch = self.log.pending(limit)
        if is_place(batch[0]):
            count = self._read_picture(batch)
        else:
            count = next((at for at, token in enumerate(batch) if is_place(token)), len(batch))
            with self._or_lost():
                self.cache.read(batch[:count], self.log.cached, self.log.waiting - count)
        self.log.advance(count)
        return count

    def _read_picture(self, places: Sequence[int]) -> int:
        """Read the vectors of the picture that `places` begin with; returns how many."""
        pictures = self._seen()
        count = pictures.run(places)
        if (vectors := pictures.vectors(places[:count])) is None:
            raise EngineError("A picture was to be read before it was encoded.")
        with self._or_lost():
            self.cache.read_vectors(vectors, self.log.cached, self.log.waiting - count)
        return count

    def lose_cache(self) -> None:
        """Empty the cache; the conversation stays, and is read again."""
        self._memory.lose()
        self.log.lose_cache()

    def _remove(self, start: int, end: int) -> None:
        with self._or_lost():
            self._memory.remove(start, end)

    @contextmanager
    def _or_lost(self) -> Generator[None]:
        """What fails half-way leaves the cache unknown, so it is emptied then."""
        try:
            yield
        except BaseException:
            self.lose_cache()
            raise


def _context_full(needed: int, size: int) -> ContextFull:
    return ContextFull(
        "The conversation no longer fits the context window.",
        f"It takes {needed} tokens of {size}.",
        "Compact it, start a new one, or load the model with a larger context.",
    )
