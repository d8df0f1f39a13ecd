"""Slash commands as data: what there is, what it is called, what it takes."""

import re
from dataclasses import dataclass
from typing import Literal

CommandAction = Literal["help", "undo", "redo", "new", "image", "expire", "mode", "reasoning", "quit"]


@dataclass(frozen=True, slots=True)
class Command:
    """One slash command. `action` is the key a screen looks its handler up by."""

    name: str
    help: str
    action: CommandAction
    argument: str = ""


@dataclass(frozen=True, slots=True)
class Invocation:
    """A command as it was typed, with what stood behind its name."""

    command: Command
    argument: str = ""


@dataclass(frozen=True, slots=True)
class UnknownCommand:
    """A line that looks like a command but names none."""

    name: str


COMMANDS: tuple[Command, ...] = (
    Command("/help", "Show the commands and the keys", "help"),
    Command("/undo", "Put files back as they were before the last turn", "undo"),
    Command("/redo", "Bring back what the last undo took away", "redo"),
    Command("/new", "Start a new conversation", "new"),
    Command("/image", "Show the model a picture: a file's, or the clipboard's", "image", "[path]"),
    Command("/expire", "Take old pictures and long results out of the model's view", "expire"),
    Command("/mode", "What may happen without asking", "mode", "read-only|ask|auto-edit|auto"),
    Command("/reasoning", "How much the model thinks first", "reasoning", "low|medium|high|xhigh"),
    Command("/quit", "Leave Glimmer", "quit"),
)

_COMMAND_LINE = re.compile(r"(/[a-z][a-z-]*)(?:\s+(.*))?", re.DOTALL)


def parse(text: str) -> Invocation | UnknownCommand | None:
    """Read a line of the person's. None when it is a message: a path such as `/usr/bin` is no command."""
    match = _COMMAND_LINE.fullmatch(text.strip())
    if match is None:
        return None
    name, argument = match[1], (match[2] or "").strip()
    for command in COMMANDS:
        if command.name == name:
            return Invocation(command, argument)
    return UnknownCommand(name)


def complete(text: str) -> tuple[Command, ...]:
    """The commands whose name begins with `text`; none unless it begins with a slash."""
    if not text.startswith("/"):
        return ()
    return tuple(command for command in COMMANDS if command.name.startswith(text))
