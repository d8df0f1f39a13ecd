"""The seam between the engine and the agent: what is asked, what streams back."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from engine.messages import Message, Strength, ToolCall, ToolSchema, new_id

StopReason = Literal["end", "length", "context_full", "cancelled"]
Kept = Literal["appended", "rewound", "restored", "reread"]
CallProblem = Literal["unknown_tool", "invalid_arguments", "no_recipient"]


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the next token is drawn. Temperature 0 is greedy; `seed` None is drawn at random."""

    temperature: float = 1.0
    top_p: float = 0.95
    top_k: int = 64
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class SamplingWish:
    """What is wished of the drawing; None leaves it as the model's own sampling has it."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    seed: int | None = None

    def over(self, own: Sampling) -> Sampling:
        """The model's own sampling with the wishes in it."""
        return Sampling(
            own.temperature if self.temperature is None else self.temperature,
            own.top_p if self.top_p is None else self.top_p,
            own.top_k if self.top_k is None else self.top_k,
            own.seed if self.seed is None else self.seed,
        )


@dataclass(frozen=True, slots=True)
class Request:
    """One generation.

    `messages` is the whole history, the system message first. The engine keeps its own token log and
    prefills only the messages it has not seen, matching by `Message.id`. The reply it streams is
    remembered under `reply_id`: give the assistant message built from the deltas the same id.
    """

    messages: tuple[Message, ...]
    tools: tuple[ToolSchema, ...] = ()
    strength: Strength = "high"
    sampling: Sampling | SamplingWish | None = None
    max_tokens: int | None = None
    reasoning_tokens: int | None = None
    """After so many tokens reasoning is ended, cleanly, and the model goes on to act or to answer."""
    reply_id: str = field(default_factory=new_id)


@dataclass(frozen=True, slots=True)
class PrefillProgress:
    """Sent while a prompt is read, at most once a batch. Both counts are tokens."""

    done: int
    total: int


@dataclass(frozen=True, slots=True)
class PictureProgress:
    """Sent while the vision encoder works. Both counts are of its blocks."""

    done: int
    total: int


@dataclass(frozen=True, slots=True)
class EngineNotice:
    """Something the person should know that stops nothing."""

    text: str


@dataclass(frozen=True, slots=True)
class SpanEvicted:
    """The model no longer sees (most of) this message: its `tokens` were removed to make room."""

    message_id: str
    tokens: int


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the answer to the person."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """A piece of what the model writes to itself."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallStarted:
    """Sent once as soon as the recipient of a call is known; its arguments are still being written."""

    name: str


@dataclass(frozen=True, slots=True)
class ToolCallReady:
    """A whole call that fits its tool's schema."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class ToolCallFailed:
    """A call that cannot be run; `message` tells the model why. `call` holds what could be read of it."""

    call: ToolCall
    problem: CallProblem
    message: str


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts of one generation.

    prompt: all tokens before the reply. reused: of those, already in the cache. prefilled: read now.
    reread: read now although they had been in the cache before (0 unless the history was rewritten).
    generated: tokens of the reply. context_used / context_size: cells in use and available.
    kept: how the cache was made to fit: by reading on, by going back exactly, from a checkpoint, or by
    reading again. steps: decode steps of the reply. drafted / accepted: tokens guessed, and right.
    pictures: of the cells in use, those of pictures.
    """

    prompt: int = 0
    reused: int = 0
    prefilled: int = 0
    reread: int = 0
    generated: int = 0
    context_used: int = 0
    context_size: int = 0
    kept: Kept = "appended"
    steps: int = 0
    drafted: int = 0
    accepted: int = 0
    pictures: int = 0


@dataclass(frozen=True, slots=True)
class Timings:
    """Seconds spent reading the prompt and writing the reply."""

    prefill_s: float = 0.0
    decode_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Done:
    """Always the last delta."""

    stop: StopReason
    usage: Usage = Usage()
    timings: Timings = Timings()


Delta = (
    PrefillProgress
    | PictureProgress
    | EngineNotice
    | SpanEvicted
    | TextDelta
    | ReasoningDelta
    | ToolCallStarted
    | ToolCallReady
    | ToolCallFailed
    | Done
)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a loaded model can do.

    `vision`: whether it sees pictures, each of them with at most `picture_tokens` tokens. `drafts`: whether a
    drafter helps it. `notices` are sentences the person should see once.
    """

    model_name: str
    model_path: Path | None
    context_size: int
    is_demo: bool = False
    vision: bool = False
    picture_tokens: int = 0
    drafts: bool = False
    notices: Sequence[str] = ()


class Engine(Protocol):
    """One model, one conversation at a time. Methods are called from the event loop's thread."""

    async def load(self) -> Capabilities:
        """Load the model once; later calls return the same value. Raises ModelError."""
        ...

    def generate(self, request: Request) -> AsyncIterator[Delta]:
        """Stream one reply. Ends with `Done`. Raises ModelError, ContextFull or EngineBusy."""
        ...

    def cancel(self) -> None:
        """Ask the running generation to stop; it ends with `Done("cancelled")` within one decode step."""
        ...

    async def reset(self) -> None:
        """Forget the conversation (the system block stays warm)."""
        ...

    async def save(self, name: str) -> None:
        """Store what the model holds of the conversation, for `restore`, where there is a place for it.

        Raises EngineError; the conversation goes on in any case.
        """
        ...

    async def restore(self, name: str) -> bool:
        """Hold what was stored under `name`, if anything fits; the next request reads only what is new.

        Raises EngineError where a stored cache was of no use.
        """
        ...

    async def close(self) -> None:
        """Free the model. The engine cannot be used afterwards."""
        ...
