"""Run by the shell as a program of its own: starts a program that can write to the terminal, not read it.

The program gets a session without a controlling terminal, so a password prompt that opens /dev/tty fails
at once; its standard input is /dev/null and its output is the terminal, opened for writing only, so a
pager or an editor that would read keys from it ends instead of waiting. When the terminal goes away, the
program's process group is killed. Ends with the program's exit status, 128 + n after signal n.
"""

import os
import signal
import sys
import termios
from types import FrameType


def main(program: list[str]) -> None:
    """Run `program` and exit as it does."""
    settings = termios.tcgetattr(1)
    settings[1] &= ~termios.ONLCR
    settings[3] &= ~(termios.ECHO | termios.ISIG)
    termios.tcsetattr(1, termios.TCSANOW, settings)
    terminal = os.ttyname(1)
    os.fchmod(1, 0o200)
    child = os.fork()
    if child == 0:
        os.setsid()
        # What the parent ignored or blocked (Python ignores SIGPIPE) is not for the program.
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        output = os.open(terminal, os.O_WRONLY | os.O_NOCTTY)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.execv(program[0], program)

    def hang_up(_signal: int, _frame: FrameType | None) -> None:
        os.killpg(child, signal.SIGKILL)

    signal.signal(signal.SIGHUP, hang_up)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main(sys.argv[1:])
