"""Conversation content as plain data, shared by the chat format, the parser and the agent.

A `Message` is what one role said in one go. An assistant message keeps its parts in the order in
which the model wrote them, so that rendering it again gives the same bytes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import uuid4

Role = Literal["system", "user", "assistant", "tool"]
Strength = Literal["low", "medium", "high", "xhigh"]
STRENGTHS: tuple[Strength, ...] = ("low", "medium", "high", "xhigh")


@dataclass(frozen=True, slots=True)
class Text:
    """Words meant for the other side of the conversation."""

    text: str


@dataclass(frozen=True, slots=True)
class Reasoning:
    """Words the model wrote to itself."""

    text: str


@dataclass(frozen=True, slots=True)
class Image:
    """An encoded picture (PNG or JPEG bytes) shown by the person or by a tool.

    Where `expired` says what it was, the model is to see these words in its place. Setting it changes no
    message: what the model has read stays read, and the engine frees the picture's place.
    """

    data: bytes
    width: int
    height: int
    expired: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call the model made. `arguments` holds values typed by the tool's schema."""

    id: str
    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool gave back for the call `call_id`, as the model reads it.

    Where `expired` says what it was, the model is to see these words instead, as with an `Image`.
    """

    call_id: str
    name: str
    text: str
    is_error: bool = False
    expired: str = field(default="", compare=False)


Part = Text | Reasoning | Image | ToolCall | ToolResult


def new_id() -> str:
    """A fresh identifier for a message or a call (32 hex digits)."""
    return uuid4().hex


@dataclass(frozen=True, slots=True)
class Message:
    """What one role said in one go. `id` is stable: the engine matches its cache by it."""

    role: Role
    parts: tuple[Part, ...]
    id: str = field(default_factory=new_id)


@dataclass(frozen=True, slots=True)
class ToolSchema:
    """A tool as the model is told of it. `parameters` is a JSON schema of type object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


def text_of(message: Message) -> str:
    """All `Text` parts of a message, joined with nothing between them."""
    return "".join(part.text for part in message.parts if isinstance(part, Text))
