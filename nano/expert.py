"""How the model is taught to work: run the tests, find the function, read, mend, run the tests again, answer.

Mistakes are played too, with no loss on the mistake itself, so that the right next step is learned: a wrong
file, a path that does not exist, an edit that does not match, is not unique or changes nothing, a first fix
that leaves the test red, a call the person declines.
"""

import random
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from engine.messages import Message
from nano import wishes
from nano.project import Planted, Project, make_project
from nano.rollout import SKIP, Rollout
from nano.words import made_up

MISTAKES = (
    "wrong_file",
    "wrong_file",
    "no_path",
    "no_path",
    "no_match",
    "no_match",
    "not_unique",
    "no_change",
    "no_change",
    "wrong_fix",
    "wrong_fix",
    "declined",
)


@dataclass(frozen=True, slots=True)
class Situation:
    """What is known when a bug is looked for: the last report, whether the wish names the right file, and the
    mistake to be played ("" for none)."""

    project: Project
    report: str
    named: bool
    mistake: str


def trajectory(rng: random.Random, scratch: Path) -> list[tuple[Message, float]]:
    """One conversation with its loss weights, played in a folder under `scratch`."""
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        rollout = Rollout(Path(folder))
        kind = rng.random()
        if kind < 0.02:
            _small_talk(rng, rollout)
        elif kind < 0.04:
            _green(rng, rollout)
        else:
            _mend(rng, rollout)
        return rollout.turns


def _small_talk(rng: random.Random, rollout: Rollout) -> None:
    for _ in range(rng.choice((1, 1, 2))):
        asked, answer = wishes.talk(rng)
        rollout.says(asked)
        rollout.answers(answer)


def _green(rng: random.Random, rollout: Rollout) -> None:
    project = make_project(rng, 0)
    write_files(rollout.root, project.files)
    rollout.says(wishes.mend(rng))
    rollout.green = project.tests
    rollout.calls("First I run the tests.", "test", {})
    rollout.answers(f"{_all_pass(project)} There is nothing to fix.")


def _mend(rng: random.Random, rollout: Rollout) -> None:
    count = 2 if rng.random() < 0.15 else 1
    mistake = rng.choice(MISTAKES) if rng.random() < 0.3 else ""
    project = make_project(rng, count, twin=mistake == "not_unique")
    while mistake == "wrong_file" and len(project.files) < 2:
        project = make_project(rng, count)
    write_files(rollout.root, project.files)
    named = _wish(rng, rollout, project)
    report = rollout.calls("First I run the tests.", "test", {})
    mended: list[Planted] = []
    left = list(project.bugs)
    while left:
        bug = _first_failing(report, left)
        name = bug.function.name
        first = not mended
        situation = Situation(project, report, named and first, mistake if first else "")
        _find(rng, rollout, bug, situation)
        if mistake == "wrong_fix" and not mended and not bug.function.module:
            report = _wrong_fix(rng, rollout, bug, report)
        if not _change(rng, rollout, bug, mistake if not mended else ""):
            return
        left.remove(bug)
        mended.append(bug)
        rollout.green = 0 if left else project.tests
        report = rollout.calls(f"I changed {name}. I run the tests again.", "test", {})
        assert bool(left) == report.startswith("Tests failed"), report
    rollout.answers(" ".join([*(_told(bug) for bug in mended), _all_pass(project)]))
    _afterwards(rng, rollout, mended)


def _wish(rng: random.Random, rollout: Rollout, project: Project) -> bool:
    """Say the wish; True when it names the file of the only bug."""
    draw, bug = rng.random(), project.bugs[0]
    if draw < 0.7:
        rollout.says(wishes.mend(rng))
    elif draw < 0.85:
        rollout.says(wishes.mend_file(rng, bug.path))
        return len(project.bugs) == 1
    else:
        rollout.says(wishes.mend_function(rng, bug.function.name))
    return False


def _first_failing(report: str, bugs: list[Planted]) -> Planted:
    places = {bug.function.name: report.find(f"::test_{bug.function.name}") for bug in bugs}
    failing = [bug for bug in bugs if places[bug.function.name] >= 0]
    assert failing, report
    return min(failing, key=lambda bug: places[bug.function.name])


