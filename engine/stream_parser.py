"""From the tokens of a reply to its meaning: reasoning, answer and tool calls, while they stream.

A reply is read from right after `<|start|>assistant`. Structure is made by real marker tokens only; text
that spells a marker is text. What the model says is emitted as soon as it cannot be part of a header any
more, and nothing emitted is ever taken back.

A call is run only when its message is addressed to a tool. Reasoning may turn into such a message without
its end marker (` to=run<|message|>` with a real marker). An answer may not, and a call block inside an
answer or inside reasoning is text.
"""

import re
from collections.abc import Sequence
from enum import Enum, auto

from engine.calls.atem import BLOCK_CLOSE, CLOSING_TAGS, INVOKE_START, ends_on_block, parse_block
from engine.calls.check import CallCheck
from engine.chat_format import Marker
from engine.messages import ToolSchema
from engine.protocol import Delta, ReasoningDelta, StopReason, TextDelta, ToolCallStarted

_NAME = r"[^\s<>]{0,128}"
_HEADER_LIMIT = 200
_SWITCH_LIMIT = 136
_ROLES = ("assistant", "user", "system", "tool")
_HEADER = re.compile(rf"\s*(?P<role>{'|'.join(_ROLES)})?\s*(?:to=(?P<to>{_NAME}))?")
_RECIPIENT_SO_FAR = re.compile(rf"\s*(?:t|to|to={_NAME}\s*)?")
_SWITCH = re.compile(rf"(?:\s|(?<!\w))to=(?P<to>{_NAME})\s?\Z")
_SWITCH_SO_FAR = re.compile(rf"(?:(?:\s|(?<!\w))(?:t|to|to={_NAME}\s?)|\s)\Z")


class _Channel(Enum):
    """Where the text that comes next belongs."""

    HEADER = auto()
    REASONING = auto()
    ANSWER = auto()
    BARE = auto()
    """An answer that was begun without any header; a header may still come."""
    ASIDE = auto()
    """A message in the name of somebody else: shown as reasoning, and nothing in it counts."""
    CALL = auto()
    ENDED = auto()


_SPEECH = (_Channel.REASONING, _Channel.ANSWER, _Channel.BARE, _Channel.ASIDE)
_SWITCHABLE = (_Channel.REASONING, _Channel.BARE)


