"""One living bash on a pseudo-terminal, and the channel that hands it commands and brings back statuses.

The command travels in a file and the status in a pipe, both in a folder of the session's own, so nothing is
typed at the terminal and nothing in the output can pass for a status. Only when a command has ended does
bash get a fresh random word to print, which marks in the stream where the command's output ends; it is taken
out.
"""

import os
import secrets
import select
import signal
import sys
import termios
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pexpect

from sandbox import pty_child
from sandbox.processes import Process, family, inner_number, send

ROWS, COLUMNS = 24, 80
_BLOCK = 1 << 16
_START_SECONDS = 30.0
_NOT_STARTED = "The shell could not be started."
_SYNC_SECONDS = 5.0
_POLL_SECONDS = 0.05
_GRACE = ((signal.SIGINT, 1.0), (signal.SIGTERM, 1.0))

# Handed to bash as one line, so that it counts a command's own lines in its messages. The numbers are
# descriptors no command is likely to use; they are closed while a command runs. What goes on around a
# command has its output thrown away, because traps and tracing a command set would print there; each
# report is redirected by itself for the same reason. Options that would let the next command's wildcards or
# folders mean something else than they look like are put back. A folder entered through a link becomes the
# folder it leads to, so that `..` means what it means to whoever judges the next command by the reported one.
_DRIVER = r"""
readonly __glimmer_folder=$1 __glimmer_root=$2; shift 2; __glimmer_status=0;
__glimmer_again() { return "$1"; };
exec 60>&1 61<"$__glimmer_folder/ask" 62>"$__glimmer_folder/tell";
builtin printf 'ready %s\0' "$$" >&62;
while { IFS= builtin read -r __glimmer_word <&61; } >/dev/null 2>&1; do
  { IFS= builtin read -r -d '' __glimmer_command <"$__glimmer_folder/command";
    __glimmer_again "$__glimmer_status"; } >/dev/null 2>&1;
  { builtin eval "$__glimmer_command"; } </dev/null >&60 2>&60 60>&- 61<&- 62>&-;
  { __glimmer_status=$?;
    builtin set +aevxP;
    builtin shopt -u dotglob nocaseglob globstar cdable_vars autocd;
    builtin printf '%s %s ' "$__glimmer_word" "$__glimmer_status" >&62;
    if [ -n "${OLDPWD+set}" ];
    then __glimmer_old=$OLDPWD; builtin cd -P .; builtin printf -v OLDPWD '%s' "$__glimmer_old";
    else builtin cd -P .; builtin unset OLDPWD; fi;
    builtin pwd -P >&62;
    builtin printf '\0' >&62;
    IFS=' ' builtin read -r __glimmer_word __glimmer_home <&61;
    if [ -n "$__glimmer_home" ]; then builtin cd "$__glimmer_root"; fi;
    builtin printf '%s' "$__glimmer_word" >&60; } >/dev/null 2>&1;
done
""".replace("\n", " ")


class ShellUnavailable(Exception):
    """Bash could not be started: `what` happened, `why`, and what to do (`todo`)."""

    def __init__(self, what: str, why: str = "", todo: str = "") -> None:
        self.what = what
        self.why = why
        self.todo = todo
        super().__init__(" ".join(part for part in (what, why, todo) if part))


@dataclass(frozen=True, slots=True)
class Report:
    """How a command ended: its exit status and the folder bash is in, "" when that is gone."""

    status: int
    cwd: str


@dataclass(frozen=True, slots=True)
class Start:
    """How bash starts: its path, the project's folder, the folder it starts in, and its environment.

    `confined` makes of the words of a program those that run it confined.
    """

    bash: str
    root: Path
    cwd: Path
    env: Mapping[str, str]
    confined: Callable[[list[str]], list[str]]


