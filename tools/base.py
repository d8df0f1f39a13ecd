"""The shape of a tool: arguments in, a plan that only read, a result after it was applied.

A tool never formats for the screen and never asks the person. `prepare` reads and returns a `Plan`, or
a `Result` when the call cannot work; `apply` carries out exactly that plan, or reports that the world
changed since. An expected failure is a `Result` with `is_error`; a bug raises.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Literal, Protocol

from pydantic import BaseModel

from sandbox.actions import Action


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file's text before and after, for the diff the person approves. `before` is None for a new file."""

    path: str
    before: str | None
    after: str


@dataclass(frozen=True, slots=True)
class CommandLine:
    """The exact command the person approves, the folder it runs in and its time limit in seconds."""

    command: str
    cwd: str
    timeout: float


Preview = FileChange | CommandLine | None


@dataclass(frozen=True, slots=True)
class Plan:
    """What a call would do. `payload` is the tool's own; `fingerprint` ties it to what was read."""

    actions: tuple[Action, ...]
    preview: Preview = None
    fingerprint: str = ""
    payload: Any = None


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture for the model: PNG bytes and their size in pixels."""

    data: bytes
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Display:
    """What the person sees of a result. `title` is one line; `body` is plain text, never markup."""

    title: str
    body: str = ""
    form: Literal["text", "code", "diff", "terminal"] = "text"
    path: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a call: one value for the model, another for the person.

    `error` names the kind of failure ("no_match", "not_unique", ...), "" when it went well. `changed` lists
    the workspace-relative paths that were written or deleted. `images` follow the words, for the model.
    """

    for_model: str
    display: Display
    error: str = ""
    changed: tuple[PurePosixPath, ...] = ()
    images: tuple[Picture, ...] = ()

    @property
    def is_error(self) -> bool:
        return bool(self.error)


@dataclass(frozen=True, slots=True)
class Running:
    """What a tool may use while it applies: a sink for live output and a flag set on cancel."""

    output: Callable[[str], None] = lambda _chunk: None
    cancelled: threading.Event = field(default_factory=threading.Event)


class Tool(Protocol):
    """One thing the model can do. Both phases are blocking and run off the event loop's thread."""

    @property
    def name(self) -> str: ...

    @property
    def arguments(self) -> type[BaseModel]:
        """The argument model; its JSON schema is what the model is told."""
        ...

    def prepare(self, arguments: Any) -> Plan | Result:
        """Read, check and plan. Changes nothing."""
        ...

    def apply(self, plan: Plan, running: Running) -> Result:
        """Carry out a plan made by `prepare`."""
        ...
