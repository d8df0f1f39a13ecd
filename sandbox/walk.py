"""Reaching a file from the workspace's root one component at a time, so that no swapped link leads outside.

Every step opens relative to the folder opened before it and never lets the kernel follow a link: links are
read and resolved here, and one that leaves the root is refused. Going up (`..` in a link) returns to a
folder that is already open, so a folder moved meanwhile cannot lead out either.
"""

import errno
import os
import stat
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from sandbox.refusals import PathMissing, PathRefused, shown

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_MOST_LINKS = 40


@dataclass(frozen=True, slots=True)
class Root:
    """The workspace's folder: its real path, the names it is also known by, and its identity on the disk."""

    real: str
    names: tuple[str, ...]
    identity: tuple[int, int]

    def open(self) -> int:
        """A descriptor of the root; refused when another folder took its place."""
        try:
            root = os.open(self.real, _FOLDER)
        except OSError as error:
            raise refusal_of(error, self.real) from error
        facts = os.fstat(root)
        if (facts.st_dev, facts.st_ino) == self.identity:
            return root
        os.close(root)
        raise PathRefused(
            f"The project folder {shown(self.real)} is not the one Glimmer was started in.",
            "It was moved or replaced.",
            "Start Glimmer again in the folder you mean.",
        )

    def below(self, path: str) -> str | None:
        """An absolute path relative to the root ("" for the root itself), or None when it lies elsewhere."""
        for name in self.names:
            if path == name or path.startswith(f"{name.rstrip('/')}/"):
                return path[len(name) :].lstrip("/")
        return None


@dataclass(frozen=True, slots=True)
class Place:
    """A name in an open folder. `real` are its components after links; `facts` is None when nothing is there.

    `folder` is -1 when a folder on the way is missing. `name` is "." for the root.
    """

    folder: int
    name: str
    real: tuple[str, ...]
    facts: os.stat_result | None
    followed: bool


class _Walk:
    def __init__(self, root: Root, parts: tuple[str, ...], text: str) -> None:
        self.root = root
        self.text = text
        self.folders = [root.open()]
        self.real: list[str] = []
        self.pending = deque(parts)
        self.links = 0

    def close(self) -> None:
        for folder in self.folders:
            os.close(folder)

    def run(self, *, follow: bool, make: bool) -> Place:
        while self.pending:
            part = self.pending.popleft()
            if part in ("", "."):
                continue
            if part == "..":
                self._up()
                continue
            facts = self._facts(part)
            if facts is not None and stat.S_ISLNK(facts.st_mode):
                if not follow:
                    raise self._through_link(part)
                self._link(part)
                continue
            if not any(rest not in ("", ".") for rest in self.pending):
                return Place(self.folders[-1], part, (*self.real, part), facts, self.links > 0)
            if facts is None and ".." in self.pending:
                raise outside(self.text, "A link on the way goes up from a folder that is missing.")
            if facts is None and not make:
                return Place(-1, part, (*self.real, part, *self.pending), None, self.links > 0)
            self._down(part, missing=facts is None)
        root = os.fstat(self.folders[-1])
        return Place(self.folders[-1], ".", tuple(self.real), root, self.links > 0)

    def _facts(self, part: str) -> os.stat_result | None:
        try:
            return os.stat(part, dir_fd=self.folders[-1], follow_symlinks=False)
        except FileNotFoundError:
            return None

    def _up(self) -> None:
        if not self.real:
            raise outside(self.text, "A link on the way leads out of the project folder.")
        self.real.pop()
        os.close(self.folders.pop())

    def _down(self, part: str, *, missing: bool) -> None:
        if missing:
            with suppress(FileExistsError):
                os.mkdir(part, dir_fd=self.folders[-1])
        try:
            folder = os.open(part, _FOLDER, dir_fd=self.folders[-1])
        except OSError as error:
            if error.errno in (errno.ENOTDIR, errno.ELOOP):
                raise PathRefused(
                    f"{shown(self.text)} cannot be reached.",
                    f"{shown('/'.join((*self.real, part)))} is not a folder.",
                    "Check the path.",
                ) from error
            raise
        self.folders.append(folder)
        self.real.append(part)

    def _link(self, part: str) -> None:
        self.links += 1
        if self.links > _MOST_LINKS:
            raise PathRefused(
                f"{shown(self.text)} cannot be reached.", "Its links run in a circle.", "Mend the links."
            )
        target = os.readlink(part, dir_fd=self.folders[-1])
        if target.startswith("/"):
            below = self.root.below(target)
            if below is None:
                raise outside(self.text, f"It goes through a link to {shown(target)}.")
            for folder in self.folders[1:]:
                os.close(folder)
            del self.folders[1:]
            self.real.clear()
            target = below
        self.pending.extendleft(reversed(target.split("/")))

    def _through_link(self, part: str) -> PathRefused:
        link = "/".join((*self.real, part))
        return PathRefused(
            f"{shown(self.text)} is not written.",
            f"{shown(link)} is a link, and changes never go through a link.",
            "Name the file the link leads to.",
        )


@contextmanager
def reach(root: Root, path: str, *, follow: bool, make: bool = False) -> Generator[Place]:
    """Walk to a normalised workspace-relative path and hold the folder it lies in open.

    `follow`: links that stay inside are followed, otherwise any link is refused. `make`: missing folders
    on the way are created. Operating-system errors, the body's too, come out as PathRefused.
    """
    try:
        walk = _Walk(root, tuple(path.split("/")), path)
        try:
            yield walk.run(follow=follow, make=make)
        finally:
            walk.close()
    except OSError as error:
        raise refusal_of(error, path) from error


def outside(path: str, why: str) -> PathRefused:
    """The refusal for a path that is not in the workspace."""
    return PathRefused(f"{shown(path)} is outside the project folder.", why, "Use a path inside the project.")


def refusal_of(error: OSError, path: str) -> PathRefused:
    """An operating-system error as a refusal."""
    if isinstance(error, FileNotFoundError):
        return PathMissing(f"{shown(path)} does not exist.", "", "Check the path.")
    reason = os.strerror(error.errno) if error.errno else str(error)
    return PathRefused(
        f"{shown(path)} cannot be used.", f"The system says: {reason}.", "Check the path and its permissions."
    )
