"""What was decided about a change that cannot be undone is in the audit log like any other decision."""

import json
from pathlib import PurePosixPath

import pytest

from engine.scripted import call_reply, text_reply
from sandbox.actions import Decision
from sandbox.snapshots import SnapshotError, Snapshots, Unrecorded

FIX = {"path": "calc.py", "old": "a - b", "new": "a + b"}


def _decisions(here) -> list[dict]:
    lines = [json.loads(line) for line in (here.state / "audit.jsonl").read_text().splitlines()]
    return [line for line in lines if line["kind"] == "decision"]


@pytest.mark.parametrize("mode", ["ask", "auto-edit", "auto"])
@pytest.mark.parametrize(
    ("decision", "told"),
    [
        (Decision("allow"), "too large"),
        (Decision("deny"), "too large"),
        (Decision("deny", "leave it alone"), "leave it alone"),
    ],
)
async def test_the_answer_about_what_cannot_be_undone_is_recorded(
    world, monkeypatch, mode, decision, told
) -> None:
    missed = (Unrecorded(PurePosixPath("calc.py"), "it is too large"),)
    monkeypatch.setattr(Snapshots, "before", lambda self, paths: missed)
    here = world([call_reply("edit", FIX), text_reply("Done.")], mode=mode)
    here.answers = lambda request: decision if "undone" in request.reason else Decision("allow")
    await here.say("Fix it.")

    lines = _decisions(here)
    assert len(lines) == 2
    assert lines[0]["verdict"] in {"allow", "allowed"}
    assert lines[-1]["verdict"] == decision.verdict
    assert told in lines[-1]["reason"]
    assert lines[-1]["actions"] == ["write calc.py"]
    assert ("a + b" in (here.root / "calc.py").read_text()) == (decision.verdict == "allow")


@pytest.mark.parametrize("problem", [SnapshotError("The disk is full."), OSError("The disk is full.")])
async def test_a_change_not_run_for_want_of_a_record_is_recorded(world, monkeypatch, problem) -> None:
    def fails(self, paths):
        raise problem

    monkeypatch.setattr(Snapshots, "before", fails)
    here = world([call_reply("edit", FIX), text_reply("Done.")], mode="auto-edit")
    await here.say("Fix it.")

    last = _decisions(here)[-1]
    assert (last["verdict"], last["actions"]) == ("not_run", ["write calc.py"])
    assert "The disk is full." in last["reason"]
    assert "a + b" not in (here.root / "calc.py").read_text()