def _traced(report: str, bug: Planted) -> bool:
    return (
        re.search(rf"^{re.escape(bug.path)}:\d+: in {bug.function.name}$", report, re.MULTILINE) is not None
    )


def _find(rng: random.Random, rollout: Rollout, bug: Planted, situation: Situation) -> None:
    """Reach the source of the failing function and read it."""
    name, path = bug.function.name, bug.path
    match situation.mistake:
        case "wrong_file":
            other = rng.choice(
                [p for p in situation.project.files if p != path and situation.project.files[p]]
            )
            rollout.calls(f"{name} fails. I read {other}.", "read", {"path": other}, SKIP)
            _search(rollout, name, f"{name} is not defined in {other}. I search for it.")
        case "no_path":
            missing = _missing(rng, path)
            told = rollout.calls(f"{name} fails. I read {missing}.", "read", {"path": missing}, SKIP)
            best = re.search(r"Did you mean (\S+?)[,? ]", told)
            if best is not None and best[1] == path:
                rollout.calls(f"There is no {missing}. I read {path}.", "read", {"path": path})
                return
            _search(rollout, name, f"There is no {missing}. I search for {name}.")
        case _ if _traced(situation.report, bug):
            rollout.calls(f"{name} fails in {path}. I read it.", "read", {"path": path})
            return
        case _ if situation.named:
            rollout.calls(f"{name} fails. I read {path}.", "read", {"path": path})
            return
        case _:
            _search(rollout, name, f"{name} fails. I search for it.")
    rollout.calls(f"{name} is in {path}. I read it.", "read", {"path": path})


def _missing(rng: random.Random, path: str) -> str:
    name = path.split("/")[-1]
    return rng.choice((f"{made_up(rng)}/{name}", path.replace(".py", "s.py"), f"lib/{name}"))


def _search(rollout: Rollout, name: str, reason: str) -> None:
    rollout.calls(reason, "search", {"pattern": f"def {name}"})


def _reason(rollout: Rollout, bug: Planted) -> str:
    """The function, word for word up to the wrong line: what the mended line needs is then close by."""
    if bug.function.module:
        return f"{bug.function.name} uses {bug.function.module}, which is not imported. I add the import."
    rows = _rows(rollout, bug)
    end = next(i for i, row in enumerate(rows) if row.strip() == bug.old)
    return "\n".join([*rows[: end + 1], "The last line is wrong."])


def _rows(rollout: Rollout, bug: Planted) -> list[str]:
    rows = rollout.text_of(bug.path).split("\n")
    return rows[next(i for i, row in enumerate(rows) if row.startswith(f"def {bug.function.name}(")) :]


def _change(rng: random.Random, rollout: Rollout, bug: Planted, mistake: str) -> bool:
    """Make the edit; False when the person declined it and the turn is over."""
    old, new = bug.old, bug.new
    reason = _reason(rollout, bug)
    if mistake == "declined":
        note = rng.choice(wishes.NOTES) if rng.random() < 0.5 else ""
        words = f"The user declined this call: {note}" if note else "The user declined this call."
        rollout.calls(reason, "edit", {"path": bug.path, "old": old, "new": new}, denied=words)
        rollout.answers(f"I left {bug.path} as it is.")
        return False
    if mistake in ("no_match", "no_change") and _botched(rng, rollout, bug, mistake):
        again = f"Nothing was changed. I read {bug.path} again."
        rollout.calls(again, "read", {"path": bug.path})
    rollout.calls(reason, "edit", {"path": bug.path, "old": old, "new": new})
    if rollout.text_of(bug.path).count(old) > 1:
        above = f"{bug.context}\n    {_indent(rollout, bug)}"
        arguments = {"path": bug.path, "old": above + old, "new": above + new}
        rollout.calls("It is not unique. I add the line above.", "edit", arguments)
    return True


