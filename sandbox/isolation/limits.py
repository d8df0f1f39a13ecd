"""Limits on what a command may use up: a net for accidents, wide enough for builds and tests."""

import os
import resource

Limit = tuple[int, int, int]
"""Which resource, what holds at first, and how far a program may raise it."""

_LARGEST_FILE = 16 << 30
_PROCESSES = 4096
_FOR_EVER = resource.RLIM_INFINITY


def limits() -> tuple[Limit, ...]:
    """The limits for a shell that starts now.

    Processes count with all that run on the system, since the kernel counts a person's together. Memory is
    that of one process, all that the machine has; a program may raise it, as sanitizers of memory must.
    """
    found: list[Limit] = [
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_FSIZE, _LARGEST_FILE, _LARGEST_FILE),
    ]
    if hasattr(os, "sysconf") and (memory := os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")) > 0:
        found.append((resource.RLIMIT_DATA, memory, _FOR_EVER))
    most = _PROCESSES + _running()
    found.append((resource.RLIMIT_NPROC, most, most))
    return tuple(found)


def _running() -> int:
    """How many threads the system runs, 0 where it does not say."""
    try:
        with open("/proc/loadavg", encoding="ascii") as file:
            return int(file.read().split()[3].partition("/")[2])
    except (OSError, ValueError, IndexError):
        return 0
