"""`screenshot`: the desktop, or what a command shows on its terminal, as a picture."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from sandbox.actions import Action
from sandbox.shell import Finished, Shell
from tools.base import CommandLine, Display, Plan, Result, Running
from tools.failure import failure
from tools.pictures.errors import PictureError
from tools.pictures.screen_grab import grab_desktop
from tools.pictures.terminal_picture import draw_terminal
from tools.run_command import ending, planned_line
from tools.shell_line import run_line

DESKTOP = "desktop"


class ScreenshotArguments(BaseModel):
    """What `screenshot` takes: a command, or "desktop" as `what`. `timeout` is in seconds."""

    model_config = ConfigDict(extra="forbid")

    command: str | None = None
    what: str | None = None
    timeout: float | None = None


class ScreenshotTool:
    """Shows the model what a person would see."""

    name = "screenshot"
    arguments = ScreenshotArguments

    def __init__(self, shell: Shell, root: Path) -> None:
        """`root` is the project's folder: no program that lies in it takes the picture."""
        self._shell = shell
        self._root = root

    def prepare(self, arguments: ScreenshotArguments) -> Plan | Result:
        """Check what is asked for. Nothing runs, and nothing is looked at."""
        if arguments.command is not None:
            if arguments.what not in (None, "command", "terminal"):
                return failure("invalid_arguments", "Give either command or what, not both.")
            line = planned_line(arguments.command, arguments.timeout, self._shell.cwd)
            if isinstance(line, Result):
                return line
            return Plan((Action("execute", line.command),), line, payload=line)
        if arguments.what not in (None, DESKTOP):
            return failure(
                "invalid_arguments", 'what can only be "desktop". For a program, give its command.'
            )
        return Plan((Action("screen", DESKTOP),))

    def apply(self, plan: Plan, running: Running) -> Result:
        """Take the picture that was approved."""
        line: CommandLine | None = plan.payload
        return self._desktop(running) if line is None else self._terminal(line, running)

    def _desktop(self, running: Running) -> Result:
        try:
            grab = grab_desktop(self._root, running.cancelled)
        except PictureError as fault:
            return failure("no_picture", str(fault))
        told = f"The desktop, {grab.decoded.width}x{grab.decoded.height} pixels."
        return Result(told, Display(told, f"Taken with {grab.program}."), images=(grab.decoded.picture,))

    def _terminal(self, line: CommandLine, running: Running) -> Result:
        done = run_line(self._shell, line, running)
        if isinstance(done, Result):
            return done
        drawn = draw_terminal(_screen(done), was_stopped=done.exit_code is None)
        shown = f"The terminal's last {drawn.lines} lines." if drawn.above else "The terminal."
        end = ending(done, line.timeout)
        display = Display(f"{line.command.strip()} {end}", done.screen, "terminal")
        return Result(f"{shown}\n{end}", display, images=(drawn.picture,))


def _screen(done: Finished) -> str:
    return done.screen or "(the command printed nothing)"
