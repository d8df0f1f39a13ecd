"""What the person said "always" to in this session, and what that covers. Nothing is kept after it."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from sandbox.actions import Action
from sandbox.command_risk import assess
from sandbox.commands.units import WHOLE, Unit, units, varies
from sandbox.commands.words import names
from sandbox.sensitive import is_protected, looks_secret
from sandbox.visible import escaped

_SUBCOMMAND_RUNNERS = names(
    "cargo go npm pnpm yarn bun deno make just dotnet mvn gradle ./gradlew ./mvnw mix rake swift zig bazel"
)
_RUNNERS_OF_TARGETS = names("make just mvn gradle ./gradlew ./mvnw rake zig")
"""Where a further word is no test but one more thing to do, as in `make test deploy`."""
_PYTHONS = ("python", "python3")


class Approvals:
    """The session's standing approvals. Empty at first; `remember` adds, nothing removes.

    - An edit covers edits to every ordinary file, never secrets or what steers git, the editor or the shell.
    - A test covers the same test runner on other tests, with no option it was not approved with.
    - A command covers the same commands word for word in the same folder, each part of a list apart.
    - A command with the network covers the same whole command with it, and never one without or another.
    - A command whose wildcards or variables may stand for other things next time is not remembered.
    - A deletion, or reading a secret, covers that one path.
    - A picture of the screen is not remembered: it shows something else each time.
    """

    def __init__(self) -> None:
        self._edits = False
        self._paths: set[Action] = set()
        self._tests: set[tuple[Path | None, Unit]] = set()
        self._commands: set[tuple[Path | None, Unit]] = set()
        self._networked: set[tuple[Path | None, tuple[Unit, ...]]] = set()

    def remember(self, actions: Iterable[Action], cwd: Path | None = None) -> None:
        """Note what was approved for the rest of the session; commands, for the folder they ran in."""
        for action in actions:
            match action.kind:
                case "write" if _ordinary(action):
                    self._edits = True
                case "test" if not varies(action.target):
                    self._tests.update((cwd, unit) for unit in units(action.target))
                case "execute" if action.network:
                    if not varies(action.target):
                        self._networked.add((cwd, units(action.target)))
                case "execute" if not varies(action.target):
                    self._commands.update((cwd, unit) for unit in units(action.target))
                case "read" | "write" | "delete":
                    self._paths.add(action)
                case _:
                    pass

    def covers(self, action: Action, root: Path | None = None, cwd: Path | None = None) -> bool:
        """Whether an action was approved before. Policy still refuses what is forbidden.

        The parts of a list that only read are judged as `assess` does with `root` and `cwd`.
        """
        match action.kind:
            case "write" if _ordinary(action):
                return self._edits
            case "execute" if action.network:
                return (cwd, units(action.target)) in self._networked
            case "test" | "execute":
                found = units(action.target)
                unapproved = [unit for unit in found if not self._approved(unit, cwd)]
                return len(unapproved) < len(found) and all(
                    _only_reads(unit, root, cwd) for unit in unapproved
                )
            case "screen":
                return False
            case _:
                return action in self._paths

    def describe(self, actions: Sequence[Action]) -> str:
        """What "always" would allow, in words for the person; "" where it is not offered."""
        if any(action.kind == "screen" for action in actions):
            return ""
        changing = [
            action for action in actions if action.kind in {"execute", "test"} and varies(action.target)
        ]
        if changing:
            return f"nothing: what `{escaped(changing[0].target)}` does may differ each time"
        said = list(dict.fromkeys(_described(action) for action in actions))
        if not said:
            return "nothing"
        joined = said[0] if len(said) == 1 else ", ".join(said[:-1]) + " and " + said[-1]
        return f"{joined} for this session"

    def _approved(self, unit: Unit, cwd: Path | None) -> bool:
        if (cwd, unit) in self._commands or (cwd, unit) in self._tests:
            return True
        return any(folder == cwd and _same_tests(approved, unit) for folder, approved in self._tests)


def _ordinary(action: Action) -> bool:
    return not looks_secret(action.target) and not is_protected(action.target)


def _only_reads(unit: Unit, root: Path | None, cwd: Path | None) -> bool:
    """A reader among the parts of a list needs no approval of its own, if none of its words needs quotes."""
    text = " ".join(unit)
    return units(text) == (unit,) and assess(text, root, cwd).level == "read"


def _runner(unit: Unit) -> Unit:
    """The words that choose the test runner: `python -m pytest`, `cargo test`, `pytest`."""
    if unit[0].rpartition("/")[2].rstrip("0123456789.") in _PYTHONS and unit[1:2] == ("-m",):
        return unit[:3]
    if unit[0] in _SUBCOMMAND_RUNNERS:
        return unit[:2]
    return unit[:1]


def _same_tests(approved: Unit, unit: Unit) -> bool:
    """The same runner with other tests. Options steer what a runner runs, so a new one asks again."""
    runner = _runner(approved)
    if "|" in unit or approved[0] in {WHOLE, *_RUNNERS_OF_TARGETS} or unit[: len(runner)] != runner:
        return False
    rest = unit[len(runner) :]
    return all(word in approved or _names_a_test(word) for word in rest)


def _names_a_test(word: str) -> bool:
    return not word.startswith(("-", "+", "@", "/", "~")) and ".." not in word.split("/") and "=" not in word


def _described(action: Action) -> str:
    match action.kind:
        case "write" if _ordinary(action):
            return "edits to files in this project"
        case "write":
            return f"edits to `{escaped(action.target)}`"
        case "delete":
            return f"deleting `{escaped(action.target)}`"
        case "read" | "screen":
            return f"reading `{escaped(action.target)}`"
        case "execute":
            network = " with the network" if action.network else ""
            return f"the command `{escaped(action.target)}`{network}"
        case "test":
            found = units(action.target)
            shown = " ".join(_runner(found[0])) if len(found) == 1 and found[0][0] != WHOLE else action.target
            return f"`{escaped(shown)}`"
