"""Which kind of isolation this machine offers, decided from facts that were gathered before."""

from dataclasses import dataclass
from typing import Literal

from sandbox.isolation.system_calls import MACHINES

IsolationKind = Literal["bubblewrap", "landlock", "seatbelt", "none"]

LEAST_LANDLOCK = 3
"""Before this version Landlock does not keep a program from cutting files short."""


@dataclass(frozen=True, slots=True)
class IsolationStatus:
    """How commands are confined here. `why`: for the person; for "bubblewrap" and "seatbelt" it is empty."""

    kind: IsolationKind
    why: str = ""

    @property
    def isolated(self) -> bool:
        """Whether commands are confined at all."""
        return self.kind != "none"

    @property
    def notice(self) -> str:
        """What the person is told when a session starts, "" when all is as it should be."""
        return self.why if self.isolated else f"{self.why} Every command that may do more than read asks."


@dataclass(frozen=True, slots=True)
class Facts:
    """What was found on this machine.

    `system` and `machine` as Python names them ("linux", "x86_64"). `bubblewrap` is the path of a bwrap that
    ran a program confined as commands would be, "" when none did; `fault` is what the last one said.
    `landlock` is the version the kernel speaks, 0 for none. `seatbelt`: sandbox-exec is there.
    """

    system: str
    machine: str
    bubblewrap: str = ""
    fault: str = ""
    landlock: int = 0
    seatbelt: bool = False


def available(facts: Facts) -> tuple[IsolationKind, ...]:
    """The kinds that work on this machine, the best first; "none" is not among them."""
    if facts.system == "darwin":
        return ("seatbelt",) if facts.seatbelt else ()
    if facts.system != "linux" or facts.machine not in MACHINES:
        return ()
    kinds: list[IsolationKind] = ["bubblewrap"] if facts.bubblewrap else []
    if facts.landlock >= LEAST_LANDLOCK:
        kinds.append("landlock")
    return tuple(kinds)


def decide(facts: Facts) -> IsolationStatus:
    """The best kind there is, and why it is not a better one."""
    kinds = available(facts)
    if kinds and kinds[0] != "landlock":
        return IsolationStatus(kinds[0])
    if kinds:
        what = "Commands are confined by Landlock alone, which cannot protect the files that steer git."
        return IsolationStatus("landlock", f"{what} {_no_bubblewrap(facts)}")
    return IsolationStatus("none", _why_none(facts))


def _why_none(facts: Facts) -> str:
    if facts.system == "darwin":
        return "Commands are not isolated: /usr/bin/sandbox-exec is missing."
    if facts.system != "linux":
        return f"Commands are not isolated: there is no isolation for {facts.system}."
    if facts.machine not in MACHINES:
        return f"Commands are not isolated: there is no system call filter for {facts.machine}."
    landlock = (
        f"the kernel speaks version {facts.landlock} of Landlock, and {LEAST_LANDLOCK} is needed"
        if facts.landlock
        else "the kernel offers no Landlock"
    )
    return f"Commands are not isolated. {_no_bubblewrap(facts)} Also, {landlock}."


def _no_bubblewrap(facts: Facts) -> str:
    if not facts.fault:
        return "There is no bwrap: install bubblewrap."
    return f"bwrap cannot run here: {facts.fault.rstrip('.')}."
