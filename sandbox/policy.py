"""What may happen without asking, what the person is asked about, and what never happens."""

from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from sandbox.actions import Action, Mode, Ruling
from sandbox.approvals import Approvals
from sandbox.command_risk import Risk, assess
from sandbox.sensitive import is_protected, looks_secret
from sandbox.visible import escaped

_STRICTNESS = {"allow": 0, "ask": 1, "deny": 2}
_READ_ONLY = "The mode is read-only. Choose another mode to allow it: Shift+Tab, or /mode ask."


def rule(actions: Sequence[Action], mode: Mode, approvals: Approvals, root: Path) -> Ruling:
    """The ruling on a plan: the strictest of its actions' rulings, with the reasons of those that are as strict.

    What is forbidden is denied whatever the mode and the approvals say; approvals only ever turn "ask" into
    "allow".
    """
    rulings = [_one(action, mode, approvals, root) for action in actions]
    verdict = max((ruling.verdict for ruling in rulings), key=_STRICTNESS.__getitem__, default="allow")
    reasons = dict.fromkeys(
        ruling.reason for ruling in rulings if ruling.verdict == verdict and ruling.reason
    )
    return Ruling(verdict, " ".join(reasons))


def _one(action: Action, mode: Mode, approvals: Approvals, root: Path) -> Ruling:
    match action.kind:
        case "execute" | "test":
            risk = assess(action.target, root)
            if risk.level == "forbidden":
                return Ruling("deny", f"It {risk.reason}. No mode allows that.")
            ruling = _command(action, mode, risk)
        case "read":
            ruling = _read(action, mode, root)
        case "write" | "delete":
            ruling = _change(action, mode, root)
    if ruling.verdict == "ask" and approvals.covers(action):
        return Ruling("allow", "Approved for this session.")
    return ruling


def _command(action: Action, mode: Mode, risk: Risk) -> Ruling:
    shown = escaped(action.target)
    if mode == "read-only":
        return Ruling("deny", f"`{shown}` would run a command. {_READ_ONLY}")
    if risk.level == "read":
        return Ruling("allow")
    if risk.secret:
        return Ruling("ask", "The command names what looks like a secret.")
    if mode == "auto":
        return Ruling("allow")
    if action.kind == "test":
        return Ruling("ask", "Tests run the project's own code.")
    return Ruling("ask", f"It is not known to only read: {risk.reason}.")


def _read(action: Action, mode: Mode, root: Path) -> Ruling:
    shown = escaped(action.target)
    secret = looks_secret(action.target)
    if not secret and not _outside(action.target, root):
        return Ruling("allow")
    what = f"`{shown}` looks like a secret." if secret else f"`{shown}` is outside the project."
    return Ruling("deny", f"{what} {_READ_ONLY}") if mode == "read-only" else Ruling("ask", what)


def _change(action: Action, mode: Mode, root: Path) -> Ruling:
    shown = escaped(action.target)
    if _outside(action.target, root):
        return Ruling("deny", f"`{shown}` is outside the project, where nothing may be changed.")
    if mode == "read-only":
        return Ruling("deny", f"`{shown}` would be changed. {_READ_ONLY}")
    if mode == "auto":
        return Ruling("allow")
    if looks_secret(action.target):
        return Ruling("ask", f"`{shown}` looks like a secret.")
    if is_protected(action.target):
        return Ruling("ask", f"`{shown}` steers git, the editor or the shell.")
    if action.kind == "delete":
        return Ruling("ask", f"`{shown}` would be deleted.")
    return Ruling("allow") if mode == "auto-edit" else Ruling("ask", f"`{shown}` would be changed.")


def _outside(target: str, root: Path) -> bool:
    """Judged by name; what applies a plan checks links when it opens the file."""
    path = PurePosixPath(target)
    if path.is_absolute():
        return not path.is_relative_to(root.as_posix()) or ".." in path.parts
    depth = 0
    for part in path.parts:
        depth += -1 if part == ".." else 1
        if depth < 0:
            return True
    return False
