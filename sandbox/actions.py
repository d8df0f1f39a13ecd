"""What a tool wants to do, and what the person or a rule says to it: plain data."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["read", "write", "delete", "execute", "test", "screen"]
Mode = Literal["read-only", "ask", "auto-edit", "auto"]
MODES: tuple[Mode, ...] = ("read-only", "ask", "auto-edit", "auto")


@dataclass(frozen=True, slots=True)
class Action:
    """One thing a plan would do.

    `target` is a workspace-relative POSIX path for read, write and delete; the exact command for
    execute and test; "desktop" for screen, which takes a picture of everything the person's screen shows.
    `network`: a command would run with the network, which confined commands otherwise lack.
    """

    kind: Kind
    target: str
    network: bool = False


@dataclass(frozen=True, slots=True)
class Ruling:
    """What policy says about a plan: go, ask the person, or refuse. `reason` is shown to the person."""

    verdict: Literal["allow", "ask", "deny"]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """The person's answer to an approval. `note` goes to the model when they deny."""

    verdict: Literal["allow", "allow_always", "deny"]
    note: str = ""
