"""The filter of system calls, as the bytes of a BPF program that the kernel runs at every call.

What is refused fails with EPERM, so programs report it as they report any lack of rights. Calls that only a
kernel's own or another process's innards need are refused, new namespaces too, and the two terminal requests
that put words into somebody else's input. The families of sockets are an allow list.
"""

import errno
import struct
from collections.abc import Collection

from sandbox.isolation.system_calls import MACHINES, Machine

UNIX, INET, INET6, NETLINK = 1, 2, 10, 16
"""Families of sockets."""

_ALLOW = 0x7FFF0000
_FAIL = 0x00050000
_LOAD, _RETURN, _EQUAL, _AT_LEAST, _ANY_BIT = 0x20, 0x06, 0x15, 0x35, 0x45
_NUMBER, _MARK, _FIRST, _SECOND = 0, 4, 16, 24
"""Where the kernel puts the call's number, the machine's mark, and the low halves of the arguments."""

_NAMESPACES = 0x7E020000
_TIME_NAMESPACE = 0x80
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_JUDGED = frozenset({"clone", "clone3", "unshare", "ioctl", "socket"})


def refused_calls(machine: str) -> dict[str, int]:
    """The calls that are refused whatever their arguments, by name."""
    return {name: number for name, number in MACHINES[machine].numbers.items() if name not in _JUDGED}


def call_filter(machine: str, families: Collection[int]) -> bytes:
    """The filter for a machine in MACHINES that lets programs open sockets of these families alone."""
    kind = MACHINES[machine]
    program = [*_same_machine(kind)]
    for number in sorted(refused_calls(machine).values()):
        program += [_step(_EQUAL, number, 0, 1), _fail(errno.EPERM)]
    numbers = kind.numbers
    # Its flags lie in memory, where no filter can look; "unknown call" makes libraries use `clone`.
    program += [_step(_EQUAL, numbers["clone3"], 0, 1), _fail(errno.ENOSYS)]
    program += _any_bit(numbers["clone"], _NAMESPACES)
    program += _any_bit(numbers["unshare"], _NAMESPACES | _TIME_NAMESPACE)
    allow, fail = _step(_RETURN, _ALLOW), _fail(errno.EPERM)
    program += _when(numbers["ioctl"], _SECOND, (_TIOCSTI, _TIOCLINUX), fail, allow)
    program += _when(numbers["socket"], _FIRST, families, allow, fail)
    program.append(allow)
    return b"".join(program)


def _same_machine(kind: Machine) -> list[bytes]:
    """A program of another machine's kind (32 bits) would number its calls differently: all are refused."""
    steps = [_step(_LOAD, _MARK), _step(_EQUAL, kind.mark, 1, 0), _fail(errno.EPERM), _step(_LOAD, _NUMBER)]
    if kind.foreign_from:
        steps += [_step(_AT_LEAST, kind.foreign_from, 0, 1), _fail(errno.EPERM)]
    return steps


def _any_bit(number: int, bits: int) -> list[bytes]:
    inner = [
        _step(_LOAD, _FIRST),
        _step(_ANY_BIT, bits, 0, 1),
        _fail(errno.EPERM),
        _step(_RETURN, _ALLOW),
    ]
    return [_step(_EQUAL, number, 0, len(inner)), *inner]


def _when(number: int, argument: int, values: Collection[int], met: bytes, unmet: bytes) -> list[bytes]:
    """For one call: `met` when the argument is among the values, else `unmet`."""
    inner = [_step(_LOAD, argument)]
    for value in values:
        inner += [_step(_EQUAL, value, 0, 1), met]
    inner.append(unmet)
    return [_step(_EQUAL, number, 0, len(inner)), *inner]


def _fail(number: int) -> bytes:
    return _step(_RETURN, _FAIL | number)


def _step(code: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
    return struct.pack("<HBBI", code, then, otherwise, value)
