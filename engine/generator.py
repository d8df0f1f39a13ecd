"""One reply: read what is new, draw tokens, hand out what they mean. Blocking; runs on the worker thread.

The token log is always true to the cache: ids enter it when they are planned or drawn, and are counted as
cached when a decode step took them. So a reply may stop anywhere and the next one goes on from there.
"""

import codecs
import threading
import time
from collections.abc import Generator as Yields
from collections.abc import Iterable, Iterator
from contextlib import closing

from engine.chat_format import GENERATION_PROMPT, ImagePiece, Marker, Piece, message_pieces, system_pieces
from engine.errors import ContextFull, EngineError
from engine.llama import Context, Vocabulary
from engine.messages import Message, text_of
from engine.protocol import Delta, Done, PrefillProgress, Request, Sampling, StopReason, Timings, Usage
from engine.sampler import Sampler
from engine.stream_parser import StreamParser
from engine.token_log import Block, Plan, TokenLog, Wanted


class Generator:
    """Replies to one conversation after the other over one context."""

    def __init__(self, context: Context, vocabulary: Vocabulary, sampling: Sampling) -> None:
        """`sampling` is used where a request names none."""
        self._context = context
        self._vocabulary = vocabulary
        self._sampling = sampling
        self._log = TokenLog()
        self._markers = {
            token: marker for marker in Marker if (token := vocabulary.special(marker.value)) is not None
        }
        self._eot = self._marker_id(Marker.EOT)
        self._stops = {token for token, marker in self._markers.items() if marker in _STOPS}

    def reset(self) -> None:
        """Forget the conversation."""
        self._log.clear()
        self._context.clear()

    def generate(self, request: Request, cancelled: threading.Event) -> Iterator[Delta]:
        """The deltas of one reply, `Done` last. Set `cancelled` to stop it within one decode step.

        Raises ContextFull before anything is read when the history leaves no room for a reply, and
        EngineError; the next call works in both cases.
        """
        with closing(Sampler(request.sampling or self._sampling)) as sampler:
            plan = self._plan(request)
            kept = self._keep(plan)
            started = time.perf_counter()
            yield from self._prefill(cancelled)
            read = self._log.cached - kept
            prefilled = time.perf_counter()
            reply = _Reply(request, self._markers)
            if kept + read < len(plan.ids):
                stop: StopReason = "cancelled"
            else:
                stop = yield from self._decode(reply, sampler, cancelled)
            yield from reply.finish(stop)
            usage = Usage(
                prompt=len(plan.ids),
                reused=kept,
                prefilled=read,
                reread=plan.reread(kept, kept + read),
                generated=reply.generated,
                context_used=self._log.cached,
                context_size=self._context.size,
            )
            yield Done(stop, usage, Timings(prefilled - started, time.perf_counter() - prefilled))

    def _plan(self, request: Request) -> Plan:
        """The log as the request wants it, with room for at least one token more. Changes nothing."""
        wanted = list(_wanted(request))
        matched = self._log.matched(wanted)
        blocks = [self._block(request, block) for block in wanted[matched:]]
        blocks.append(Block("reply", request.reply_id, None, self._ids(GENERATION_PROMPT)))
        plan = self._log.plan(matched, blocks, self._eot)
        if len(plan.ids) >= self._context.size:
            raise ContextFull(
                "The conversation no longer fits the context window.",
                f"It takes {len(plan.ids)} tokens of {self._context.size}.",
                "Compact it, start a new one, or load the model with a larger context.",
            )
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

    def _keep(self, plan: Plan) -> int:
        """Make the cache hold a prefix of the plan, the longest that is exact, and adopt the plan."""
        kept = plan.keepable
        if kept < self._log.cached:
            if kept and self._context.can_rewind(kept):
                self._context.rewind(kept)
            else:
                kept = 0
                self._context.clear()
        self._log.apply(plan, kept)
        return kept

    def _prefill(self, cancelled: threading.Event) -> Iterator[Delta]:
        """Read all pending ids, a batch at a time, unless it is cancelled between two batches."""
        total = self._log.waiting
        done = 0
        while done < total and not cancelled.is_set():
            done += self._step(self._context.batch_size)
            yield PrefillProgress(done, total)

    def _step(self, limit: int) -> int:
        """Decode at most `limit` pending ids. A failure empties the cache, and the log stays right."""
        batch = self._log.pending(limit)
        try:
            self._context.decode(batch, self._log.cached)
        except BaseException:
            self._context.clear()
            self._log.lose_cache()
            raise
        self._log.advance(len(batch))
        return len(batch)

    def _decode(
        self, reply: "_Reply", sampler: Sampler, cancelled: threading.Event
    ) -> Yields[Delta, None, StopReason]:
        """Draw tokens until something stops it; returns what did. The last one drawn may be uncached."""
        while True:
            if cancelled.is_set():
                return "cancelled"
            if reply.is_full:
                return "length"
            if self._log.waiting:
                if self._log.cached >= self._context.size:
                    return "context_full"
                self._step(1)
                continue
            token = sampler.sample(self._context)
            if token in self._stops:
                reply.generated += 1
                self._log.append(self._eot)
                return "end"
            self._log.append(token)
            yield from reply.feed(token, self._vocabulary.piece(token))


class _Reply:
    """A reply being written: its length so far, and its tokens on their way to deltas."""

    def __init__(self, request: Request, markers: dict[int, Marker]) -> None:
        self.generated = 0
        self._limit = request.max_tokens
        self._markers = markers
        self._text = codecs.getincrementaldecoder("utf-8")("replace")
        self._parser = StreamParser(request.tools)

    @property
    def is_full(self) -> bool:
        return self._limit is not None and self.generated >= self._limit

    def feed(self, token: int, piece: bytes) -> Iterator[Delta]:
        """A drawn token. Bytes wait until they make a whole character; a marker ends the wait."""
        self.generated += 1
        marker = self._markers.get(token)
        if text := self._text.decode(piece, marker is not None):
            yield from self._parser.feed(text)
        if marker is not None:
            yield from self._parser.feed(marker)

    def finish(self, stop: StopReason) -> Iterator[Delta]:
        if text := self._text.decode(b"", True):
            yield from self._parser.feed(text)
        yield from self._parser.finish(stop)


_STOPS = frozenset({Marker.EOT, Marker.END_OF_TEXT})


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
