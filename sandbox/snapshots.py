"""Undo for what the agent does to files: each turn's paths, as they were before and after it.

Only paths named with `before` are ever recorded or restored. A file that changed since the turn is the
person's work: it is reported as a conflict and left alone unless they insist, and even then what was there
is kept, so that a redo brings it back.
"""

import os
import pwd
import time
import weakref
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path, PurePosixPath
from uuid import uuid4

from sandbox.object_store import ObjectStore, SnapshotError, SnapshotsUnavailable, find_git
from sandbox.recorded_files import FileDelta, RecordedFiles, Restored
from sandbox.snapshot_journal import Journal, Touched, Turn, dump, load
from sandbox.work_tree import Other, Regular, State, WorkTree

__all__ = [
    "FileDelta",
    "Limits",
    "Restored",
    "SnapshotError",
    "SnapshotInfo",
    "Snapshots",
    "SnapshotsUnavailable",
    "Unrecorded",
]

_MANY_LOOSE_OBJECTS = 2000
_LONGEST_NAME = 200
_NO_UNDO = "Changes cannot be undone here."


@dataclass(frozen=True, slots=True)
class Limits:
    """Bytes kept of one file, bytes kept of one project, and turns that can be undone."""

    file: int = 50_000_000
    project: int = 1_000_000_000
    turns: int = 200


@dataclass(frozen=True, slots=True)
class Unrecorded:
    """A path that could not be recorded: writing it cannot be undone, so the person must be asked."""

    path: PurePosixPath
    reason: str


@dataclass(frozen=True, slots=True)
class SnapshotInfo:
    """What was recorded of a turn: the paths it changed, and those that cannot be restored."""

    id: str
    turn: str
    paths: tuple[PurePosixPath, ...]
    unrecorded: tuple[Unrecorded, ...] = ()


