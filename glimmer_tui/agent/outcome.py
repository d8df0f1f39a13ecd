"""What comes of a call that did not simply run, in the fixed words the model knows."""

from dataclasses import dataclass, field
from hashlib import sha256

from engine.messages import Image, Message, ToolCall, ToolResult
from engine.protocol import ToolCallFailed
from glimmer_tui.agent.prompt import note_message
from tools.base import Display, Result

CANCELLED = "Cancelled by the user."
DECLINED = "The user declined this call"
NOT_ALLOWED = "Not allowed: "


@dataclass(frozen=True, slots=True)
class Outcome:
    """A call and its result. `message` is what enters the history."""

    call: ToolCall
    result: Result
    message: Message = field(init=False)

    def __post_init__(self) -> None:
        result = ToolResult(self.call.id, self.call.name, self.result.for_model, self.result.is_error)
        named = bool(self.call.name)
        pictures = (Image(picture.data, picture.width, picture.height) for picture in self.result.images)
        message = Message("tool", (result, *pictures)) if named else note_message(self.result.for_model)
        object.__setattr__(self, "message", message)

    @property
    def told(self) -> str:
        """Words and pictures as one text, to tell results apart."""
        pictures = (sha256(picture.data).hexdigest() for picture in self.result.images)
        return "\n".join((self.result.for_model, *pictures))

    @property
    def changed(self) -> tuple[str, ...]:
        """Workspace-relative paths that were written or deleted."""
        return tuple(path.as_posix() for path in self.result.changed)


def cancelled() -> Result:
    return _refused(CANCELLED, "Cancelled", "cancelled")


def declined(note: str) -> Result:
    words = f"{DECLINED}: {note}" if note else f"{DECLINED}."
    return _refused(words, "Declined", "declined", note)


def not_allowed(reason: str) -> Result:
    return _refused(NOT_ALLOWED + reason, "Not allowed", "not_allowed", reason)


def unreadable(failed: ToolCallFailed) -> Result:
    """A call that the engine could not read, or that names no tool there is."""
    title = {
        "unknown_tool": "No such tool",
        "invalid_arguments": "The arguments do not fit the tool",
        "no_recipient": "A call to nobody",
    }[failed.problem]
    return _refused(failed.message, title, failed.problem, failed.message)


def broken(problem: Exception) -> Result:
    """A tool raised: the fault is Glimmer's, and the model is told to try another way."""
    words = f"The tool itself failed ({type(problem).__name__}). Try another way."
    return _refused(words, "The tool itself failed", "internal", f"{type(problem).__name__}: {problem}")


def unrecorded() -> Result:
    """The files could not be recorded for undo, so nothing was changed."""
    words = "Not run: the files could not be recorded for undo."
    return _refused(words, "Not run", "no_snapshot", words)


def _refused(for_model: str, title: str, error: str, body: str = "") -> Result:
    return Result(for_model, Display(title, body), error)
