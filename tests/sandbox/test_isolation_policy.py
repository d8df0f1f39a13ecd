"""What policy says of commands where nothing confines them, and of commands that want the network."""

from pathlib import Path

import pytest

from sandbox.actions import MODES, Action
from sandbox.approvals import Approvals
from sandbox.policy import rule

_ROOT = Path("/project")
_READS, _BUILDS, _TESTS = Action("execute", "ls"), Action("execute", "make all"), Action("test", "pytest -q")
_DOWNLOADS = Action("execute", "pip install x", network=True)


def verdicts(action: Action, *, isolated: bool) -> str:
    return " ".join(rule([action], mode, Approvals(), _ROOT, isolated=isolated).verdict for mode in MODES)


@pytest.mark.parametrize(
    ("action", "isolated", "open_to_all"),
    [
        (_READS, "deny allow allow allow", "deny allow allow allow"),
        (_BUILDS, "deny ask ask allow", "deny ask ask ask"),
        (_TESTS, "deny ask ask allow", "deny ask ask ask"),
        (_DOWNLOADS, "deny ask ask ask", "deny ask ask ask"),
        (Action("execute", "cat .env"), "deny ask ask ask", "deny ask ask ask"),
        (Action("execute", "rm -rf ~"), "deny deny deny deny", "deny deny deny deny"),
        (Action("write", "a.py"), "deny ask allow allow", "deny ask allow allow"),
    ],
)
def test_without_isolation_no_mode_runs_a_command_unasked(
    action: Action, isolated: str, open_to_all: str
) -> None:
    assert verdicts(action, isolated=True) == isolated
    assert verdicts(action, isolated=False) == open_to_all


def test_the_question_says_why() -> None:
    assert "confines" in rule([_BUILDS], "auto", Approvals(), _ROOT, isolated=False).reason
    assert "network" in rule([_DOWNLOADS], "auto", Approvals(), _ROOT).reason
    assert "network" in rule([_DOWNLOADS], "ask", Approvals(), _ROOT).reason


def test_an_approval_holds_without_isolation_too() -> None:
    approvals = Approvals()
    approvals.remember([_BUILDS])
    assert rule([_BUILDS], "auto", approvals, _ROOT, isolated=False).verdict == "allow"


def test_the_network_is_approved_for_the_whole_command_alone() -> None:
    approvals = Approvals()
    without = Action("execute", _DOWNLOADS.target)
    approvals.remember([without])
    assert rule([_DOWNLOADS], "ask", approvals, _ROOT).verdict == "ask"
    approvals.remember([_DOWNLOADS])
    assert rule([_DOWNLOADS], "ask", approvals, _ROOT).verdict == "allow"
    more = Action("execute", "pip install x && make all", network=True)
    approvals.remember([_BUILDS])
    assert rule([more], "ask", approvals, _ROOT).verdict == "ask"
    assert rule([_DOWNLOADS], "ask", approvals, _ROOT, _ROOT / "other").verdict == "ask"
    assert "network" in approvals.describe([_DOWNLOADS])


def test_the_network_is_not_remembered_for_what_may_change() -> None:
    approvals = Approvals()
    varying = Action("execute", "curl $HOST", network=True)
    approvals.remember([varying])
    assert rule([varying], "ask", approvals, _ROOT).verdict == "ask"
