"""Finding and ending every process a shell started, those that left its session included."""

import os
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Process:
    """A living process: its parent and its session."""

    pid: int
    parent: int
    session: int


def family(first: frozenset[int], mark: str) -> list[Process]:
    """The living processes that came from `first`: those, descendants, and whoever shares their sessions.

    A session outlives its leader, so a number in `first` also stands for the session it led. On Linux
    also those whose environment holds `mark` ("NAME=value"): daemons that left every session.
    """
    everyone = _linux() if _PROC.joinpath("self/stat").exists() else _by_ps()
    wanted = mark.encode()
    mine = first | {process.pid for process in everyone if _carries(process.pid, wanted)}
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


def _linux() -> list[Process]:
    found: list[Process] = []
    for entry in os.scandir(_PROC):
        if not entry.name.isdigit():
            continue
        with suppress(OSError):
            # The command name may hold anything, parentheses too: the fields start after the last one.
            fields = Path(entry.path, "stat").read_bytes().rpartition(b")")[2].split()
            if fields[0] not in (b"Z", b"X"):
                found.append(Process(int(entry.name), int(fields[1]), int(fields[3])))
    return found


def _by_ps() -> list[Process]:
    columns = ["ps", "-A", "-o", "pid=,ppid=,stat="]
    listing = subprocess.run(columns, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    found: list[Process] = []
    for line in listing.stdout.splitlines():
        pid, parent, state = line.split()[:3]
        if state.startswith("Z"):
            continue
        with suppress(OSError):
            found.append(Process(int(pid), int(parent), os.getsid(int(pid))))
    return found


def _carries(pid: int, mark: bytes) -> bool:
    try:
        environment = (_PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return False
    return mark in environment.split(b"\0")
