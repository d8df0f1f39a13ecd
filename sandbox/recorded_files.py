"""Single paths between the project and the store: keep what is there, judge it, put it back."""

import os
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import PurePosixPath
from typing import Literal

from sandbox.object_store import ObjectStore, SnapshotError
from sandbox.work_tree import Absent, Link, Other, Regular, State, WorkTree

Outcome = Literal["write", "remove", "unchanged", "conflict", "unrecorded"]


@dataclass(frozen=True, slots=True)
class Restored:
    """What an undo or redo did to one path, or would do.

    "write" and "remove" are done; "unchanged" was as wanted already; "conflict" was left alone for `reason`
    and keeps its turn on the stack; "unrecorded" can never be restored.
    """

    path: PurePosixPath
    outcome: Outcome
    reason: str = ""


@dataclass(frozen=True, slots=True)
class FileDelta:
    """A path's content before the conversation first touched it and now; None where there was no file.

    For a link the bytes are the path it holds. `note` says why contents are missing although there is a file.
    """

    path: PurePosixPath
    before: bytes | None
    after: bytes | None
    note: str = ""


class RecordedFiles:
    """The project's files on one side, their kept copies on the other."""

    def __init__(self, tree: WorkTree, store: ObjectStore) -> None:
        self._tree = tree
        self._store = store

    def keep(self, path: PurePosixPath, room: int) -> State:
        """What is at `path`, its content kept in the store when it is a file of at most `room` bytes."""
        state, content = self._tree.read(path)
        if isinstance(state, Regular) and content is not None and len(content) <= room:
            return replace(state, blob=self._store.put(content))
        return state

    def judge(self, path: PurePosixPath, wanted: State | None, left: State | None) -> Restored:
        """What restoring `wanted` would do, if nothing but `left` may be overwritten."""
        now, _ = self._tree.read(path)
        if now == wanted:
            return Restored(path, "unchanged")
        if wanted is None or isinstance(wanted, Other) or (isinstance(wanted, Regular) and not wanted.blob):
            return Restored(path, "unrecorded", "its content was not recorded")
        if left is None:
            return Restored(path, "conflict", "the turn was cut short, so what it left there is not known")
        if now != left or isinstance(now, Other):
            return Restored(path, "conflict", _difference(now))
        return Restored(path, "remove" if isinstance(wanted, Absent) else "write")

    def put_back(self, path: PurePosixPath, wanted: State, left: State) -> Restored:
        """Make `path` as `wanted`, once more only if it is as it was `left`."""
        content = self.content(wanted) or b""
        verdict = self.judge(path, wanted, left)
        try:
            match verdict.outcome, wanted:
                case "write", Regular() | Link():
                    self._tree.write(path, wanted, content)
                case "remove", Absent(missing):
                    self._tree.remove(path, missing)
                case _:
                    pass
        except OSError as error:
            return Restored(path, "conflict", f"it could not be restored: {error.strerror}")
        return verdict

    def content(self, state: State) -> bytes | None:
        """The kept bytes of a file, the path a link holds, None for anything else. Raises SnapshotError."""
        match state:
            case Regular():
                content = self._store.get(state.blob)
                if sha256(content).hexdigest() != state.digest:
                    raise SnapshotError(
                        "A recorded file is damaged.", f"Object {state.blob} changed in the store."
                    )
                return content
            case Link(target):
                return os.fsencode(target)
            case Absent() | Other():
                return None

    def delta(self, path: PurePosixPath, before: State) -> FileDelta | None:
        """How `path` differs now from `before`; None when it does not."""
        after, content = self._tree.read(path)
        if after == before:
            return None
        if isinstance(before, Regular) and not before.blob:
            return FileDelta(path, None, None, "it was too large to be recorded")
        original = self.content(before)
        match after:
            case Other(what):
                return FileDelta(path, original, None, f"it is {what} now")
            case Regular() if content is None:
                return FileDelta(path, original, None, "it is too large to be shown now")
            case Link(target):
                return FileDelta(path, original, os.fsencode(target))
            case _:
                return FileDelta(path, original, content)


def _difference(now: State) -> str:
    match now:
        case Absent():
            return "it was deleted since"
        case Other(what):
            return f"it is {what} now"
        case Link():
            return "it is another link now"
        case Regular():
            return "it was changed since"
