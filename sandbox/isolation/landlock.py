"""Rules for Landlock, the kernel's way to confine a process, that come close to a view of the file system.

Landlock only allows, and what is allowed for a folder holds for all in it. So whatever is hidden is left out
by naming what lies beside it, and nothing inside the workspace can be guarded.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sandbox.isolation.view import View

_EXECUTE, _WRITE, _READ, _LIST = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_LOOK = _EXECUTE | _READ | _LIST
_DEVICES = ("null", "zero", "full", "random", "urandom")
_OUTPUT = "/proc/self/fd/1"
"""The terminal, by the descriptor that whoever enters has it at."""
_ALL = {3: (1 << 15) - 1, 5: (1 << 16) - 1}
"""Every right over files that a version of Landlock knows."""
_SCOPES = 0b11
"""From version 6 on: no signals to processes outside, no sockets of theirs without a path."""


@dataclass(frozen=True, slots=True)
class Ruleset:
    """`files` are the rights refused except where `rules` allow them; `scopes` what stays inside."""

    files: int
    scopes: int
    rules: tuple[tuple[str, int], ...]


def landlock(version: int, view: View, private: Path, channel: Path) -> Ruleset:
    """The rules for a kernel that speaks this version, 3 or later.

    `private` is this shell's folder, `channel` the one in it through which bash is spoken to.
    """
    every = _ALL[5 if version >= 5 else 3]
    rules = [(str(path), _LOOK) for path in _without(view.system, view.hidden)]
    rules += [(str(path), _LOOK) for path in (*view.readable, private)]
    rules += [("/proc", _LOOK), (_OUTPUT, _WRITE), (str(channel / "tell"), _WRITE)]
    rules += [(f"/dev/{name}", _READ | _WRITE) for name in _DEVICES]
    rules += [(str(path), every) for path in (*view.writable, private / "home", private / "tmp")]
    return Ruleset(every, _SCOPES if version >= 6 else 0, tuple(rules))


def scopes_alone(version: int) -> Ruleset | None:
    """For a program that is confined otherwise and may use the network: sockets without a path stay shut."""
    return Ruleset(0, 0b01, ()) if version >= 6 else None


def _without(folders: tuple[Path, ...], hidden: tuple[Path, ...]) -> Iterator[Path]:
    """The folders, those with something hidden in them as what is beside it."""
    waiting = list(folders)
    while waiting:
        folder = waiting.pop()
        within = [path for path in hidden if path.is_relative_to(folder)]
        if not within:
            yield folder
        elif folder not in within:
            waiting.extend(folder.iterdir())
