"""What may happen without asking, what the person is asked about, and what never happens."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from sandbox.actions import Action, Mode, Ruling
from sandbox.approvals import Approvals
from sandbox.command_risk import Risk, assess
from sandbox.sensitive import is_protected, looks_secret
from sandbox.visible import escaped

_STRICTNESS = {"allow": 0, "ask": 1, "deny": 2}
_READ_ONLY = "The mode is read-only. Choose another mode to allow it: Shift+Tab, or /mode ask."


@dataclass(frozen=True, slots=True)
class _Judging:
    mode: Mode
    approvals: Approvals
    root: Path
    cwd: Path | None
    isolated: bool


def rule(
    actions: Sequence[Action],
    mode: Mode,
    approvals: Approvals,
    root: Path,
    cwd: Path | None = None,
    *,
    isolated: bool = True,
) -> Ruling:
    """The ruling on a plan: the strictest of its actions' rulings, with the reasons of those as strict.

    `cwd` is the folder commands would run in, by default `root`. What is forbidden is denied whatever the
    mode and the approvals say; an approval only ever turns "ask" into "allow". Where commands are not
    `isolated` by the operating system, no mode lets one run unasked that may do more than read.
    """
    judging = _Judging(mode, approvals, root, cwd, isolated)
    rulings = [_one(action, judging) for action in actions]
    strictest = max(rulings, key=lambda ruling: _STRICTNESS[ruling.verdict], default=Ruling("allow"))
    reasons = dict.fromkeys(
        ruling.reason for ruling in rulings if ruling.verdict == strictest.verdict and ruling.reason
    )
    return Ruling(strictest.verdict, " ".join(reasons))


def _one(action: Action, judging: _Judging) -> Ruling:
    mode, root, cwd = judging.mode, judging.root, judging.cwd
    match action.kind:
        case "execute" | "test":
            ruling = _command(action, judging, assess(action.target, root, cwd))
        case "read":
            ruling = _read(action, mode, root)
        case "write" | "delete":
            ruling = _change(action, mode, root)
        case "screen":
            ruling = _screen(mode)
    if ruling.verdict == "ask" and judging.approvals.covers(action, root, cwd):
        return Ruling("allow", "Approved for this session.")
    return ruling


def _command(action: Action, judging: _Judging, risk: Risk) -> Ruling:
    if risk.level == "forbidden":
        return Ruling("deny", f"It {risk.reason}. No mode allows that.")
    if judging.mode == "read-only":
        return Ruling("deny", f"`{escaped(action.target)}` would run a command. {_READ_ONLY}")
    if risk.level == "read" and not action.network:
        return Ruling("allow")
    doubts = list(_doubts(action, judging, risk))
    return Ruling("ask", " ".join(doubts)) if doubts else Ruling("allow")


def _doubts(action: Action, judging: _Judging, risk: Risk) -> Iterator[str]:
    """What the person is asked about a command that may do more than read."""
    if action.network:
        yield "It would use the network, which commands do not have otherwise."
    if risk.secret:
        yield "The command may read a secret."
    elif judging.mode == "auto":
        if not judging.isolated:
            yield "Nothing confines commands on this machine."
    elif action.kind == "test":
        yield "Tests run the project's own code."
    else:
        yield f"Not known to only read: {escaped(risk.reason)}."


def _screen(mode: Mode) -> Ruling:
    """Asked each time in every mode: what else is on the screen is known to nobody but the person."""
    if mode == "read-only":
        return Ruling("deny", f"The whole screen would be photographed. {_READ_ONLY}")
    return Ruling("ask", "The model would see everything that is on your screen now.")


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
    return _change_asked(action, shown, mode)


def _change_asked(action: Action, shown: str, mode: Mode) -> Ruling:
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
