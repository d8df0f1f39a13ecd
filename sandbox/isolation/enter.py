"""Run as a program of its own: confines itself as a file says, and becomes the program it was given.

Fails closed: when anything of it does not work, it says so and the program does not run.
"""

import ctypes
import json
import os
import resource
import signal
import sys
from typing import Any

_NO_NEW_PRIVILEGES, _SECCOMP, _FILTER = 38, 22, 2
_DROP_BOUND, _AMBIENT, _CLEAR_ALL, _CAPABILITY_VERSION = 24, 47, 4, 0x20080522
_CREATE, _ADD, _RESTRICT = 444, 445, 446
_ON_FILES = 0b1100000000000111
"""The rights that make sense for something that is no folder."""


class _Attributes(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("ports", ctypes.c_uint64), ("scopes", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_char_p))


def main(settings: str, program: list[str]) -> None:
    """Confine as the JSON file `settings` says, then run `program` in this process."""
    try:
        with open(settings, encoding="utf-8") as file:
            wanted = json.load(file)
        _limit(wanted["limits"])
        if wanted["landlock"] is not None:
            _landlock(wanted["landlock"])
        if wanted["filter"]:
            _filter(bytes.fromhex(wanted["filter"]), wanted["descriptor"])
        # Python ignores these; a pipe that nobody reads must end a program.
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        os.execv(program[0], program)
    except (OSError, ValueError) as error:
        print(f"The command could not be confined: {error}", flush=True)
        os._exit(126)


def _limit(wanted: list[list[int]]) -> None:
    for number, soft, hard in wanted:
        _, most = resource.getrlimit(number)
        if most != resource.RLIM_INFINITY:
            hard = most if hard == resource.RLIM_INFINITY else min(hard, most)
            soft = min(soft, hard)
        resource.setrlimit(number, (soft, hard))


def _landlock(wanted: dict[str, Any]) -> None:
    _control(_NO_NEW_PRIVILEGES, 1, 0)
    attributes = _Attributes(wanted["files"], 0, wanted["scopes"])
    # An older kernel refuses a structure with fields it does not know, unless they are left off.
    size = ctypes.sizeof(attributes) if wanted["scopes"] else 8
    rules = _call(_CREATE, ctypes.byref(attributes), ctypes.c_size_t(size), ctypes.c_uint32(0))
    for path, allowed in wanted["rules"]:
        _allow(rules, path, allowed)
    _call(_RESTRICT, ctypes.c_int(rules), ctypes.c_uint32(0))
    os.close(rules)


def _drop_capabilities() -> None:
    """Root's own rights go, now and for every program it starts; other people have none to begin with."""
    for number in range(64):
        if _libc().prctl(_DROP_BOUND, ctypes.c_ulong(number), *[ctypes.c_ulong(0)] * 3) < 0:
            break
    _control(_AMBIENT, _CLEAR_ALL, 0)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    _checked(_libc().capset(header, (ctypes.c_uint32 * 6)()))


def _allow(rules: int, path: str, allowed: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (FileNotFoundError, PermissionError):
        return
    if not os.path.isdir(f"/proc/self/fd/{place}"):
        allowed &= _ON_FILES
    beneath = _Beneath(allowed, place)
    _call(_ADD, ctypes.c_int(rules), ctypes.c_int(1), ctypes.byref(beneath), ctypes.c_uint32(0))
    os.close(place)


def _filter(steps: bytes, descriptor: int | None) -> None:
    """Install the filter, or leave it at a descriptor for the program, which installs it later."""
    if descriptor is None:
        _drop_capabilities()
        program = _Program(len(steps) // 8, steps)
        _control(_NO_NEW_PRIVILEGES, 1, 0)
        _control(_SECCOMP, _FILTER, ctypes.addressof(program))
        return
    reading, writing = os.pipe()
    os.write(writing, steps)
    os.close(writing)
    os.dup2(reading, descriptor)
    if reading != descriptor:
        os.close(reading)


def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)


def _control(what: int, first: int, second: int) -> None:
    nothing = ctypes.c_ulong(0)
    _checked(_libc().prctl(what, ctypes.c_ulong(first), ctypes.c_ulong(second), nothing, nothing))


def _call(number: int, *arguments: Any) -> int:
    return _checked(_libc().syscall(ctypes.c_long(number), *arguments))


def _checked(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
