"""What of the history the model keeps in view: old pictures, and what is expired by hand, become words.

Nothing is taken out of the history or its record. The marks are for the engine, which frees the cells of what
they name and reads nothing again for it.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from engine.messages import Image, Message, Part, ToolCall, ToolResult

PICTURES_KEPT = 3
PROJECTOR = "mmproj-Muse-Glimmer-30B-Q4_K_M.gguf"
SHORTEST_RESULT = 200
"""Characters; a shorter result takes no room worth a mark."""


@dataclass(frozen=True, slots=True)
class Expired:
    """How much was expired by hand."""

    pictures: int
    results: int


class Sight:
    """Marks what is out of view. The newest `pictures` stay, and of two of the same thing the newer one."""

    def __init__(self, pictures: int = PICTURES_KEPT) -> None:
        self._pictures = pictures
        self.sees = True
        """Whether the model sees pictures at all."""
        self._by_hand: set[str] = set()
        self._times: dict[str, datetime] = {}

    def note(self, message: Message) -> None:
        """A message was said now."""
        self._times[message.id] = datetime.now()

    def of(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """The messages as the model is to see them."""
        stale = self._stale(messages)
        return tuple(self._marked(message, stale.get(message.id)) for message in messages)

    def expire(self, messages: Sequence[Message]) -> Expired:
        """Take all pictures but the newest out of view, and the long results of earlier turns."""
        with_pictures = [message.id for message in messages if _has_picture(message)]
        pictures = [name for name in with_pictures[:-1] if name not in self._by_hand]
        last = max((at for at, message in enumerate(messages) if message.role == "user"), default=0)
        results = [
            message.id
            for message in messages[:last]
            if message.id not in self._by_hand and not _has_picture(message) and _is_long(message)
        ]
        self._by_hand.update(pictures, results)
        return Expired(len(pictures), len(results))

    def _stale(self, messages: Sequence[Message]) -> dict[str, str]:
        """Why a message's pictures are out of view, by the message's id."""
        stale: dict[str, str] = {}
        shown: set[str] = set()
        count = 0
        subjects = dict(_subjects(messages))
        for message in reversed(messages):
            if not _has_picture(message):
                continue
            subject = subjects.get(message.id)
            if not self.sees:
                stale[message.id] = "not seen: this model cannot look at pictures"
            elif subject is not None and subject in shown:
                stale[message.id] = "superseded by a newer one"
            elif count >= self._pictures or message.id in self._by_hand:
                stale[message.id] = "removed"
            else:
                count += sum(isinstance(part, Image) for part in message.parts)
            if subject is not None:
                shown.add(subject)
        return stale

    def _marked(self, message: Message, why: str | None) -> Message:
        has_old_results = message.id in self._by_hand and not _has_picture(message)
        if why is None and not has_old_results:
            return message
        parts = tuple(self._mark(message, part, why) for part in message.parts)
        return replace(message, parts=parts)

    def _mark(self, message: Message, part: Part, why: str | None) -> Part:
        match part:
            case Image() if why is not None:
                said = self._times.get(message.id)
                when = f" of {said:%H:%M}" if said else ""
                return replace(part, expired=f"picture{when}, {why}")
            case ToolResult() if why is None:
                return replace(part, expired=f"the result of {part.name}, removed")
            case _:
                return part


def cannot_see(is_demo: bool) -> str:
    """What is said wherever a picture is given to a model that sees none."""
    if is_demo:
        return (
            "The demonstration model cannot look at pictures. "
            f"Muse Glimmer 30B can, with the file {PROJECTOR} beside it."
        )
    return (
        "This model cannot look at pictures: it was loaded without a vision projector. "
        f"Put the file {PROJECTOR} beside the model, and start Glimmer again."
    )


def out_of_view(messages: Iterable[Message]) -> tuple[str, ...]:
    """The ids of messages that the model sees with words in the place of something."""
    return tuple(message.id for message in messages if any(_is_marked(part) for part in message.parts))


def _is_marked(part: Part) -> bool:
    return isinstance(part, Image | ToolResult) and bool(part.expired)


def _has_picture(message: Message) -> bool:
    return any(isinstance(part, Image) for part in message.parts)


def _is_long(message: Message) -> bool:
    results = [part for part in message.parts if isinstance(part, ToolResult)]
    return bool(results) and sum(len(result.text) for result in results) >= SHORTEST_RESULT


def _subjects(messages: Iterable[Message]) -> Iterator[tuple[str, str]]:
    """Of messages that answer a call: what the call was for, as two pictures of the same thing have it."""
    calls: dict[str, str] = {}
    for message in messages:
        for part in message.parts:
            match part:
                case ToolCall(id=name):
                    calls[name] = json.dumps([part.name, dict(part.arguments)], sort_keys=True, default=str)
                case ToolResult(call_id=name) if name in calls:
                    yield message.id, calls[name]
                case _:
                    pass
