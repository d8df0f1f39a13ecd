"""`test`: the project's tests, by the runner it uses."""

import shlex
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from sandbox.actions import Action
from sandbox.paths import Workspace
from sandbox.shell import Finished, Shell
from tools.base import CommandLine, Display, Plan, Result, Running
from tools.failure import failure
from tools.pytest_report import format_pytest
from tools.shell_line import run_line
from tools.shown import head_and_tail
from tools.test_runner import LOOKED_FOR, find_runner

SECONDS = 600.0
LONGEST = 12_000


class TestArguments(BaseModel):
    """What `test` takes: a file or a test, as the runner names it."""

    __test__ = False
    model_config = ConfigDict(extra="forbid")

    target: str | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """The payload of a test run."""

    runner: str
    line: CommandLine


class TestTool:
    """Runs the tests through the shell and reports what failed."""

    __test__ = False
    name = "test"
    arguments = TestArguments

    def __init__(self, workspace: Workspace, shell: Shell) -> None:
        self._workspace = workspace
        self._shell = shell

    def prepare(self, arguments: TestArguments) -> Plan | Result:
        """Find the runner and its exact command; nothing of the project runs yet."""
        target = (arguments.target or "").strip()
        if target.startswith("-"):
            return failure("invalid_arguments", "target must be a file or a test, not an option.")
        if any(char in target for char in "\0\n\r"):
            return failure("invalid_arguments", "target must be one line.")
        root = str(self._workspace.root)
        runner = find_runner(self._workspace.root)
        if runner is None:
            return failure("no_runner", f"No test runner found. Looked for {LOOKED_FOR}.")
        command, cwd = runner.with_target(target), self._shell.cwd
        if cwd != root:
            command = f"(cd {shlex.quote(root)} && {command})"
        line = CommandLine(command, cwd, SECONDS)
        return Plan((Action("test", command),), line, payload=Run(runner.name, line))

    def apply(self, plan: Plan, running: Running) -> Result:
        """Run the tests. Failing tests are no failure of the call."""
        run: Run = plan.payload
        done = run_line(self._shell, run.line, running)
        if isinstance(done, Result):
            return done
        report = _report(run.runner, done)
        return Result(report, Display(report.partition("\n")[0], done.screen, "terminal"))


def _report(runner: str, done: Finished) -> str:
    raw = done.text.replace("\r\n", "\n")
    if done.exit_code is None:
        why = f"after {SECONDS:.0f} s" if done.timed_out else "before their end"
        return f"Tests stopped {why} ({runner}).\n\n{head_and_tail(raw.strip(), LONGEST)}".rstrip()
    if runner == "pytest":
        return format_pytest(raw, done.exit_code)
    if done.exit_code == 0:
        return f"Tests passed ({runner})."
    body = head_and_tail(raw.strip("\n"), LONGEST)
    return f"Tests failed ({runner}, exit code {done.exit_code}).\n\n{body}".rstrip()
