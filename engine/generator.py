"""One reply: read what is new, draw tokens, hand out what they mean. Blocking; runs on the worker thread."""

import threading
import time
from collections.abc import Generator as Yields
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

from engine.cache import Cache
from engine.calls.constraint import CallConstraint
from engine.chat_format import GENERATION_PROMPT, Marker, Piece
from engine.conversation import Conversation
from engine.errors import ContextFull
from engine.keeper import Keeper
from engine.messages import ToolSchema
from engine.protocol import Delta, Done, Request, Sampling, SamplingWish, StopReason, Timings, Usage
from engine.reply import Reply
from engine.sampler import Sampler
from engine.speculator import Speculator
from engine.verifier import verified
from engine.vision.pictures import Pictures
from engine.vocabulary import Vocabulary

_STOPS = frozenset({Marker.EOT, Marker.END_OF_TEXT})


@dataclass(frozen=True, slots=True)
class GeneratorOptions:
    """`drafts` fixes the drafts a step (None: as many as pay); `constrains`: whether calls are kept well
    formed while they are drawn; `keeper`: where the system block is kept between runs; `pictures`: what sees
    pictures."""

    drafts: int | None = None
    constrains: bool = True
    keeper: Keeper | None = None
    pictures: Pictures | None = None


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
        self.conversation = Conversation(cache, vocabulary, options.keeper, options.pictures)
        self.speculator = Speculator(cache, options.drafts)
        self._cache = cache
        self._log = self.conversation.log
        self._vocabulary = vocabulary
        self._sampling = sampling
        self._constrains = options.constrains
        self._constraint: tuple[tuple[ToolSchema, ...], CallConstraint] | None = None
        self._markers = {
            token: marker for marker in Marker if (token := vocabulary.special(marker.value)) is not None
        }
        self._eot = self.conversation.marker_id(Marker.EOT)
        self._stops = {token for token, marker in self._markers.items() if marker in _STOPS}

    def generate(self, request: Request, cancelled: threading.Event) -> Iterator[Delta]:
        """The deltas of one reply, `Done` last. Set `cancelled` to stop it within one decode step.

        Raises ContextFull before anything is read when the history leaves no room for a reply, and
        EngineError; the next call works in both cases.
        """
        constraint = self._constraint_for(request.tools)
        with closing(Sampler(self._sampling_for(request), constraint)) as sampler:
            talk = self.conversation
            yield from talk.follow(request)
            plan = talk.plan(request)
            how, kept = talk.adopt(plan)
            started = time.perf_counter()
            yield from talk.expire(request)
            yield from talk.read(cancelled)
            read = self._log.cached - kept
            is_read = kept + read >= len(plan.ids)
            if is_read:
                talk.checkpoint()
                self.speculator.begin(self._log.ids)
            prefilled = time.perf_counter()
            reply = Reply(request, self._markers)
            stop: StopReason = "cancelled"
            if is_read:
                stop = yield from self._decode(reply, sampler, cancelled)
            yield from reply.finish(stop)
            written = time.perf_counter()
            if stop == "end" and not reply.made_call:
                talk.checkpoint()
            usage = Usage(
                prompt=len(plan.ids),
                reused=kept,
                prefilled=read,
                reread=plan.reread(kept, kept + read),
                generated=reply.generated,
                context_used=talk.in_use,
                context_size=self._cache.size,
                kept=how,
                steps=reply.steps,
                drafted=reply.drafted,
                accepted=reply.accepted,
                pictures=talk.used_by_pictures,
            )
            yield Done(stop, usage, Timings(prefilled - started, written - prefilled))
        self.conversation.keep_prefix()

    def close(self) -> None:
        """Free what is native: the grammars. The cache is the caller's."""
        if self._constraint is not None:
            self._constraint[1].close()
            self._constraint = None

    def _sampling_for(self, request: Request) -> Sampling:
        match request.sampling:
            case None:
                return self._sampling
            case SamplingWish() as wish:
                return wish.over(self._sampling)
            case sampling:
                return sampling

    def _constraint_for(self, tools: tuple[ToolSchema, ...]) -> CallConstraint | None:
        """The constraint for these tools, at the beginning of a reply."""
        if not self._constrains:
            return None
        if self._constraint is None or self._constraint[0] != tools:
            self.close()
            self._constraint = (tools, CallConstraint(self._vocabulary, tools))
        self._constraint[1].reset()
        return self._constraint[1]

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
                yield from self.conversation.make_room(self._log.waiting)
            except ContextFull:
                return "context_full"
            if self._log.waiting > 1:
                self.conversation.step(self._log.waiting - 1)
            drawn = self._write(reply, sampler)

    def _write(self, reply: Reply, sampler: Sampler) -> list[int]:
        """One decode step: read the newest token and drafts of what follows. Returns what was drawn."""
        position, last = self._log.cached, self._log.last
        free = self._cache.size - self.conversation.in_use
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
            self.conversation.lose_cache()
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
        return self.conversation.ids(again)

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
