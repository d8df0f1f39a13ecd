"""What a session publishes: plain data, in one order, for the screen and for scripts alike."""

from dataclasses import dataclass, field
from typing import Literal

from engine.messages import Image
from engine.protocol import Capabilities, StopReason, Timings, Usage
from sandbox.actions import Mode
from tools.base import Display, Picture, Preview

FailureKind = Literal["model", "context_full", "engine", "empty", "loop", "steps", "internal"]


@dataclass(frozen=True, slots=True)
class ModelLoaded:
    """Sent once, when the engine is ready."""

    capabilities: Capabilities


@dataclass(frozen=True, slots=True)
class UserMessage:
    """Sent when a message of the person's enters the history. `steering`: it arrived during a turn.

    `message_id` is how `OutOfView` names it.
    """

    text: str
    steering: bool = False
    images: tuple[Image, ...] = ()
    message_id: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class MessageQueued:
    """Sent when the person writes while a turn runs; `UserMessage` follows once it is taken up."""

    text: str


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """Sent before the first model step of a turn."""

    turn: int


@dataclass(frozen=True, slots=True)
class Prefilling:
    """Sent while the model reads its prompt. Counts are tokens."""

    done: int
    total: int


@dataclass(frozen=True, slots=True)
class Looking:
    """Sent while the model looks at a picture. Counts are the blocks of its vision encoder."""

    done: int
    total: int


@dataclass(frozen=True, slots=True)
class SpanEvicted:
    """The model no longer sees an old message: its `tokens` made room for new ones."""

    message_id: str
    tokens: int


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """A piece of the model's reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class StepFinished:
    """Sent after each model step, with what it cost."""

    usage: Usage
    timings: Timings


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """Sent when a call was read and its plan is about to be judged. `summary` is one line."""

    call_id: str
    name: str
    summary: str


@dataclass(frozen=True, slots=True)
class ApprovalRequested:
    """Sent when a plan needs the person. Answer with `session.reply(id, decision)`.

    `always` says in words what "always" would allow ("edits to files in this project"),
    "" where it cannot be said.
    """

    id: str
    call_id: str
    tool: str
    preview: Preview
    reason: str
    always: str


@dataclass(frozen=True, slots=True)
class ApprovalResolved:
    """Sent when an approval was answered, by the person or by a cancel."""

    id: str
    verdict: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class SnapshotTaken:
    """Sent when the files a turn is about to touch were recorded."""

    id: str
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """A chunk of a running tool's output, as a terminal would get it."""

    call_id: str
    chunk: str


@dataclass(frozen=True, slots=True)
class ToolFinished:
    """Sent when a call has its result. `message_id` is how `OutOfView` names it."""

    call_id: str
    name: str
    display: Display
    error: str
    changed: tuple[str, ...] = ()
    images: tuple[Picture, ...] = ()
    message_id: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class OutOfView:
    """Sent when the pictures, or the result, of these messages went out of the model's view."""

    message_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Notice:
    """A sentence for the person: a guard stopped a loop, a setting could not be read."""

    text: str
    level: str = "info"


@dataclass(frozen=True, slots=True)
class StatusChanged:
    """Sent when something of the status line changed."""

    mode: Mode
    strength: str
    context_used: int
    context_size: int
    branch: str


@dataclass(frozen=True, slots=True)
class FilesRestored:
    """Sent after an undo or a redo put files back."""

    paths: tuple[str, ...]
    redo: bool = False


@dataclass(frozen=True, slots=True)
class ConversationCleared:
    """Sent when a new conversation began."""


@dataclass(frozen=True, slots=True)
class TurnFinished:
    """Sent when the model ended its turn. `answer` is its last text to the person."""

    stop: StopReason
    answer: str
    changed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TurnFailed:
    """Sent instead of TurnFinished when the turn could not go on. What, why, and what to do.

    Sent without a turn when the model cannot be loaded at start. `kind` is for scripts.
    """

    what: str
    why: str = ""
    todo: str = ""
    kind: FailureKind = "engine"


Event = (
    ModelLoaded
    | UserMessage
    | MessageQueued
    | TurnStarted
    | Prefilling
    | Looking
    | SpanEvicted
    | TextDelta
    | ReasoningDelta
    | StepFinished
    | ToolStarted
    | ApprovalRequested
    | ApprovalResolved
    | SnapshotTaken
    | ToolOutput
    | ToolFinished
    | OutOfView
    | Notice
    | StatusChanged
    | FilesRestored
    | ConversationCleared
    | TurnFinished
    | TurnFailed
)
