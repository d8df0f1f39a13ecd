"""Finding and ending every process a shell started, those that left its session included."""

import os
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass

_PROC = "/proc"


@dataclass(frozen=True, slots=True)
class Process:
    """A living process: its parent, its session, and whether its environment holds the mark."""

    pid: int
    parent: int
    session: int
    marked: bool


def family(first: frozenset[int], mark: str) -> list[Process]:
    """The living processes that came from `first`: those, descendants, and whoever shares their sessions.

    A session outlives its leader, so a number in `first` also stands for the session it led. Daemons that
    left every session are known by `mark` ("NAME=value") in their environment.
    """
    everyone = _linux(mark) if os.path.exists(f"{_PROC}/self/stat") else _by_ps(mark)
    mine = first | {process.pid for process in everyone if process.marked}
    grown = True
    while grown:
        sessions = first | {process.session for process in everyone if process.pid in mine}
        more = {p.pid for p in everyone if p.parent in mine or p.session in sessions} - mine
        mine |= more
        grown = bool(more)
    own = os.getpid()
    return [process for process in everyone if process.pid in mine and process.pid != own]


def send(processes: list[Process], number: signal.Signals) -> None:
    """Send a signal to each; those that are gone or not ours are passed over."""
    for process in processes:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(process.pid, number)


def inner_number(pid: int) -> int:
    """The number a process knows itself by, where it may count only processes of its own; 0 if it is gone."""
    if not os.path.exists(f"{_PROC}/self/stat"):
        return pid
    with suppress(OSError):
        for line in _content(f"{_PROC}/{pid}/status").splitlines():
            if line.startswith(b"NSpid:"):
                return int(line.split()[-1])
    return 0


def _linux(mark: str) -> list[Process]:
    wanted = mark.encode()
    found: list[Process] = []
    for name in os.listdir(_PROC):
        if not name.isdigit():
            continue
        with suppress(OSError):
            # The command name may hold anything, parentheses too: the fields start after the last one.
            fields = _content(f"{_PROC}/{name}/stat").rpartition(b")")[2].split()
            if fields[0] not in (b"Z", b"X"):
                marked = _carries(f"{_PROC}/{name}/environ", wanted)
                found.append(Process(int(name), int(fields[1]), int(fields[3]), marked))
    return found


def _carries(environment: str, mark: bytes) -> bool:
    try:
        content = _content(environment)
    except OSError:
        return False
    return mark in content and mark in content.split(b"\0")


def _content(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.readall()


def _by_ps(mark: str) -> list[Process]:
    # The BSD `ps` shows the environment after the command, for one's own processes.
    columns = ["/bin/ps", "-A", "-E", "-ww", "-o", "pid=,ppid=,stat=,command="]
    listing = subprocess.run(columns, capture_output=True, check=False, stdin=subprocess.DEVNULL)
    found: list[Process] = []
    for line in listing.stdout.decode("utf-8", "replace").splitlines():
        fields = line.split(None, 3)
        if len(fields) < 3 or not fields[0].isdigit() or fields[2].startswith("Z"):
            continue
        with suppress(OSError):
            pid = int(fields[0])
            found.append(Process(pid, int(fields[1]), os.getsid(pid), mark in line))
    return found
