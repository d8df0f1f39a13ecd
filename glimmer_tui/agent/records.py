"""What is written down about a turn: files as they were, for undo, and the audit log."""

import asyncio
import logging
import os
from pathlib import Path, PurePosixPath

from engine.messages import ToolCall
from glimmer_tui.agent.events import Notice, SnapshotTaken
from glimmer_tui.agent.outbox import Emit
from glimmer_tui.agent.summary import one_line
from sandbox.audit import AuditLog
from sandbox.snapshots import Restored, SnapshotError, Snapshots, Unrecorded
from tools.base import Plan, Result

_log = logging.getLogger(__name__)

_LONGEST_BRANCH = 100


class Records:
    """Snapshots and audit of one project. Each is None where it is not to be had; the person was told why."""

    def __init__(self, root: Path, snapshots: Snapshots | None, audit: AuditLog | None, emit: Emit) -> None:
        self._root = root
        self._snapshots = snapshots
        self._audit = audit
        self._emit = emit

    def no_undo_for(self, plan: Plan) -> bool:
        """Whether the plan writes files and nothing can be recorded for this project at all."""
        return self._snapshots is None and bool(written_paths(plan))

    async def begin(self, turn: str) -> None:
        """Name the turn that starts."""
        if self._snapshots is not None:
            await asyncio.to_thread(self._snapshots.begin, turn)

    async def before(self, call: ToolCall, plan: Plan) -> tuple[Unrecorded, ...]:
        """Record the files the plan is about to touch; right before it is applied. Raises SnapshotError.

        What is returned could not be recorded: the person must agree first.
        """
        paths = written_paths(plan)
        if self._snapshots is None or not paths:
            return ()
        unrecorded = await asyncio.to_thread(self._snapshots.before, paths)
        missing = {item.path for item in unrecorded}
        recorded = tuple(path.as_posix() for path in paths if path not in missing)
        if recorded:
            self._emit(SnapshotTaken(call.id, recorded))
        return unrecorded

    async def finish(self) -> None:
        """Close the turn's record."""
        if self._snapshots is None:
            return
        try:
            await asyncio.to_thread(self._snapshots.finish)
        except (SnapshotError, OSError) as problem:
            _log.exception("a turn could not be recorded")
            self._emit(Notice(f"This turn's undo record could not be closed. {problem}", "error"))

    async def start_conversation(self) -> None:
        """Count changes from here on."""
        if self._snapshots is None:
            return
        try:
            await asyncio.to_thread(self._snapshots.start_conversation)
        except (SnapshotError, OSError) as problem:
            _log.exception("a conversation could not be marked in the snapshots")
            self._emit(Notice(f"Changes of earlier conversations are shown too. {problem}", "warning"))

    async def preview(self, redo: bool) -> tuple[Restored, ...]:
        """What an undo or a redo would do."""
        if self._snapshots is None:
            return ()
        look = self._snapshots.preview_redo if redo else self._snapshots.preview_undo
        return tuple(await asyncio.to_thread(look))

    async def pass_over(self) -> None:
        """Leave the last turn as it is, for undo to reach the one before it. Raises SnapshotError."""
        if self._snapshots is not None:
            await asyncio.to_thread(self._snapshots.leave)
            await self.note("undo passed over")

    async def restore(self, redo: bool, force: bool = False) -> tuple[Restored, ...]:
        """Undo or redo one turn. Raises SnapshotError."""
        if self._snapshots is None:
            return ()
        put_back = self._snapshots.redo if redo else self._snapshots.undo
        restored = tuple(await asyncio.to_thread(put_back, force))
        await self.note("redo" if redo else "undo", paths=[item.path.as_posix() for item in restored])
        return restored

    async def judged(self, call: ToolCall, plan: Plan, verdict: str, reason: str) -> None:
        """What was decided about a plan, and by what reason or note."""
        actions = [f"{action.kind} {action.target}" for action in plan.actions]
        await self.note(
            "decision", call=call.id, tool=call.name, actions=actions, verdict=verdict, reason=reason
        )

    async def done(self, call: ToolCall, result: Result) -> None:
        """How a call that ran ended."""
        changed = [path.as_posix() for path in result.changed]
        await self.note("result", call=call.id, tool=call.name, error=result.error, changed=changed)

    async def note(self, kind: str, **fields: object) -> None:
        """One line for the audit log; the person is told when the log begins to fail."""
        if self._audit is None:
            return
        problem = await asyncio.to_thread(self._audit.record, kind, **fields)
        if problem:
            self._emit(Notice(problem, "warning"))

    def close(self) -> None:
        """Give back what is held. Blocks; nothing can be recorded afterwards."""
        if self._snapshots is not None:
            self._snapshots.close()
        if self._audit is not None:
            self._audit.close()

    def branch(self) -> str:
        """The checked-out branch, or the short commit; "" outside a repository."""
        try:
            head = _first_line(_git_folder(self._root) / "HEAD")
        except (OSError, ValueError):
            return ""
        name = head.removeprefix("ref: refs/heads/")
        return one_line(name, _LONGEST_BRANCH) if name != head else one_line(head[:8], 8)


def written_paths(plan: Plan) -> tuple[PurePosixPath, ...]:
    """The files a plan writes or deletes, workspace-relative."""
    return tuple(
        PurePosixPath(action.target) for action in plan.actions if action.kind in ("write", "delete")
    )


def _git_folder(root: Path) -> Path:
    """`.git`, or the folder that a worktree's `.git` file names."""
    git = root / ".git"
    if not git.is_file():
        return git
    return (root / _first_line(git).removeprefix("gitdir: ")).resolve()


def _first_line(path: Path) -> str:
    """A small file's first line. A pipe in its place is not waited for. Raises OSError or ValueError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        return file.readline(4096).decode("utf-8").strip()
