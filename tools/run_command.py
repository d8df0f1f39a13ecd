"""`run`: a shell command in the project folder."""

from pydantic import BaseModel, ConfigDict

from sandbox.actions import Action
from sandbox.isolation.network_need import needs_network
from sandbox.shell import Finished, Shell
from tools.base import CommandLine, Display, Plan, Result, Running
from tools.failure import failure
from tools.shell_line import run_line
from tools.shown import head_and_tail

DEFAULT_SECONDS = 120.0
MOST_SECONDS = 3600.0
LONGEST = 16_000
LONGEST_COMMAND = 100_000
HINT = " not shown; run it again with the output in a file, and read or search that"


class RunArguments(BaseModel):
    """What `run` takes. `timeout` is in seconds."""

    model_config = ConfigDict(extra="forbid")

    command: str
    timeout: float | None = None


class RunTool:
    """Runs a command in the session's shell and gives back what it printed."""

    name = "run"
    arguments = RunArguments

    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    def prepare(self, arguments: RunArguments) -> Plan | Result:
        """Check the command's form; nothing runs."""
        line = planned_line(arguments.command, arguments.timeout, self._shell.cwd)
        if isinstance(line, Result):
            return line
        network = bool(needs_network(line.command)) and self._shell.isolation.isolated
        return Plan((Action("execute", line.command, network),), line, payload=line)

    def apply(self, plan: Plan, running: Running) -> Result:
        """Run it. An exit code other than 0 is told, and is no failure of the call."""
        line: CommandLine = plan.payload
        done = run_line(self._shell, line, running, network=plan.actions[0].network)
        if isinstance(done, Result):
            return done
        end = ending(done, line.timeout)
        text = head_and_tail(done.text.strip("\n"), LONGEST, HINT, done.cut)
        for_model = f"{text}\n{end}" if text else end
        return Result(for_model, Display(f"{line.command.strip()} {end}", done.screen, "terminal"))


def planned_line(command: str, timeout: float | None, cwd: str) -> CommandLine | Result:
    """The command as a person would approve it, or what is wrong with its form."""
    seconds = DEFAULT_SECONDS if timeout is None else timeout
    if not command.strip() or "\0" in command or len(command) > LONGEST_COMMAND:
        return failure("invalid_arguments", "command is empty, too long, or holds a NUL character.")
    if not 0 < seconds <= MOST_SECONDS:
        return failure("invalid_arguments", f"timeout must be from 1 to {MOST_SECONDS:.0f} seconds.")
    return CommandLine(command, cwd, seconds)


def ending(done: Finished, timeout: float) -> str:
    """How a command ended, as the model is told."""
    note = f"[{done.restarted}]\n" if done.restarted else ""
    if done.timed_out:
        return f"{note}[stopped after {timeout:g} s]"
    if done.cancelled:
        return f"{note}[cancelled]"
    return f"{note}[exit code {done.exit_code}]"
