"""The conversation so far: appended to, never rewritten, saved as it grows."""

import asyncio
from collections.abc import Callable, Iterable, Sequence

from engine.messages import Message, ToolCall, ToolResult
from glimmer_tui.agent.sight import Expired, Sight, out_of_view
from glimmer_tui.agent.store import ConversationFile

INTERRUPTED = "Interrupted before it finished."
"""What the model reads as the result of a call that was open when the program ended."""


class History:
    """The messages of a conversation, without the system message.

    It is valid at any time: after each step every call has exactly one result. When a message cannot be
    saved, `on_problem` is told once and the conversation goes on in memory.
    """

    def __init__(
        self,
        file: ConversationFile | None,
        on_problem: Callable[[OSError], None],
        sight: Sight | None = None,
    ) -> None:
        """`sight` says what the model keeps in view."""
        self._sight = sight or Sight()
        self._file = file
        self._on_problem = on_problem
        self._messages: list[Message] = []
        self._forgotten: set[str] = set()
        self._gone: frozenset[str] = frozenset()

    @property
    def messages(self) -> tuple[Message, ...]:
        return tuple(self._messages)

    @property
    def seen(self) -> tuple[Message, ...]:
        """What the model still sees: all but what was forgotten, with marks where it is out of view."""
        return self._sight.of(self._remembered)

    @property
    def _remembered(self) -> tuple[Message, ...]:
        return tuple(message for message in self._messages if message.id not in self._forgotten)

    def expire(self) -> Expired:
        """Take old pictures and results out of the model's view; the record keeps them."""
        return self._sight.expire(self._remembered)

    def gone(self, seen: Sequence[Message]) -> tuple[str, ...]:
        """The messages of `seen`, by their ids, of which something went out of view since this was asked."""
        gone = out_of_view(seen)
        new = tuple(name for name in gone if name not in self._gone)
        self._gone = frozenset(gone)
        return new

    def show_no_pictures(self) -> None:
        """The model sees none: whatever pictures there are or come, it reads words in their place."""
        self._sight.sees = False

    def forget(self, ids: Iterable[str]) -> None:
        """Take messages out of the model's sight; a call goes with its result. The record keeps them."""
        self._forgotten.update(ids)

    async def add(self, *messages: Message) -> None:
        """Append, then save. The messages count at once; only the saving is waited for."""
        self._messages.extend(messages)
        for message in messages:
            self._sight.note(message)
            await self._save(message)

    async def restore(self, messages: Sequence[Message]) -> None:
        """Take over a conversation that was read back from the same file, and close its open calls."""
        self._messages.extend(messages)
        await self.add(*results_for(open_calls(messages), INTERRUPTED))

    async def _save(self, message: Message) -> None:
        if self._file is None:
            return
        try:
            await asyncio.to_thread(self._file.append, message)
        except OSError as problem:
            self._file = None
            self._on_problem(problem)


def open_calls(messages: Iterable[Message]) -> tuple[ToolCall, ...]:
    """The calls that have no result, in order."""
    calls: dict[str, ToolCall] = {}
    for message in messages:
        for part in message.parts:
            match part:
                case ToolCall():
                    calls[part.id] = part
                case ToolResult():
                    calls.pop(part.call_id, None)
                case _:
                    pass
    return tuple(calls.values())


def results_for(calls: Iterable[ToolCall], text: str) -> tuple[Message, ...]:
    """An error result with `text` for each call."""
    return tuple(result_message(ToolResult(call.id, call.name, text, is_error=True)) for call in calls)


def result_message(result: ToolResult) -> Message:
    """A result as the message that carries it."""
    return Message("tool", (result,))