class BashSession:
    """Bash from its start to its end. Not thread-safe; the bytes it prints go to the `sink` of each call.

    `folder` is where commands and statuses pass through; nobody but the session writes there.
    """

    def __init__(self, start: Start, folder: Path) -> None:
        self._folder = folder
        self._mark = f"GLIMMER_SHELL={secrets.token_hex(16)}"
        self._word = ""
        self._told = bytearray()
        self._bash = 0
        self._keepers: set[int] = set()
        self._killed = False
        self._child: Any = None
        self._channels: list[int] = []
        try:
            self._clear()
            for name in ("ask", "tell"):
                os.mkfifo(self._folder / name, 0o600)
                self._channels.append(os.open(self._folder / name, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC))
            self._spawn(start)
        except BaseException:
            self.close()
            raise

    def _spawn(self, start: Start) -> None:
        bash = start.bash
        name, _, value = self._mark.partition("=")
        program = [bash, "--norc", "--noprofile", "-c", _DRIVER, "bash", str(self._folder), str(start.root)]
        terminal = {"TERM": "xterm-256color", "COLUMNS": str(COLUMNS), "LINES": str(ROWS)}
        try:
            # Newer Pythons warn about forking beside threads; the child here does nothing but exec.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                self._child = pexpect.spawn(
                    sys.executable,
                    ["-I", "-S", str(pty_child.__file__), *start.confined(program)],
                    env={**start.env, **terminal, name: value},
                    cwd=str(start.cwd),
                    echo=False,
                    dimensions=(ROWS, COLUMNS),
                )
        except (pexpect.ExceptionPexpect, OSError) as error:
            raise ShellUnavailable(_NOT_STARTED, str(error), f"Check that {bash} runs.") from error
        self._child.ptyproc.delayafterclose = 0
        said = bytearray()
        deadline = time.monotonic() + _START_SECONDS
        while (ready := self._next_report()) is None:
            if time.monotonic() > deadline or not self.alive():
                why = said.decode("utf-8", "replace")[-500:]
                raise ShellUnavailable(_NOT_STARTED, why, f"Check that {bash} runs.")
            self.pump(said.extend, 0.05)
        self._find_bash(int(ready.split()[1]))
        self._settings = termios.tcgetattr(self._child.child_fd)

    def alive(self) -> bool:
        """Whether bash still runs."""
        try:
            return bool(self._child.isalive())
        except pexpect.ExceptionPexpect:
            # Somebody else waited for it: it has ended, and its status is lost.
            return False

    def exit_status(self) -> int:
        """What bash ended with; only when it is not alive."""
        status, number = self._child.exitstatus, self._child.signalstatus
        return int(status) if status is not None else 128 + int(number or 0)

    def hand_over(self, command: str) -> None:
        """Start a command. It must not hold a NUL character."""
        with suppress(termios.error):
            termios.tcsetattr(self._child.child_fd, termios.TCSANOW, self._settings)
        try:
            data = os.fsencode(command)
        except UnicodeEncodeError:
            data = command.encode("utf-8", "replace")
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self._folder / "command", flags, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        self._word = secrets.token_hex(16)
        self._ask(self._word)

    def report(self) -> Report | None:
        """The end of the command that was handed over, or None while it runs."""
        while (line := self._next_report()) is not None:
            word, _, rest = line.partition(" ")
            status, _, cwd = rest.partition(" ")
            if word == self._word and status.isdigit():
                return Report(int(status), cwd.removesuffix("\n"))
        return None

    def pump(self, sink: Callable[[bytes], object], seconds: float) -> bool:
        """Wait at most `seconds` for output or a report; pass output on. Whether there was output."""
        terminal = self._child.child_fd
        ready, _, _ = select.select([terminal, self._channels[1]], [], [], seconds)
        if terminal not in ready:
            return False
        try:
            chunk = os.read(terminal, _BLOCK)
        except OSError:
            chunk = b""
        if chunk:
            sink(chunk)
        elif self._channels[1] not in ready:
            time.sleep(min(seconds, 0.02))
        return bool(chunk)

    def settle(self, sink: Callable[[bytes], object], *, home: bool) -> bool:
        """After a report: pass on the rest of the command's output. `home`: bash goes back to the root.

        False when bash does not answer any more.
        """
        word = secrets.token_hex(16)
        self._ask(f"{word} home" if home else word)
        mark = word.encode()
        held = bytearray()
        deadline = time.monotonic() + _SYNC_SECONDS
        while (at := held.find(mark)) < 0:
            if time.monotonic() > deadline or not self.alive():
                sink(bytes(held))
                return False
            safe = len(held) - len(mark)
            if safe > 0:
                sink(bytes(held[:safe]))
                del held[:safe]
            self.pump(held.extend, 0.05)
        sink(bytes(held[:at] + held[at + len(mark) :]))
        return True

    def drain(self, sink: Callable[[bytes], object], seconds: float) -> None:
        """Pass on what is still in the terminal, for at most `seconds`."""
        deadline = time.monotonic() + seconds
        while self.pump(sink, 0.05) and time.monotonic() < deadline:
            pass

    def stop(self, sink: Callable[[bytes], object]) -> None:
        """End the command and everything bash ever started: interrupt, then terminate, then kill.

        Bash is frozen first, so that it does not go on with the next command of a list.
        """
        with suppress(ProcessLookupError):
            os.kill(self._bash, signal.SIGSTOP)
        for number, grace in _GRACE:
            deadline = time.monotonic() + grace
            others = self._others()
            send(others, number)
            send(others, signal.SIGCONT)
            while others and time.monotonic() < deadline:
                self.pump(sink, _POLL_SECONDS)
                others = self._others()
            if not others:
                break
        self._kill(sink)
        self._killed = True
        self.drain(sink, 0.2)

    def close(self) -> None:
        """Kill what is left and remove the private folder. Safe to call twice."""
        if self._child is not None and not self._child.closed:
            # Once all are gone their numbers may belong to others.
            if not self._killed:
                self._kill(lambda _chunk: None)
            with suppress(pexpect.ExceptionPexpect, OSError):
                self._child.close(force=True)
        for channel in self._channels:
            os.close(channel)
        self._channels.clear()
        self._clear()

    def _clear(self) -> None:
        for name in ("ask", "tell", "command"):
            (self._folder / name).unlink(missing_ok=True)

    def _find_bash(self, number: int) -> None:
        """Find bash by the number it knows itself by, and whoever stands between it and the child.

        Confined, bash counts processes from 1 of its own, and what confines it must outlive its commands.
        """
        parents = {process.pid: process.parent for process in self._family()}
        pid = next((pid for pid in parents if inner_number(pid) == number), 0)
        if not pid:
            raise ShellUnavailable(_NOT_STARTED, "It ended as soon as it had started.", "Try again.")
        self._bash = pid
        while pid in parents:
            self._keepers.add(pid)
            pid = parents[pid]

    def _family(self) -> list[Process]:
        return family(frozenset({self._child.pid, self._bash} - {0}), self._mark)

    def _others(self) -> list[Process]:
        return [process for process in self._family() if process.pid not in self._keepers]

    def _kill(self, sink: Callable[[bytes], object]) -> None:
        deadline = time.monotonic() + 5.0
        while (left := self._family()) and time.monotonic() < deadline:
            send(left, signal.SIGKILL)
            self.alive()
            if self._channels:
                self.pump(sink, 0.01)

    def _ask(self, line: str) -> None:
        os.write(self._channels[0], line.encode() + b"\n")

    def _next_report(self) -> str | None:
        with suppress(BlockingIOError):
            self._told += os.read(self._channels[1], _BLOCK)
        line, end, rest = self._told.partition(b"\0")
        if not end:
            if len(line) > _BLOCK:
                self._told.clear()
            return None
        self._told = rest
        return os.fsdecode(bytes(line))