class Snapshots:
    """The turns of one project, in a store of Glimmer's own below `state`. Calls block; threads may share it.

    Two processes on one project have a stack each; a later start goes on with the one used last. Every call
    may raise SnapshotError; the constructor raises SnapshotsUnavailable when `root` cannot be recorded.
    """

    def __init__(self, root: Path, state: Path, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        root = _checked(root)
        key = sha256(os.fsencode(root)).hexdigest()[:24]
        self._tree = WorkTree(root, self._limits.file)
        try:
            self._store = ObjectStore(state.resolve() / "snapshots" / f"{key}.git", find_git(root))
            self._session, descriptor = self._open_session()
        except OSError as error:
            raise SnapshotsUnavailable(_NO_UNDO, f"{error.filename}: {error.strerror}.") from error
        except SnapshotsUnavailable:
            raise
        except SnapshotError as error:
            raise SnapshotsUnavailable(_NO_UNDO, error.why, error.todo) from error
        self._release = weakref.finalize(self, os.close, descriptor)
        self._files = RecordedFiles(self._tree, self._store)
        self._turn: str | None = None
        self._number: int | None = None
        self._refused: dict[PurePosixPath, Unrecorded] = {}

    def close(self) -> None:
        """Leave the session to a later start. The object cannot be used afterwards."""
        self._release()

    def start_conversation(self) -> None:
        """Let `changes` count from here on. What was done before can still be undone."""
        with self._store.locked():
            journal = self._load()
            if journal.since != journal.next:
                self._save(replace(journal, since=journal.next))

    def begin(self, turn: str) -> None:
        """Name the turn that starts now. Nothing is stored before the first call of `before`."""
        self._turn = turn[:_LONGEST_NAME]
        self._number = None
        self._refused = {}

    def before(self, paths: Iterable[PurePosixPath]) -> tuple[Unrecorded, ...]:
        """Record the state of paths that are about to be written; call it right before every write.

        The record is on disk when this returns; a path recorded in this turn keeps its first state. What is
        returned could not be recorded: ask the person before writing it.
        """
        if self._turn is None:
            raise RuntimeError("before() needs a turn: call begin() first")
        asked = tuple(paths)
        with self._store.locked():
            journal = self._load()
            if self._number is None:
                journal = journal.sealed()
            turn = journal.running or Turn(journal.next, self._turn, time.time())
            for path in asked:
                turn = self._with(turn, path)
            if turn.files and turn != journal.running:
                self._save(replace(journal, next=turn.number + 1, running=turn))
                self._number = turn.number
        return tuple(self._refused[path] for path in asked if path in self._refused)

    def finish(self) -> SnapshotInfo | None:
        """Record what the turn left, of the touched paths alone. None when it changed nothing."""
        number, self._number, self._turn = self._number, None, None
        if number is None:
            return None
        with self._store.locked():
            journal = self._load()
            if journal.running is None or journal.running.number != number:
                return None
            files = tuple(
                replace(file, after=self._files.keep(file.path, self._limits.file))
                for file in journal.running.files
            )
            turn = replace(journal.running, files=tuple(file for file in files if file.after != file.before))
            if not turn.files:
                self._save(replace(journal, running=None))
                return None
            self._save_within_limits(replace(journal, running=turn).sealed())
        paths = tuple(file.path for file in turn.files)
        return SnapshotInfo(f"{self._session}-{turn.number}", turn.name, paths, tuple(self._refused.values()))

    def preview_undo(self) -> list[Restored]:
        """What `undo()` would do. Changes nothing."""
        with self._store.locked():
            done = self._load().sealed().done
            return [
                self._files.judge(file.path, file.before, file.after)
                for file in (done[-1].files if done else ())
            ]

    def preview_redo(self) -> list[Restored]:
        """What `redo()` would do. Changes nothing."""
        with self._store.locked():
            undone = self._load().sealed().undone
            return [
                self._files.judge(file.path, file.after, file.before)
                for file in (undone[-1].files if undone else ())
            ]

    def undo(self, force: bool = False) -> list[Restored]:
        """Put the last turn's files back as they were before it; [] when there is no turn.

        While a file is in conflict the turn stays on the stack: `undo(force=True)` overwrites the file,
        `leave()` gives it up.
        """
        with self._store.locked():
            journal = self._idle()
            if not journal.done:
                return []
            *rest, turn = journal.done
            if force:
                turn = self._insisted(turn, back=True)
                self._save(replace(journal, done=(*rest, turn)))
            results = [self._put_back(file.path, file.before, file.after) for file in turn.files]
            if not _conflicts(results):
                self._save(replace(journal, done=tuple(rest), undone=(*journal.undone, turn)))
            return results

    def redo(self, force: bool = False) -> list[Restored]:
        """Put the files of the turn undone last back as it had left them; [] when there is none."""
        with self._store.locked():
            journal = self._idle()
            if not journal.undone:
                return []
            *rest, turn = journal.undone
            if force:
                turn = self._insisted(turn, back=False)
                self._save(replace(journal, undone=(*rest, turn)))
            results = [self._put_back(file.path, file.after, file.before) for file in turn.files]
            if not _conflicts(results):
                self._save(replace(journal, undone=tuple(rest), done=(*journal.done, turn)))
            return results

    def leave(self) -> None:
        """Pass over the last turn without touching its files, so that the one before it can be undone."""
        with self._store.locked():
            journal = self._idle()
            if journal.done:
                *rest, turn = journal.done
                self._save(replace(journal, done=tuple(rest), undone=(*journal.undone, turn)))

    def changes(self) -> list[FileDelta]:
        """Every path the conversation touched that differs now from what it was before, in order of path."""
        with self._store.locked():
            journal = self._load().sealed()
            first: dict[PurePosixPath, State] = {}
            for turn in journal.done:
                if turn.number >= journal.since:
                    for file in turn.files:
                        first.setdefault(file.path, file.before)
            deltas = [self._files.delta(path, first[path]) for path in sorted(first)]
        return [delta for delta in deltas if delta]

    def _with(self, turn: Turn, path: PurePosixPath) -> Turn:
        try:
            located = self._tree.locate(path)
            if any(file.path == located for file in turn.files):
                return turn
            held = replace(Journal(), running=turn).blobs()
            room = self._limits.project - sum(held.values())
            state = self._files.keep(located, room)
        except (OSError, ValueError) as error:
            reason = (error.strerror or "") if isinstance(error, OSError) else str(error)
            self._refused[path] = Unrecorded(path, reason)
            return turn
        match state:
            case Other(what):
                self._refused[path] = Unrecorded(path, f"it is {what}")
                return turn
            case Regular(size=size, blob=""):
                limit = min(room, self._limits.file)
                self._refused[path] = Unrecorded(
                    path, f"it has {size:,} bytes, more than the {limit:,} that are kept"
                )
            case _:
                pass
        return replace(turn, files=(*turn.files, Touched(located, state)))

    def _insisted(self, turn: Turn, back: bool) -> Turn:
        """The turn with what lies in the way of an undo or redo kept, as that which it may overwrite."""
        files: list[Touched] = []
        for file in turn.files:
            wanted, left = (file.before, file.after) if back else (file.after, file.before)
            touched = file
            if self._files.judge(file.path, wanted, left).outcome == "conflict":
                now = self._files.keep(file.path, self._limits.file)
                if not isinstance(now, Other) and not (isinstance(now, Regular) and not now.blob):
                    touched = replace(file, after=now) if back else replace(file, before=now)
            files.append(touched)
        return replace(turn, files=tuple(files))

    def _put_back(self, path: PurePosixPath, wanted: State | None, left: State | None) -> Restored:
        verdict = self._files.judge(path, wanted, left)
        if verdict.outcome in ("write", "remove") and wanted is not None and left is not None:
            return self._files.put_back(path, wanted, left)
        return verdict

    def _load(self) -> Journal:
        text = self._store.journals().get(self._session)
        if text is None:
            return Journal()
        try:
            return load(text)
        except ValueError as error:
            raise SnapshotError("The undo journal cannot be read.", str(error)) from error

    def _idle(self) -> Journal:
        journal = self._load()
        if self._number is not None and journal.running:
            raise SnapshotError(
                "A turn is still changing files.", todo="Wait for it or cancel it, then try again."
            )
        return journal.sealed()

    def _save(self, journal: Journal) -> None:
        self._store.save(self._session, dump(journal), journal.blobs())

    def _save_within_limits(self, journal: Journal) -> None:
        """Save, forgetting first what no process uses any more and then the oldest turns."""
        others = {session: sum(other.blobs().values()) for session, other in self._sessions()}
        others.pop(self._session, None)
        dropped = False
        for session in reversed(others):
            if not self._too_much(journal, others):
                break
            if self._store.drop(session):
                others[session] = 0
                dropped = True
        while len(journal.done) > 1 and (
            len(journal.done) > self._limits.turns or self._too_much(journal, others)
        ):
            journal = replace(journal, done=journal.done[1:])
            dropped = True
        self._save(journal)
        if dropped:
            self._store.prune()

    def _too_much(self, journal: Journal, others: dict[str, int]) -> bool:
        return sum(journal.blobs().values()) + sum(others.values()) > self._limits.project

    def _sessions(self) -> list[tuple[str, Journal]]:
        """Every session whose journal can be read, the one used last first."""
        found: list[tuple[str, Journal]] = []
        for session, text in self._store.journals().items():
            with suppress(ValueError):
                found.append((session, load(text)))
        return sorted(found, key=lambda item: item[1].last_used(), reverse=True)

    def _open_session(self) -> tuple[str, int]:
        """The session used last that no process has, or a new one, and the descriptor that claims it."""
        with self._store.locked():
            if self._store.loose_objects() > _MANY_LOOSE_OBJECTS:
                self._store.prune()
            self._store.forget_claims(self._store.journals())
            for session in [*(session for session, _ in self._sessions()), uuid4().hex]:
                if (descriptor := self._store.claim(session)) is not None:
                    return session, descriptor
        raise SnapshotsUnavailable(_NO_UNDO, "The snapshot store is in use.", "Try again.")


def _checked(root: Path) -> Path:
    """The project folder with links resolved, unless it is a whole home folder or more."""
    folder = root.resolve()
    if not folder.is_dir():
        raise SnapshotsUnavailable(_NO_UNDO, f"{root} is not a folder.")
    for home in _homes():
        if home.resolve().is_relative_to(folder):
            raise SnapshotsUnavailable(
                _NO_UNDO,
                f"{folder} is a home folder or holds one.",
                "Start Glimmer in a project folder.",
            )
    return folder


def _homes() -> Iterator[Path]:
    with suppress(RuntimeError):
        yield Path.home()
    with suppress(KeyError):
        yield Path(pwd.getpwuid(os.getuid()).pw_dir)


def _conflicts(results: list[Restored]) -> bool:
    return any(result.outcome == "conflict" for result in results)
