"""Expected failures as results, in words the model can act on."""

from sandbox.paths import ChangedSince, PathMissing, PathRefused
from tools.base import Display, Result


def failure(kind: str, message: str) -> Result:
    """A failed result; the message's first line is the person's title."""
    title, _, rest = message.partition("\n")
    return Result(message, Display(title, rest), kind)


def refused(fault: PathRefused) -> Result:
    """A path the sandbox does not touch, is not there, or changed after it was looked at."""
    match fault:
        case ChangedSince():
            kind = "changed_since"
        case PathMissing():
            kind = "not_found"
        case _:
            kind = "refused"
    return failure(kind, str(fault))