class StreamParser:
    """Reads one reply. Feed it markers and text in any cut, then finish it; it works in linear time."""

    def __init__(self, tools: Sequence[ToolSchema]) -> None:
        self._check = CallCheck(tools)
        self._channel = _Channel.HEADER
        self._role_due = False
        self._held = ""
        self._before = ""
        self._recipient = ""
        self._body: list[str] = []
        self._seam = ""
        self._tail = ""
        self._in_block = False
        self._called = False

    def feed(self, piece: Marker | str) -> list[Delta]:
        """What the next token, or the next piece of text, makes known."""
        if self._channel is _Channel.ENDED:
            return []
        return self._marker(piece) if isinstance(piece, Marker) else self._text(piece)

    def finish(self, stop: StopReason) -> list[Delta]:
        """The last deltas. Only a reply that came to its own end can still make or fail a call."""
        return [] if self._channel is _Channel.ENDED else self._end(stop)

    def _marker(self, marker: Marker) -> list[Delta]:
        match marker:
            case Marker.EOT | Marker.END_OF_TEXT:
                return self._end("end")
            case Marker.EOM | Marker.START if not self._inside_value():
                return self._next_message(role_due=marker is Marker.START)
            case Marker.MESSAGE if self._channel in _SWITCHABLE:
                return self._switch()
            case _ if self._channel is _Channel.HEADER:
                return self._open_header() if marker is Marker.MESSAGE else []
            case _:
                return self._text(marker.value)

    def _text(self, text: str) -> list[Delta]:
        match self._channel:
            case _Channel.HEADER:
                self._held += text
                return [] if self._may_be_header() else self._begin_bare()
            case _Channel.CALL:
                self._write_call(text)
                return []
            case _:
                return self._say(text)

    def _write_call(self, text: str) -> None:
        """Collect the body of a call, and keep track of its last tags without reading it again."""
        self._body.append(text)
        seen = self._seam + text
        opened, closed = seen.rfind(INVOKE_START), seen.rfind(BLOCK_CLOSE)
        if opened != closed:
            self._in_block = opened > closed
        self._seam = seen[1 - len(BLOCK_CLOSE) :]
        self._tail = (self._tail + "".join(text.split()))[-len(BLOCK_CLOSE) :]

    def _say(self, text: str) -> list[Delta]:
        """Emit text of a speaking channel, except an end that could still become a header."""
        text = self._held + text
        self._held = ""
        if self._channel in _SWITCHABLE:
            known = self._before + text
            start = max(len(self._before), len(known) - _SWITCH_LIMIT)
            if match := _SWITCH_SO_FAR.search(known, start):
                text, self._held = known[len(self._before) : match.start()], known[match.start() :]
        return self._emit(text)

    def _emit(self, text: str) -> list[Delta]:
        if not text:
            return []
        self._before = text[-1]
        self._body.append(text)
        if self._channel in (_Channel.REASONING, _Channel.ASIDE):
            return [ReasoningDelta(text)]
        return [TextDelta(text)]

    def _release(self) -> list[Delta]:
        """Emit what was held back: it did not become a header."""
        text, self._held = self._held, ""
        return self._emit(text)

    def _enter(self, channel: _Channel) -> None:
        self._channel = channel
        self._held = self._before = self._seam = self._tail = ""
        self._in_block = False
        if channel is not _Channel.HEADER:
            self._body = []

    def _may_be_header(self) -> bool:
        """Whether the held text is the beginning of a header. Once it is not, no longer text is."""
        text = self._held.lstrip()
        if len(self._held) > _HEADER_LIMIT:
            return False
        for role in _ROLES if self._role_due else _ROLES[:1]:
            if role.startswith(text):
                return True
            if text.startswith(role):
                text = text.removeprefix(role)
                return role == "tool" or bool(_RECIPIENT_SO_FAR.fullmatch(text))
        return bool(_RECIPIENT_SO_FAR.fullmatch(text))

    def _begin_bare(self) -> list[Delta]:
        """The held text is no header: somebody speaks without one."""
        header = _HEADER.match(self._held) if self._role_due else None
        role = header["role"] if header else None
        text = self._held[header.end("role") :] if header and role else self._held
        self._enter(_Channel.ASIDE if role in _ROLES[1:] else _Channel.BARE)
        return self._say(text)

    def _open_header(self) -> list[Delta]:
        """Begin the body of the message that the held header announces."""
        header = _HEADER.match(self._held)
        if header and header["role"] in _ROLES[1:]:
            self._enter(_Channel.ASIDE)
            return []
        return self._open(header["to"] if header else None)

    def _open(self, recipient: str | None) -> list[Delta]:
        match recipient or "user":
            case "self":
                self._enter(_Channel.REASONING)
            case "user":
                self._enter(_Channel.ANSWER)
            case name:
                self._enter(_Channel.CALL)
                self._recipient = name
                return [self._started(name)]
        return []

    def _switch(self) -> list[Delta]:
        """A real message marker amid reasoning, or after words without a header."""
        known = self._before + self._held
        header = _SWITCH.search(known, len(self._before))
        if header:
            self._held = known[len(self._before) : header.start()]
            said = self._release()
            return said + self._open(header["to"])
        if self._channel is _Channel.BARE:
            said = self._release()
            self._enter(_Channel.ANSWER)
            return said
        return self._say(Marker.MESSAGE.value)

    def _started(self, name: str) -> ToolCallStarted:
        tool = self._check.resolve(name)
        return ToolCallStarted(tool.name if tool else name)

    def _inside_value(self) -> bool:
        """Whether a call block is open and did not just write one of its closing tags."""
        return self._channel is _Channel.CALL and self._in_block and not self._tail.endswith(CLOSING_TAGS)

    def _next_message(self, *, role_due: bool) -> list[Delta]:
        deltas = self._close()
        self._enter(_Channel.HEADER)
        self._role_due = role_due
        return deltas

    def _close(self) -> list[Delta]:
        """The end of a whole message."""
        match self._channel:
            case _Channel.HEADER:
                return self._close_header()
            case _Channel.CALL:
                return self._close_call()
            case _:
                return self._release()

    def _close_header(self) -> list[Delta]:
        """A header that no body followed: a call without one, words without a header, or nothing."""
        header = _HEADER.match(self._held)
        if header is None or not self._held.strip():
            return []
        if header["to"] is None:
            return [] if self._role_due else self._begin_bare() + self._release()
        opened = self._open_header()
        return opened + self._close_call() if self._channel is _Channel.CALL else []

    def _close_call(self) -> list[Delta]:
        self._called = True
        invokes = parse_block("".join(self._body))
        if not invokes:
            return [self._check.without_block(self._recipient)]
        deltas: list[Delta] = []
        for index, invoke in enumerate(invokes):
            if index:
                deltas.append(self._started(invoke.name or self._recipient))
            deltas.append(self._check.check(invoke, self._recipient))
        return deltas

    def _end(self, stop: StopReason) -> list[Delta]:
        if stop != "end":
            deltas = self._release() if self._channel in _SPEECH else []
            self._enter(_Channel.ENDED)
            return deltas
        deltas = self._close()
        spoken = "".join(self._body)
        if not self._called and ends_on_block(spoken):
            deltas.append(self._check.without_recipient(spoken))
        self._enter(_Channel.ENDED)
        return deltas
