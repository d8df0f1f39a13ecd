"""A request's history as blocks: the system block, then each message, with notes where the strength changed.

The strength stands in the middle of the system block, before the tools: written anew there, all after it
would have to be read again. So a conversation keeps the block it began with, and a change is said in a short
system message of its own, before the first message that comes after it.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from engine.chat_format import Marker, Piece, message_pieces, system_pieces
from engine.messages import STRENGTHS, Message, Strength, ToolSchema, text_of
from engine.protocol import Request
from engine.token_log import Span, Wanted


@dataclass(frozen=True, slots=True)
class SystemSource:
    """What a system block is made of."""

    text: str
    tools: tuple[ToolSchema, ...]
    strength: Strength


@dataclass(frozen=True, slots=True)
class StrengthNote:
    """The strength from here on."""

    strength: Strength


class Blocks:
    """Knows with which strength a conversation began, and where it changed."""

    def __init__(self) -> None:
        self._first: SystemSource | None = None
        self._changes: dict[str, Strength] = {}

    def forget(self) -> None:
        """Another conversation begins."""
        self._first = None
        self._changes.clear()

    def wanted(self, request: Request, known: Iterable[str]) -> list[Wanted]:
        """The blocks of a request. `known` are the ids of the messages that were read before."""
        first, rest = _split(request)
        self._note_strength(request, rest, set(known))
        blocks = [Wanted("system", first.id if first else "", self._system(request))]
        for message in rest:
            if message.id in self._changes:
                blocks.append(Wanted("system", "", StrengthNote(self._changes[message.id])))
            blocks.append(Wanted(message.role, message.id, message))
        return blocks

    def recognize(
        self,
        request: Request,
        spans: Sequence[Span],
        lies_at: Callable[[SystemSource | StrengthNote, Span], bool],
    ) -> None:
        """Find out with which strength a stored conversation of these spans began, and where it changed."""
        sources = (_source(request, strength) for strength in STRENGTHS)
        self._first = next((source for source in sources if lies_at(source, spans[0])), None)
        for span, following in pairwise(spans[1:]):
            if span.kind == "system" and not span.message_id:
                for strength in STRENGTHS:
                    if lies_at(StrengthNote(strength), span):
                        self._changes[following.message_id] = strength

    def _system(self, request: Request) -> SystemSource:
        strength = self._first.strength if self._first else request.strength
        return _source(request, strength)

    def _note_strength(self, request: Request, rest: Sequence[Message], known: set[str]) -> None:
        """Take down a change of the strength, and drop what belongs to messages that are gone."""
        wanted = _source(request, request.strength)
        began = self._first
        is_other = began is None or (began.text, began.tools) != (wanted.text, wanted.tools)
        if is_other or not any(message.id in known for message in rest):
            self._first = wanted
            self._changes.clear()
            return
        assert began is not None
        ids = [message.id for message in rest]
        self._changes = {name: strength for name, strength in self._changes.items() if name in ids}
        now = began.strength
        for name in ids:
            now = self._changes.get(name, now)
        if now != request.strength:
            place = next((name for name in ids if name not in known), ids[-1])
            self._changes[place] = request.strength


def pieces_of(source: object) -> tuple[Piece, ...]:
    """A block's pieces."""
    match source:
        case Message():
            return message_pieces(source)
        case SystemSource(text, tools, strength):
            return system_pieces(text, tools, strength)
        case StrengthNote(strength):
            said = f"Reasoning strength: {strength}."
            return (Marker.START, "system", Marker.MESSAGE, said, Marker.EOT)
        case _:
            raise TypeError(f"{type(source).__name__} is no block")


def _source(request: Request, strength: Strength) -> SystemSource:
    first, _ = _split(request)
    return SystemSource(text_of(first) if first else "", request.tools, strength)


def _split(request: Request) -> tuple[Message | None, tuple[Message, ...]]:
    messages = request.messages
    if messages and messages[0].role == "system":
        return messages[0], messages[1:]
    return None, messages
