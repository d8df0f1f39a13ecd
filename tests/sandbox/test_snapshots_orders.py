"""Turns, undo, redo, restarts and the person's own edits in any order, against a model in memory."""

import tempfile
from pathlib import Path, PurePosixPath

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from sandbox.snapshots import Snapshots

NAMES = ("a", "d/b")
contents = st.one_of(st.none(), st.binary(min_size=1, max_size=3))
Files = dict[str, bytes | None]


class UndoModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.root = Path(self.folder.name) / "project"
        self.root.mkdir()
        self.snapshots = self.open()
        self.files: Files = dict.fromkeys(NAMES)
        self.done: list[tuple[Files, Files]] = []
        self.undone: list[tuple[Files, Files]] = []

    def open(self) -> Snapshots:
        return Snapshots(self.root, Path(self.folder.name) / "state")

    def write(self, name: str, content: bytes | None) -> None:
        path = self.root / name
        if content is None:
            path.unlink(missing_ok=True)
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
        self.files[name] = content

    @rule(writes=st.lists(st.tuples(st.sampled_from(NAMES), contents), max_size=3))
    def agent_turn(self, writes: list[tuple[str, bytes | None]]) -> None:
        start = dict(self.files)
        self.snapshots.begin("turn")
        for name, content in writes:
            assert self.snapshots.before([PurePosixPath(name)]) == ()
            self.write(name, content)
        changed = [name for name in NAMES if start[name] != self.files[name]]
        info = self.snapshots.finish()
        assert (info is not None) == bool(changed)
        if changed:
            self.done.append(({n: start[n] for n in changed}, {n: self.files[n] for n in changed}))
            self.undone = []

    @rule(name=st.sampled_from(NAMES), content=contents)
    def person_edits(self, name: str, content: bytes | None) -> None:
        self.write(name, content)

    def restore(self, wanted: Files, left: Files, force: bool) -> tuple[Files, bool]:
        """What the model expects on disk, and whether the turn moves to the other stack."""
        expected = dict(self.files)
        moves = True
        for name, content in wanted.items():
            if self.files[name] in (content, left[name]) or force:
                expected[name] = content
            else:
                moves = False
        return expected, moves

    @precondition(lambda self: self.done)
    @rule(force=st.booleans())
    def undo(self, force: bool) -> None:
        before, after = self.done[-1]
        expected, moves = self.restore(before, after, force)
        if force:
            after = {n: after[n] if self.files[n] == before[n] else self.files[n] for n in after}
            self.done[-1] = (before, after)
        self.snapshots.undo(force)
        self.files = expected
        if moves:
            self.undone.append(self.done.pop())

    @precondition(lambda self: self.undone)
    @rule(force=st.booleans())
    def redo(self, force: bool) -> None:
        before, after = self.undone[-1]
        expected, moves = self.restore(after, before, force)
        if force:
            before = {n: before[n] if self.files[n] == after[n] else self.files[n] for n in before}
            self.undone[-1] = (before, after)
        self.snapshots.redo(force)
        self.files = expected
        if moves:
            self.done.append(self.undone.pop())

    @precondition(lambda self: self.done)
    @rule()
    def leave(self) -> None:
        self.snapshots.leave()
        self.undone.append(self.done.pop())

    @rule()
    def restart(self) -> None:
        self.snapshots.close()
        self.snapshots = self.open()

    @invariant()
    def the_disk_is_as_expected(self) -> None:
        for name, content in self.files.items():
            path = self.root / name
            assert (path.read_bytes() if path.exists() else None) == content

    def teardown(self) -> None:
        while self.done:
            before, after = self.done.pop()
            self.files, _ = self.restore(before, after, force=True)
            self.snapshots.undo(force=True)
        self.the_disk_is_as_expected()
        assert self.snapshots.undo() == []
        self.snapshots.close()
        self.folder.cleanup()


TestOrders = UndoModel.TestCase
TestOrders.settings = settings(max_examples=10, stateful_step_count=10, deadline=None)
