"""Running exactly the command line a person approved."""

from sandbox.shell import Finished, Shell, ShellUnavailable
from tools.base import CommandLine, Result, Running
from tools.failure import failure


def run_line(
    shell: Shell, line: CommandLine, running: Running, *, network: bool = False
) -> Finished | Result:
    """Run it in the folder that was shown, or say why not. With `network` it has the network."""
    if shell.cwd != line.cwd:
        return failure("changed_since", "The shell is in another folder by now. Nothing was run. Try again.")
    try:
        return shell.run(line.command, line.timeout, running.output, running.cancelled, network=network)
    except ShellUnavailable as fault:
        return failure("no_shell", f"The command was not run. {fault}")
