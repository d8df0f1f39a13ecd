"""The shell the model's commands run in: one bash that lives as long as it can, with hard limits around it.

Working folder and variables stay from one command to the next. A command cannot wait for a person: its
input is empty and there is no keyboard to read. When it passes its time limit or is cancelled, it ends
with everything it started, and a new bash takes over in the same folder.

Bash runs confined by the operating system, as far as the machine offers it. A command that may use the
network gets a bash of its own, since the one that lives on has none.
"""

import os
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from sandbox.bash_session import BashSession, ShellUnavailable, Start
from sandbox.env import child_environment
from sandbox.isolation.confinement import Confinement, confinement
from sandbox.isolation.private_folder import PrivateFolder
from sandbox.isolation.status import IsolationStatus
from sandbox.isolation.steering import changed, steering
from sandbox.isolation.view import NoView
from sandbox.refusals import shown
from sandbox.terminal_text import Live, Recording, bounded, joined, plain

__all__ = ["Finished", "Shell", "ShellUnavailable"]

TEXT_LIMIT = 20_000
_HEAD_BYTES, _TAIL_BYTES = 64 << 10, 128 << 10
_LIVE_CHARACTERS = 8_000
_LIVE_SECONDS = 0.05
_DOWNLOADED = "What was downloaded is there for every later command."
_APART = "[It ran with the network, in a shell of its own: its folder and variables are not kept.]"


@dataclass(frozen=True, slots=True)
class Finished:
    """What came of a command.

    `exit_code` is None when the command was stopped. `text` is for the model: no terminal control, at
    most TEXT_LIMIT characters and a few words, `cut` characters missing in its middle. `screen` is what
    a terminal would have got, bounded too: draw it, never print it. `restarted` says why bash is a new
    one now, "" when it is not. `cwd` is absolute, `seconds` the time it took.
    """

    exit_code: int | None
    text: str
    screen: str
    cut: int
    timed_out: bool
    cancelled: bool
    restarted: str
    cwd: str
    seconds: float


