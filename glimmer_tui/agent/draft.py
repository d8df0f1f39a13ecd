"""One reply of the model, from the deltas that stream in to the message that is kept."""

from engine.messages import Message, Part, Reasoning, Text, ToolCall, new_id, text_of
from engine.protocol import (
    Delta,
    Done,
    EngineNotice,
    PictureProgress,
    PrefillProgress,
    ReasoningDelta,
    SpanEvicted,
    TextDelta,
    ToolCallFailed,
    ToolCallReady,
    ToolCallStarted,
)

WrittenCall = ToolCallReady | ToolCallFailed


class Draft:
    """Collects a reply. Its parts keep the order in which the model wrote them."""

    def __init__(self) -> None:
        self.reply_id = new_id()
        self.calls: list[WrittenCall] = []
        self.done: Done | None = None
        self._parts: list[Part] = []

    def add(self, delta: Delta) -> None:
        match delta:
            case TextDelta(text):
                self._say(text)
            case ReasoningDelta(text):
                self._think(text)
            case ToolCallReady(call):
                self._call(delta, call)
            case ToolCallFailed(call, problem):
                self._call(delta, call if problem != "no_recipient" else None)
            case Done():
                self.done = delta
            case PrefillProgress() | PictureProgress() | EngineNotice() | SpanEvicted() | ToolCallStarted():
                pass

    def message(self) -> Message | None:
        """The assistant's message, None when the model wrote nothing.

        A reply that broke off before it said anything, within a call for instance, is kept without parts:
        the engine remembers what was drawn, and would have to read much again without it.
        """
        drawn = self.done is not None and self.done.usage.generated > 0
        return Message("assistant", tuple(self._parts), self.reply_id) if self._parts or drawn else None

    @property
    def answer(self) -> str:
        """What was said to the person."""
        return text_of(Message("assistant", tuple(self._parts), self.reply_id))

    @property
    def is_empty(self) -> bool:
        """Neither a word to the person nor a call."""
        return not self.calls and not self.answer.strip()

    @property
    def has_reasoning(self) -> bool:
        return any(isinstance(part, Reasoning) for part in self._parts)

    def _say(self, text: str) -> None:
        match self._parts:
            case [*_, Text(before)]:
                self._parts[-1] = Text(before + text)
            case _:
                self._parts.append(Text(text))

    def _think(self, text: str) -> None:
        match self._parts:
            case [*_, Reasoning(before)]:
                self._parts[-1] = Reasoning(before + text)
            case _:
                self._parts.append(Reasoning(text))

    def _call(self, written: WrittenCall, call: ToolCall | None) -> None:
        """Keep the call. One without a recipient stays the text it was written as."""
        self.calls.append(written)
        if call is not None:
            self._parts.append(call)
