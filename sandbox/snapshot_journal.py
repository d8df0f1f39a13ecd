"""What a session remembers of its turns, and its form on disk: one JSON document, pure data."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

from sandbox.work_tree import Absent, Link, Other, Regular, State

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Touched:
    """One path of a turn. `after` is None while the turn runs, and stays None if it was killed."""

    path: PurePosixPath
    before: State
    after: State | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """What one turn did to the files. `time` is in seconds since the epoch."""

    number: int
    name: str
    time: float
    files: tuple[Touched, ...] = ()


@dataclass(frozen=True, slots=True)
class Journal:
    """A session's turns: `done` can be undone from its end, `undone` redone from its end.

    `running` is the turn that has not finished. `next` numbers the next turn; turns before `since` belong
    to an earlier conversation.
    """

    next: int = 1
    since: int = 1
    done: tuple[Turn, ...] = ()
    undone: tuple[Turn, ...] = ()
    running: Turn | None = None

    def turns(self) -> Iterator[Turn]:
        """Every turn the journal holds."""
        yield from self.done
        yield from self.undone
        if self.running:
            yield self.running

    def last_used(self) -> float:
        """When the last turn began, in seconds since the epoch; 0 when there was none."""
        return max((turn.time for turn in self.turns()), default=0.0)

    def blobs(self) -> dict[str, int]:
        """The object ids of all kept contents, with their sizes in bytes."""
        return {
            state.blob: state.size
            for turn in self.turns()
            for file in turn.files
            for state in (file.before, file.after)
            if isinstance(state, Regular) and state.blob
        }

    def sealed(self) -> "Journal":
        """The journal with its running turn put on the stack as it is; redo ends there."""
        if self.running is None:
            return self
        return replace(self, done=(*self.done, self.running), undone=(), running=None)


def dump(journal: Journal) -> str:
    """The journal as ASCII text."""
    return json.dumps(
        {
            "format": _FORMAT,
            "next": journal.next,
            "since": journal.since,
            "done": [_dump_turn(turn) for turn in journal.done],
            "undone": [_dump_turn(turn) for turn in journal.undone],
            "running": _dump_turn(journal.running) if journal.running else None,
        }
    )


def load(text: str) -> Journal:
    """The journal `dump` wrote. Raises ValueError when the text is none."""
    try:
        data = json.loads(text)
        if data["format"] != _FORMAT:
            raise ValueError("a journal of another version")
        return Journal(
            next=int(data["next"]),
            since=int(data["since"]),
            done=tuple(_load_turn(turn) for turn in data["done"]),
            undone=tuple(_load_turn(turn) for turn in data["undone"]),
            running=_load_turn(data["running"]) if data["running"] else None,
        )
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise ValueError("not a journal") from error


def _dump_turn(turn: Turn) -> dict[str, Any]:
    files = [[str(file.path), _dump_state(file.before), _dump_state(file.after)] for file in turn.files]
    return {"number": turn.number, "name": turn.name, "time": turn.time, "files": files}


def _load_turn(data: Any) -> Turn:
    files: list[Touched] = []
    for path, before, after in data["files"]:
        state = _load_state(before)
        if state is None:
            raise ValueError("a path without its state before the turn")
        files.append(Touched(PurePosixPath(path), state, _load_state(after)))
    return Turn(int(data["number"]), str(data["name"]), float(data["time"]), tuple(files))


def _dump_state(state: State | None) -> list[Any] | None:
    match state:
        case None:
            return None
        case Absent(missing):
            return ["absent", missing]
        case Regular(mode, size, digest, blob):
            return ["file", mode, size, digest, blob]
        case Link(target):
            return ["link", target]
        case Other(what):
            return ["other", what]


def _load_state(data: Any) -> State | None:
    match data:
        case None:
            return None
        case ["absent", int(missing)]:
            return Absent(missing)
        case ["file", int(mode), int(size), str(digest), str(blob)]:
            return Regular(mode, size, digest, blob)
        case ["link", str(target)]:
            return Link(target)
        case ["other", str(what)]:
            return Other(what)
        case _:
            raise ValueError("a state of an unknown kind")
