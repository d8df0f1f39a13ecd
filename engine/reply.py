"""A reply being written: its length so far, and its tokens on their way to deltas."""

import codecs
from collections.abc import Iterator, Mapping

from engine.chat_format import Marker
from engine.protocol import Delta, ReasoningDelta, Request, StopReason, ToolCallReady
from engine.stream_parser import StreamParser

_UNLIMITED = 1 << 30


class Reply:
    """Counts what was drawn and turns it into deltas."""

    def __init__(self, request: Request, markers: Mapping[int, Marker]) -> None:
        self.generated = self.steps = self.drafted = self.accepted = 0
        self.made_call = False
        self.reasoned = 0
        """Tokens that were reasoning."""
        self.is_reasoning = False
        self.reasoning_limit = request.reasoning_tokens
        self.was_hurried = False
        self._limit = request.max_tokens
        self._markers = markers
        self._text = codecs.getincrementaldecoder("utf-8")("replace")
        self._parser = StreamParser(request.tools)

    @property
    def room(self) -> int:
        """How many more tokens may be drawn before something has to be decided."""
        room = _UNLIMITED if self._limit is None else self._limit - self.generated
        if self.is_reasoning and self.reasoning_limit is not None:
            room = min(room, self.reasoning_limit - self.reasoned)
        return room

    @property
    def is_full(self) -> bool:
        return self._limit is not None and self.generated >= self._limit

    def count_step(self, drafted: int, accepted: int) -> None:
        """One decode step was taken."""
        self.steps += 1
        self.drafted += drafted
        self.accepted += accepted

    def feed(self, token: int, piece: bytes) -> Iterator[Delta]:
        """A token of the reply. Bytes wait until they make a whole character; a marker ends the wait."""
        marker = self._markers.get(token)
        if text := self._text.decode(piece, marker is not None):
            deltas = self._seen(self._parser.feed(text))
            if any(isinstance(delta, ReasoningDelta) for delta in deltas):
                self.is_reasoning = True
            yield from deltas
        if marker is not None:
            self.is_reasoning = False
            yield from self._seen(self._parser.feed(marker))
        self.reasoned += self.is_reasoning

    def finish(self, stop: StopReason) -> Iterator[Delta]:
        """What is left to say once no token follows."""
        if text := self._text.decode(b"", True):
            yield from self._seen(self._parser.feed(text))
        yield from self._seen(self._parser.finish(stop))

    def _seen(self, deltas: list[Delta]) -> list[Delta]:
        self.made_call = self.made_call or any(isinstance(delta, ToolCallReady) for delta in deltas)
        return deltas
