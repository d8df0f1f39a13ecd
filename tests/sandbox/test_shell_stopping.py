"""Time limits, cancelling and closing: everything a command started ends."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from sandbox.processes import inner_number
from sandbox.shell import Finished, Shell, ShellUnavailable


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def shell(root: Path) -> Iterator[Shell]:
    shell = Shell(root)
    yield shell
    shell.close()


def run(shell: Shell, command: str, timeout: float = 60.0) -> Finished:
    return shell.run(command, timeout, lambda _chunk: None, threading.Event())


def alive(pid: int, root: Path) -> bool:
    """Whether a process that knows itself by this number, and that works in `root`, lives."""
    if not os.path.exists("/proc/self/stat"):
        with suppress(ProcessLookupError):
            os.kill(pid, 0)
            return True
        return False
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (
                Path(os.readlink(process / "cwd")).is_relative_to(root)
                and inner_number(int(process.name)) == pid
            ):
                return True
    return False


def pids(root: Path) -> list[int]:
    return [int(file.name.removeprefix("pid.")) for file in root.glob("pid.*")]


def test_a_background_child_is_not_waited_for_and_lives_on(shell: Shell, root: Path) -> None:
    done = run(shell, "sleep 1000 & touch pid.$!; echo started")
    assert (done.exit_code, done.text, done.timed_out) == (0, "started\n", False)
    (child,) = pids(root)
    assert run(shell, "echo next").text == "next\n"
    assert alive(child, root)
    shell.close()
    assert not alive(child, root)


def test_a_background_child_that_floods_the_terminal_hangs_nothing(shell: Shell) -> None:
    run(shell, "yes background & echo started")
    done = run(shell, "(exit 4)")
    assert done.exit_code == 4
    assert not done.timed_out


_STUBBORN = {
    "sleeping": "sleep 1000",
    "a loop of the shell's own": "while :; do :; done",
    "deaf": "trap '' INT TERM HUP; touch pid.$$; while :; do sleep 1; done",
    "deaf child": "bash -c 'trap \"\" INT TERM HUP; touch pid.$$; while :; do sleep 1; done'",
    "stopped": "bash -c 'touch pid.$$; kill -STOP $$'",
    "stopped shell": "kill -STOP $$",
    "replaced": "touch pid.$$; exec sleep 1000",
    "pipeline": "yes | cat | cat >/dev/null",
    "flood": "yes",
}


@pytest.mark.parametrize("command", _STUBBORN.values(), ids=_STUBBORN)
def test_the_time_limit_ends_everything(shell: Shell, root: Path, command: str) -> None:
    run(shell, "kept=1")
    done = run(shell, f"{command}; touch went-on", 1)
    assert (done.exit_code, done.timed_out, done.cancelled) == (None, True, False)
    assert "1 s" in done.restarted
    assert not any(alive(pid, root) for pid in pids(root))
    assert not (root / "went-on").exists()
    assert run(shell, "echo [$kept]").text == "[]\n"


_APART = """
import os, sys
os.setsid()
os.execvp("bash", ["bash", "-c", sys.argv[1]])
"""
_DAEMON = f"""
deaf='trap "" INT TERM; touch pid.$$; while :; do sleep 1; done'
({sys.executable} apart "({sys.executable} apart '$deaf' &)" &)
"""


@pytest.mark.parametrize(
    "start",
    [f"{sys.executable} apart 'touch pid.$$; exec sleep 1000'", "bash daemon"],
    ids=["own session", "daemon"],
)
def test_whoever_left_the_session_is_ended_too(shell: Shell, root: Path, start: str) -> None:
    (root / "apart").write_text(_APART)
    (root / "daemon").write_text(_DAEMON)
    cancelled = threading.Event()
    wait = "until ls pid.* >/dev/null 2>&1; do sleep 0.05; done; echo ready; sleep 1000"
    shell.run(f"{start} & {wait}", 600, lambda _chunk: cancelled.set(), cancelled)
    (left,) = pids(root)
    assert not alive(left, root)


def test_a_stopped_command_shows_what_it_printed(shell: Shell, root: Path) -> None:
    (root / "sub").mkdir()
    run(shell, "cd sub")
    tidy = "trap 'echo tidy; exit' INT; while :; do sleep 0.1; done"
    done = run(shell, f'echo partial; bash -c "{tidy}"', 1)
    assert done.text.startswith("partial\n")
    assert "tidy\n" in done.text
    assert done.cwd == str(root / "sub")
    assert run(shell, "pwd").text == f"{root}/sub\n"


def test_cancelling_ends_the_command(shell: Shell, root: Path) -> None:
    cancelled = threading.Event()
    done = shell.run("touch pid.$$; echo ready; sleep 1000", 600, lambda _chunk: cancelled.set(), cancelled)
    assert (done.exit_code, done.timed_out, done.cancelled) == (None, False, True)
    assert "cancelled" in done.restarted
    assert done.text == "ready\n"
    assert not any(alive(pid, root) for pid in pids(root))
    assert run(shell, "echo on").text == "on\n"


def test_a_command_cancelled_beforehand_is_not_run(shell: Shell, root: Path) -> None:
    cancelled = threading.Event()
    cancelled.set()
    done = shell.run("touch ran", 60, lambda _chunk: None, cancelled)
    assert (done.cancelled, done.exit_code) == (True, None)
    assert run(shell, "ls").text == ""


def test_closing_ends_a_running_command(shell: Shell, root: Path) -> None:
    found: list[Finished] = []
    ready = threading.Event()
    thread = threading.Thread(
        target=lambda: found.append(
            shell.run("touch pid.$$; echo x; sleep 1000", 600, lambda _chunk: ready.set(), threading.Event())
        )
    )
    thread.start()
    ready.wait()
    shell.close()
    thread.join()
    assert found[0].cancelled
    assert not any(alive(pid, root) for pid in pids(root))
    shell.close()
    with pytest.raises(ShellUnavailable, match="closed"):
        run(shell, "true")


def test_nothing_is_left_behind(shell: Shell, root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    temporary = tmp_path_factory.mktemp("temporary")
    before = len(os.listdir("/dev/fd"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tempfile.tempdir", str(temporary))
        for command in ("true", "exit 1", "true"):
            run(shell, command)
        assert len(os.listdir(temporary)) == 1
        shell.close()
    assert os.listdir(temporary) == []
    assert len(os.listdir("/dev/fd")) == before


_PARENT = """
import sys, threading
from pathlib import Path
from sandbox.processes import inner_number
from sandbox.shell import Shell

shell = Shell(Path(sys.argv[1]))
shell.run("sleep 1000 & touch pid.$! pid.$$", 60, lambda _chunk: None, threading.Event())
print("ready", flush=True)
threading.Event().wait()
"""


def test_the_shell_ends_with_the_program_that_started_it(root: Path) -> None:
    """A killed parent cannot tidy up, so losing the terminal has to do."""
    repository = str(Path(__file__).parents[2])
    program = [sys.executable, "-c", _PARENT, str(root)]
    with subprocess.Popen(program, cwd=repository, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "ready\n"
        started = pids(root)
        parent.kill()
    assert len(started) == 2
    deadline = time.monotonic() + 30
    while any(alive(pid, root) for pid in started) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(alive(pid, root) for pid in started)
