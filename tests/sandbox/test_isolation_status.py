"""What is decided from the facts of a machine, and the filter of system calls, for other machines too."""

import errno
import struct
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.isolation.call_filter import INET, UNIX, call_filter, refused_calls
from sandbox.isolation.probe import facts, status
from sandbox.isolation.status import Facts, IsolationStatus, available, decide
from sandbox.isolation.system_calls import MACHINES

_ALLOWED, _EPERM, _ENOSYS = 0x7FFF0000, 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS


@pytest.mark.parametrize(
    ("found", "kind", "said"),
    [
        (Facts("linux", "x86_64", "/usr/bin/bwrap", "", 7), "bubblewrap", ""),
        (Facts("linux", "aarch64", "/usr/bin/bwrap", "", 0), "bubblewrap", ""),
        (
            Facts("linux", "x86_64", "", "No permissions to create a new namespace", 5),
            "landlock",
            "namespace",
        ),
        (Facts("linux", "x86_64", "", "", 3), "landlock", "install bubblewrap"),
        (Facts("linux", "x86_64", "", "no", 2), "none", "version 2"),
        (Facts("linux", "x86_64", "", "", 0), "none", "install bubblewrap"),
        (Facts("linux", "riscv64", "/usr/bin/bwrap", "", 7), "none", "riscv64"),
        (Facts("darwin", "arm64", seatbelt=True), "seatbelt", ""),
        (Facts("darwin", "arm64"), "none", "sandbox-exec"),
        (Facts("win32", "AMD64"), "none", "win32"),
    ],
)
def test_the_kind_follows_from_the_facts(found: Facts, kind: str, said: str) -> None:
    decided = decide(found)
    assert decided.kind == kind
    assert said in decided.why
    assert bool(decided.why) == (kind in {"landlock", "none"})
    assert decided.isolated == (kind != "none") == bool(available(found))
    assert ("asks" in decided.notice) == (kind == "none")


def test_this_machine_is_probed_once() -> None:
    assert facts() is facts()
    assert status() == decide(facts())
    assert isinstance(status(), IsolationStatus)


def judged(program: bytes, mark: int, number: int, *arguments: int) -> int:
    """What the kernel would do with a call: a BPF machine, as far as filters use it."""
    given = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("<IIQ6Q", number, mark, 0, *given)
    steps = list(struct.iter_unpack("<HBBI", program))
    held = at = 0
    while True:
        code, then, otherwise, value = steps[at]
        at += 1
        match code:
            case 0x20:
                (held,) = struct.unpack_from("<I", data, value)
            case 0x06:
                return value
            case 0x15:
                at += then if held == value else otherwise
            case 0x35:
                at += then if held >= value else otherwise
            case 0x45:
                at += then if held & value else otherwise
            case _:
                raise AssertionError(f"an unknown step {code:#x}")


@pytest.mark.parametrize("machine", MACHINES)
def test_the_filter_refuses_what_it_names(machine: str) -> None:
    kind = MACHINES[machine]
    program = call_filter(machine, (UNIX, INET))
    numbers = kind.numbers
    for number in refused_calls(machine).values():
        assert judged(program, kind.mark, number) == _EPERM
    assert judged(program, kind.mark, numbers["clone3"]) == _ENOSYS
    for name, flag in product(("clone", "unshare"), (0x20000, 0x2000000, 0x10000000, 0x20000000, 0x40000000)):
        assert judged(program, kind.mark, numbers[name], flag | 0x11) == _EPERM
    assert judged(program, kind.mark, numbers["clone"], 0x3D0F00) == _ALLOWED
    assert judged(program, kind.mark, numbers["clone"], 0x01200011) == _ALLOWED
    assert judged(program, kind.mark, numbers["unshare"], 0x80) == _EPERM
    assert judged(program, kind.mark, numbers["unshare"], 0x400) == _ALLOWED
    for request, above in product((0x5412, 0x541C), (0, 1 << 32, 0xFFFFFFFF << 32)):
        assert judged(program, kind.mark, numbers["ioctl"], 0, request | above) == _EPERM
    assert judged(program, kind.mark, numbers["ioctl"], 0, 0x5413) == _ALLOWED
    assert [judged(program, kind.mark, numbers["socket"], family) for family in (1, 2, 10, 16, 38, 40)] == [
        _ALLOWED,
        _ALLOWED,
        *[_EPERM] * 4,
    ]
    none = call_filter(machine, ())
    assert judged(none, kind.mark, numbers["socket"], 1) == _EPERM


@given(st.sampled_from(sorted(MACHINES)), st.integers(0, 0xFFFFFFFF), st.integers(0, 600))
def test_every_call_has_an_answer(machine: str, mark: int, number: int) -> None:
    kind = MACHINES[machine]
    program = call_filter(machine, (UNIX,))
    if mark != kind.mark:
        assert judged(program, mark, number) == _EPERM
    answer = judged(program, kind.mark, number)
    if number not in kind.numbers.values():
        assert answer == _ALLOWED
    if kind.foreign_from:
        assert judged(program, kind.mark, number | kind.foreign_from) == _EPERM


def test_both_kinds_of_machine_refuse_the_same() -> None:
    only_x86 = {"iopl", "ioperm", "uselib"}
    assert set(MACHINES["x86_64"].numbers) - set(MACHINES["aarch64"].numbers) == only_x86
    for machine in MACHINES.values():
        assert len(set(machine.numbers.values())) == len(machine.numbers)