class Shell:
    """A bash in the workspace, started with the first command. One command runs at a time; others wait."""

    def __init__(
        self,
        root: Path,
        env: Mapping[str, str] | None = None,
        shell: str = "",
        confined: Confinement | None = None,
    ) -> None:
        """`confined` is by default the best there is on this machine; finding out waits until it matters."""
        self._root = root.resolve()
        self._env = child_environment(os.environ if env is None else env)
        self._bash = shell
        self._confined = confined
        self._private: PrivateFolder | None = None
        self._network = False
        self._cwd = self._root
        self._session: BashSession | None = None
        self._turn = threading.Lock()
        self._closing = threading.Event()

    @property
    def cwd(self) -> str:
        """The folder the next command starts in, absolute."""
        return str(self._cwd)

    @property
    def isolation(self) -> IsolationStatus:
        """How commands are confined. Blocks the first time, while it is found out."""
        return self._confinement().status

    def run(
        self,
        command: str,
        timeout: float,
        output: Callable[[str], None],
        cancelled: threading.Event,
        *,
        network: bool = False,
    ) -> Finished:
        """Run a command to its end, `timeout` seconds at most, or until `cancelled` is set.

        `output` gets what the command prints while it runs, at most 20 times a second and 8,000
        characters at a time. With `network` it runs in a bash of its own that has it, in the same folder;
        what it sets ends with it. Raises ShellUnavailable when bash cannot be started.
        """
        with self._turn:
            if self._closing.is_set():
                raise ShellUnavailable("The shell is closed.")
            if "\0" in command:
                return self._not_run("The command holds a NUL character and was not run.", exit_code=2)
            if cancelled.is_set():
                return self._not_run("The command was cancelled before it ran.")
            if not self.isolation.isolated:
                return self._alone(command, timeout, output, cancelled)
            before = steering(self._root)
            carry_out = self._apart if network else self._alone
            done = carry_out(command, timeout, output, cancelled)
            return _noted(done, changed(before, steering(self._root), self._root))

    def close(self) -> None:
        """End bash and everything it started; a running command is cancelled. No command runs after it."""
        self._closing.set()
        with self._turn:
            self._discard()
            if self._private is not None:
                self._private.remove()

    def _alone(
        self, command: str, timeout: float, output: Callable[[str], None], cancelled: threading.Event
    ) -> Finished:
        session = self._session or self._start()
        run = _Run(session, output)
        try:
            return self._carry_out(session, run, command, timeout, cancelled)
        except BaseException:
            self._discard()
            raise

    def _apart(
        self, command: str, timeout: float, output: Callable[[str], None], cancelled: threading.Event
    ) -> Finished:
        """Run one command with the network, in a clean bash: what was set before has no say in it."""
        once = Shell(self._root, self._env, self._bash, self._confinement())
        once._closing, once._private, once._cwd = self._closing, self._own_folder(), self._cwd
        once._network = True
        private = once._private.path
        before = once._confinement().downloaded(private)
        try:
            done = once._alone(command, timeout, output, cancelled)
        finally:
            once._discard()
        anew = self._session is not None and once._confinement().downloaded(private) != before
        if anew:
            # What was downloaded is seen only by a shell that starts after it.
            self._discard()
        return replace(
            _noted(done, _APART), restarted=f"{_DOWNLOADED} {self._anew()}" if anew else "", cwd=self.cwd
        )

    def _carry_out(
        self, session: BashSession, run: "_Run", command: str, timeout: float, cancelled: threading.Event
    ) -> Finished:
        session.hand_over(command)
        deadline = run.began + timeout
        while True:
            if (report := session.report()) is not None:
                return self._ended(session, run, report.status, report.cwd)
            if cancelled.is_set() or self._closing.is_set():
                session.stop(run.take)
                return self._stopped(run, cancelled=True)
            if time.monotonic() >= deadline:
                session.stop(run.take)
                return self._stopped(run, limit=timeout)
            if not session.alive():
                # A command that kills bash may have reported just before; otherwise its end is bash's.
                session.drain(run.take, 1.0)
                return self._died(session, run)
            session.pump(run.take, min(_LIVE_SECONDS, max(0.0, deadline - time.monotonic())))
            run.deliver()

    def _ended(self, session: BashSession, run: "_Run", status: int, cwd: str) -> Finished:
        left = not self._inside(cwd)
        if not session.settle(run.take, home=left):
            self._discard()
            return run.finished(status, self.cwd, restarted="The shell no longer answered and was restarted.")
        note = ""
        if left:
            where = f"The command ended in {shown(cwd)}, outside the project"
            where = where if cwd else "The command's folder is gone"
            note = f"[{where}: the shell is back in the project folder.]"
        self._cwd = self._root if left else Path(cwd)
        return run.finished(status, self.cwd, note=note)

    def _died(self, session: BashSession, run: "_Run") -> Finished:
        status = session.exit_status()
        self._discard()
        why = f"The command ended the shell (status {status}). {self._anew()}"
        return run.finished(status, self.cwd, restarted=why)

    def _stopped(self, run: "_Run", *, cancelled: bool = False, limit: float = 0.0) -> Finished:
        self._discard()
        reason = "was cancelled" if cancelled else f"ran past its limit of {limit:g} s"
        why = f"The command {reason} and was stopped with all it had started. {self._anew()}"
        return run.finished(None, self.cwd, restarted=why, cancelled=cancelled)

    def _anew(self) -> str:
        if not self._inside(str(self._cwd)):
            self._cwd = self._root
        return f"A new shell starts in {shown(self.cwd)}; variables and background processes are gone."

    def _not_run(self, why: str, exit_code: int | None = None) -> Finished:
        return Finished(exit_code, why, why, 0, False, exit_code is None, "", self.cwd, 0.0)

    def _inside(self, cwd: str) -> bool:
        if not cwd:
            return False
        real = Path(os.path.realpath(cwd))
        return real.is_dir() and real.is_relative_to(self._root)

    def _start(self) -> BashSession:
        bash = self._bash or self._find_bash()
        if not self._inside(str(self._cwd)):
            self._cwd = self._root
        confined, private = self._confinement(), self._own_folder().path
        channel = private / "once" if self._network else private
        channel.mkdir(mode=0o700, exist_ok=True)
        start = Start(
            bash,
            self._root,
            self._cwd,
            confined.environment(private),
            lambda program: confined.start(program, private, channel, network=self._network),
        )
        try:
            self._session = BashSession(start, channel)
        except NoView as problem:
            raise ShellUnavailable("The shell could not be confined.", str(problem)) from problem
        return self._session

    def _confinement(self) -> Confinement:
        if self._confined is None:
            self._confined = confinement(self._root, self._env)
        return self._confined

    def _own_folder(self) -> PrivateFolder:
        if self._private is None:
            self._private = PrivateFolder()
        return self._private

    def _find_bash(self) -> str:
        """The first bash on PATH that the project itself did not put there."""
        for folder in self._env.get("PATH", os.defpath).split(os.pathsep):
            if not os.path.isabs(folder) or Path(os.path.realpath(folder)).is_relative_to(self._root):
                continue
            if found := shutil.which("bash", path=folder):
                return found
        raise ShellUnavailable("There is no bash on the PATH.", "Commands run in bash.", "Install bash.")

    def _discard(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None


class _Run:
    """The output of one command on its two ways: recorded for the result, live for the screen."""

    def __init__(self, session: BashSession, output: Callable[[str], None]) -> None:
        self.began = time.monotonic()
        self._session = session
        self._output = output
        self._recording = Recording(_HEAD_BYTES, _TAIL_BYTES)
        self._live = Live(_LIVE_CHARACTERS)
        self._delivered = self.began

    def take(self, chunk: bytes) -> None:
        self._recording.add(chunk)
        self._live.add(chunk)

    def deliver(self, *, final: bool = False) -> None:
        now = time.monotonic()
        if not final and now - self._delivered < _LIVE_SECONDS:
            return
        self._delivered = now
        if text := self._live.take(final=final):
            self._output(text)

    def finished(
        self, exit_code: int | None, cwd: str, *, note: str = "", restarted: str = "", cancelled: bool = False
    ) -> Finished:
        self.deliver(final=True)
        head, tail, dropped = self._recording.parts()
        text, cut = _for_model(head, tail, dropped)
        text = _with_note(text, note)
        return Finished(
            exit_code=exit_code,
            text=text,
            screen=joined(head, tail, dropped),
            cut=cut,
            timed_out=exit_code is None and not cancelled,
            cancelled=cancelled,
            restarted=restarted,
            cwd=cwd,
            seconds=time.monotonic() - self.began,
        )


def _noted(done: Finished, note: str) -> Finished:
    """The result with a sentence at its end, for the model and for the person."""
    if not note:
        return done
    return replace(done, text=_with_note(done.text, note), screen=_with_note(done.screen, note))


def _with_note(text: str, note: str) -> str:
    return f"{text}\n{note}" if note and text and not text.endswith("\n") else f"{text}{note}"


def _for_model(head: str, tail: str, dropped: int) -> tuple[str, int]:
    if not dropped:
        return bounded(plain(head), TEXT_LIMIT)
    # The tail may begin inside an escape sequence: its first line goes.
    first, newline, rest = tail.partition("\n")
    if newline and len(first) < 4096:
        dropped, tail = dropped + len(first) + 1, rest
    head, tail = plain(head), plain(tail)
    room = TEXT_LIMIT * 2 // 5
    kept = tail[-(TEXT_LIMIT - room) :]
    cut = dropped + max(0, len(head) - room) + len(tail) - len(kept)
    return joined(head[:room], kept, cut), cut