def _botched(rng: random.Random, rollout: Rollout, bug: Planted, mistake: str) -> bool:
    """Play an edit that changes nothing, copied wrongly or from another function; False where none fits."""
    reason, old = _reason(rollout, bug), bug.old
    if mistake == "no_match":
        wrong = _slip(rng, old)
        if wrong in rollout.text_of(bug.path):
            return False
        new = bug.new
    else:
        lines = [row.strip() for row in rollout.text_of(bug.path).split("\n")]
        others = [line for line in lines if line.startswith("return ") and line != old]
        wrong = rng.choice(others) if others and rng.random() < 0.5 else old
        new = wrong
    if rng.random() < 0.7:
        reason = reason.replace(old, wrong)
    rollout.calls(reason, "edit", {"path": bug.path, "old": wrong, "new": new}, SKIP)
    return True


def _indent(rollout: Rollout, bug: Planted) -> str:
    row = next(row for row in _rows(rollout, bug) if row.strip() == bug.old)
    return row[4 : len(row) - len(bug.old)]


def _slip(rng: random.Random, line: str) -> str:
    i = rng.randrange(len(line))
    return rng.choice(
        (line[:i] + line[i + 1 :], line.replace(" ", "  ", 1) + ";", line + " # here", "    " + line + "()")
    )


def _wrong_fix(rng: random.Random, rollout: Rollout, bug: Planted, report: str) -> str:
    """Play a first fix that leaves the test red; the file then holds another wrong line."""
    name = bug.function.name
    bad = _another(rng, bug)
    if bad is None or rollout.text_of(bug.path).count(bug.old) != 1:
        return report
    rollout.calls(_reason(rollout, bug), "edit", {"path": bug.path, "old": bug.old, "new": bad}, SKIP)
    report = rollout.calls(f"I changed {name}. I run the tests again.", "test", {})
    object.__setattr__(bug, "old", bad)
    rollout.calls(f"{name} still fails. I read {bug.path} again.", "read", {"path": bug.path})
    return report


def _another(rng: random.Random, bug: Planted) -> str | None:
    swaps = [
        (" + ", " - "),
        (" * ", " + "),
        (" - ", " + "),
        (" < ", " > "),
        (" > ", " <= "),
        (" == ", " != "),
        ("min", "sum"),
        ("max", "len"),
        ("[0]", "[-2]"),
        (".upper", ".swapcase"),
        (" and ", " or "),
        (">=", "<"),
        ("[:", "[1:"),
        ("1", "3"),
    ]
    rng.shuffle(swaps)
    for before, after in swaps:
        bad = bug.new.replace(before, after, 1)
        if before in bug.new and bad not in (bug.new, bug.old) and _still_wrong(bug, bad):
            return bad
    return None


def _still_wrong(bug: Planted, bad: str) -> bool:
    source = bug.function.source.replace(bug.new, bad, 1)
    for check in bug.function.checks:
        scope: dict[str, object] = {}
        try:
            exec(source, scope)
            value, raised = eval(check.call, scope), ""
        except Exception as error:
            value, raised = None, type(error).__name__
        if raised not in ("", "ValueError", "TypeError"):
            return False
        if (value, raised) != (check.value, check.raises):
            return True
    return False


def _told(bug: Planted) -> str:
    if bug.function.module:
        return f"Fixed `{bug.function.name}` in {bug.path}: {bug.function.module} is now imported."
    return f"Fixed `{bug.function.name}` in {bug.path}: `{bug.old}` is now `{bug.new}`."


def _all_pass(project: Project) -> str:
    return "The test passes." if project.tests == 1 else f"All {project.tests} tests pass."


def _afterwards(rng: random.Random, rollout: Rollout, mended: list[Planted]) -> None:
    draw = rng.random()
    if draw < 0.03:
        rollout.says(rng.choice(wishes.THANKS))
        rollout.answers(wishes.WELCOME)
    elif draw < 0.06:
        rollout.says(rng.choice(wishes.WHAT))
        rollout.answers(" ".join(_told(bug) for bug in mended))


def write_files(root: Path, files: dict[str, str]) -> None:
    """Write a project's files."""
    for path, text in files.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
