"""Why a path was refused, in words a person and a model can act on.

PathRefused
├── PathMissing     nothing is there
└── ChangedSince    the file is no longer what was read
"""


class PathRefused(Exception):
    """A path that is not touched: `what` happened, `why`, and what to do (`todo`)."""

    def __init__(self, what: str, why: str = "", todo: str = "") -> None:
        self.what = what
        self.why = why
        self.todo = todo
        super().__init__(" ".join(part for part in (what, why, todo) if part))


class PathMissing(PathRefused):
    """There is no file or folder at the path."""


class ChangedSince(PathRefused):
    """The file differs from what the plan was made for; nothing was written."""


def shown(path: str, limit: int = 200) -> str:
    """A path as it may stand in a sentence: control, bidirectional and undecodable characters are escaped."""
    text = path if path.isprintable() else ascii(path)
    return text if len(text) <= limit else f"{text[:limit]}…"
