"""Files that change while a tool plans: nothing that was not seen is lost."""

import pytest

from sandbox.paths import Workspace
from tools import edit, write
from tools.base import FileChange, Plan, Running
from tools.edit import EditArguments, EditTool
from tools.write import WriteArguments, WriteTool

STEPS = ("stat", "real", "check_write", "fingerprint", "read")


@pytest.fixture
def meanwhile(monkeypatch):
    """Let something happen once, right after or before a step of the workspace."""

    def arrange(step, when, happens):
        real = getattr(Workspace, step)
        waiting = [happens]

        def stepped(self, *arguments):
            if when == "before" and waiting:
                waiting.pop()()
            try:
                return real(self, *arguments)
            finally:
                if when == "after" and waiting:
                    waiting.pop()()

        monkeypatch.setattr(Workspace, step, stepped)

    return arrange


@pytest.fixture
def small(monkeypatch):
    """Bounds that a test can reach."""
    monkeypatch.setattr(edit, "LARGEST_FILE", 64)
    monkeypatch.setattr(write, "LARGEST_FILE", 64)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", STEPS)
def test_a_file_that_appears_is_not_replaced_unseen(root, workspace, meanwhile, step, when):
    appeared: list[int] = []
    meanwhile(step, when, lambda: appeared.append((root / "a").write_text("theirs\n")))
    tool = WriteTool(workspace)
    plan = tool.prepare(WriteArguments(path="a", content="mine\n"))
    assert isinstance(plan, Plan) and isinstance(plan.preview, FileChange)
    result = tool.apply(plan, Running())
    seen = not appeared or plan.preview.before == "theirs\n"
    assert result.error == ("" if seen else "changed_since")
    assert (root / "a").read_text() == ("mine\n" if seen else "theirs\n")


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("grown", [64, 65, 66, 200])
@pytest.mark.parametrize("moment", [(step, when) for step in STEPS for when in ("before", "after")])
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        (EditTool, EditArguments(path="a", old="one", new="two")),
        (WriteTool, WriteArguments(path="a", content="mine\n")),
    ],
)
def test_a_file_that_grows_keeps_its_tail(meanwhile, workspace, tool, arguments, moment, grown):
    file = workspace.root / "a"
    file.write_text("one\n")
    meanwhile(*moment, lambda: file.write_text("one\n" + "x" * (grown - 4)))
    planner = tool(workspace)
    plan = planner.prepare(arguments)
    if not isinstance(plan, Plan):
        assert plan.error in {"too_large", "changed_since"}
        assert file.read_text().startswith("one")
        return
    assert isinstance(plan.preview, FileChange)
    result = planner.apply(plan, Running())
    if result.is_error:
        assert file.read_text().startswith("one")
    else:
        assert plan.preview.before is not None
        assert len(plan.preview.before) in {4, 64}
        assert file.stat().st_size == len(plan.preview.after)


@pytest.mark.usefixtures("small")
def test_the_largest_file_is_still_changed(root, workspace, call):
    (root / "a").write_text("x" * 63 + "\n")
    assert not call(EditTool(workspace), path="a", old="x" * 63, new="y").is_error
    (root / "a").write_text("x" * 63 + "\n")
    assert not call(WriteTool(workspace), path="a", content="y\n").is_error
    (root / "a").write_text("x" * 64 + "\n")
    assert call(EditTool(workspace), path="a", old="x", new="y", all=True).error == "too_large"
    assert call(WriteTool(workspace), path="a", content="y\n").error == "too_large"
