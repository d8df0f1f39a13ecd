"""Expected failures as results, in words the model can act on."""

from pathlib import PurePosixPath

from sandbox.paths import ChangedSince, PathRefused
from tools.base import Display, Result
from tools.shown import shown

Fault = PathRefused | ChangedSince | OSError


def failure(kind: str, message: str, title: str = "") -> Result:
    """A failed result. The person sees `title` (by default the message's first line) and the message."""
    first, _, rest = message.partition("\n")
    return Result(message, Display(title or first, message if title else rest), kind)


def refused(fault: PathRefused) -> Result:
    """A path the sandbox does not allow."""
    return failure("refused", " ".join(part for part in (fault.what, fault.why, fault.todo) if part))


def changed_since(path: PurePosixPath) -> Result:
    """A file that is no longer what the plan was made from."""
    name = shown(path)
    return failure("changed_since", f"{name} changed since it was read. Nothing was written. Read it again.")


def not_readable(path: PurePosixPath, fault: OSError) -> Result:
    """A file the system does not let us read or write."""
    why = fault.strerror or type(fault).__name__
    return failure("io_error", f"{shown(path)} cannot be used: {why}.")
