"""The project folder, and the only way files in it are read and changed.

A path is text the model wrote, so it is untrusted: what leaves the folder, by `..`, by an absolute path or
through a link, is refused, and a change never goes through a link. A change is atomic and carries the
fingerprint of what it was planned for; when the file is something else by then, nothing is written.
"""

import hashlib
import os
import posixpath
import re
import secrets
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Literal

from sandbox.refusals import ChangedSince, PathMissing, PathRefused, shown
from sandbox.walk import Place, Root, outside, reach

__all__ = ["ABSENT", "ChangedSince", "FileFacts", "PathMissing", "PathRefused", "Workspace", "shown"]

ABSENT = "absent"
_PROTECTED = frozenset({".git", ".glimmer"})
_HOME = re.compile(r"~[\w.+-]*")
# HFS+ leaves these out when it compares names, so ".g\u200cit" would be ".git" there.
_UNSEEN = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_BLOCK = 1 << 20
_LONGEST = 4096


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What is at a path, after links: `size` in bytes, `mode` as permission bits.

    `is_link`: a link was followed on the way. A link to nothing is "other".
    """

    kind: Literal["file", "dir", "other"]
    size: int
    mode: int
    is_link: bool


class Workspace:
    """The project folder. Paths are relative to it, or absolute and inside it; everything else is refused."""

    def __init__(self, root: Path) -> None:
        try:
            real = root.resolve(strict=True)
            facts = real.stat()
        except (OSError, RuntimeError) as error:
            raise PathRefused(
                f"The project folder {shown(str(root))} cannot be opened.", str(error)
            ) from error
        if not stat.S_ISDIR(facts.st_mode):
            raise PathRefused(f"{shown(str(root))} is not a folder.", "", "Start Glimmer in a folder.")
        self.root = real
        names = tuple(dict.fromkeys((str(real), os.path.abspath(root))))
        self._root = Root(str(real), names, (facts.st_dev, facts.st_ino))

    def locate(self, path: str | PurePosixPath) -> PurePosixPath:
        """The path relative to the root, normalised, links kept. Nothing needs to be there.

        Refused when it is empty, leaves the workspace (a link on the way counts, the last component
        too), starts in a home folder, or cannot be a path. Locating the answer again gives the same.
        """
        relative = self._relative(path)
        with reach(self._root, relative, follow=True):
            return PurePosixPath(relative)

    def real(self, path: str | PurePosixPath) -> PurePosixPath:
        """The path after its links, relative to the root: what rules about names must look at."""
        with reach(self._root, self._relative(path), follow=True) as place:
            return PurePosixPath(*place.real)

    def check_write(self, path: str | PurePosixPath) -> None:
        """Refuse places no tool may change: the root itself, `.git` and `.glimmer` and all in them."""
        relative = self._relative(path)
        if relative == ".":
            raise PathRefused("The project folder itself is not written.", "", "Name a file in it.")
        for part in relative.split("/"):
            if _UNSEEN.sub("", part).casefold() in _PROTECTED:
                raise PathRefused(
                    f"{shown(relative)} is not written.",
                    f"{shown(part)} is protected: it could change what git or Glimmer runs.",
                    "Use git commands for the repository; the person edits Glimmer's settings.",
                )

    def stat(self, path: str | PurePosixPath) -> FileFacts | None:
        """What is at the path, or None."""
        relative = self._relative(path)
        with reach(self._root, relative, follow=True) as place:
            facts, followed = place.facts, place.followed
        if facts is None:
            return FileFacts("other", 0, 0, True) if followed and self._is_link(relative) else None
        return FileFacts(_kind(facts), facts.st_size, stat.S_IMODE(facts.st_mode), followed)

    def open(self, path: str | PurePosixPath) -> BinaryIO:
        """A regular file, open for reading. Never blocks on a FIFO or a device: those are refused."""
        relative = self._relative(path)
        with reach(self._root, relative, follow=True) as place:
            return _open_regular(place, relative)

    def read(self, path: str | PurePosixPath, limit: int | None = None) -> bytes:
        """A regular file's bytes, at most `limit` of them."""
        with self.open(path) as file:
            try:
                return file.read() if limit is None else file.read(limit)
            except OSError as error:
                raise PathRefused(f"{shown(str(path))} cannot be read.", str(error)) from error

    def fingerprint(self, path: str | PurePosixPath) -> str:
        """What identifies the state of a path: "absent", or its kind with a digest of its content."""
        relative = self._relative(path)
        with reach(self._root, relative, follow=True) as place:
            return _fingerprint(place, relative)

    def write(self, path: str | PurePosixPath, data: bytes, expected: str) -> None:
        """Put `data` at the path in one step, if the path is still in the state `expected` tells.

        Raises ChangedSince otherwise, checked right before the file takes its place. Permission bits
        stay; missing folders are created. Links on the way and anything but a regular file are refused.
        """
        relative = self._relative(path)
        self.check_write(relative)
        with reach(self._root, relative, follow=False) as place:
            _check_replaceable(place, relative)
            _check_unchanged(place, relative, expected)
        with reach(self._root, relative, follow=False, make=expected == ABSENT) as place:
            if place.folder < 0:
                _check_unchanged(place, relative, expected)
            _check_replaceable(place, relative)
            temporary = f".glimmer-{secrets.token_hex(8)}.tmp"
            try:
                _fill(place, temporary, data)
                _check_unchanged(place, relative, expected)
                _take_place(place, temporary, relative, new=expected == ABSENT)
            except BaseException:
                with suppress(OSError):
                    os.unlink(temporary, dir_fd=place.folder)
                raise
            _sync_folder(place.folder)

    def delete(self, path: str | PurePosixPath, expected: str) -> None:
        """Remove a regular file, if it is still in the state `expected` tells; ChangedSince otherwise."""
        relative = self._relative(path)
        self.check_write(relative)
        with reach(self._root, relative, follow=False) as place:
            _check_unchanged(place, relative, expected)
            if place.facts is None:
                raise PathMissing(f"{shown(relative)} does not exist.", "", "Check the path.")
            _check_replaceable(place, relative)
            os.unlink(place.name, dir_fd=place.folder)
            _sync_folder(place.folder)

    def _is_link(self, relative: str) -> bool:
        return os.path.islink(os.path.join(self._root.real, relative))

    def _relative(self, path: str | PurePosixPath) -> str:
        text = str(path)
        if not text or "\0" in text:
            raise PathRefused("That is not a path.", "It is empty or holds a NUL character.", "Name a file.")
        try:
            if len(os.fsencode(text)) >= _LONGEST:
                raise PathRefused(f"{shown(text)} is not a path.", "It is too long.", "Name a file.")
        except UnicodeEncodeError as error:
            raise PathRefused(
                f"{shown(text)} is not a path.", "It cannot be written as a file name."
            ) from error
        normal = posixpath.normpath(text)
        if normal.startswith("/"):
            below = self._root.below(f"/{normal.lstrip('/')}")
            if below is None:
                raise outside(text, f"The project folder is {shown(self._root.real)}.")
            normal = below or "."
        first = normal.partition("/")[0]
        if first == "..":
            raise outside(text, "It leads above the project folder.")
        if _HOME.fullmatch(first):
            raise outside(text, "It starts in a home folder.")
        return normal


def _kind(facts: os.stat_result) -> Literal["file", "dir", "other"]:
    if stat.S_ISREG(facts.st_mode):
        return "file"
    return "dir" if stat.S_ISDIR(facts.st_mode) else "other"


def _open_regular(place: Place, relative: str) -> BinaryIO:
    if place.facts is None:
        raise PathMissing(f"{shown(relative)} does not exist.", "", "Check the path.")
    if not stat.S_ISREG(place.facts.st_mode):
        raise _not_regular(place.facts, relative)
    descriptor = os.open(place.name, _READ, dir_fd=place.folder)
    facts = os.fstat(descriptor)
    if not stat.S_ISREG(facts.st_mode):
        os.close(descriptor)
        raise _not_regular(facts, relative)
    return os.fdopen(descriptor, "rb")


def _not_regular(facts: os.stat_result, relative: str) -> PathRefused:
    if stat.S_ISDIR(facts.st_mode):
        return PathRefused(f"{shown(relative)} is a folder.", "", "Name a file in it.")
    return PathRefused(
        f"{shown(relative)} is not a regular file.", "It is a pipe, a socket, a device or a link."
    )


def _fingerprint(place: Place, relative: str) -> str:
    facts = _now(place)
    if facts is None:
        return ABSENT
    if not stat.S_ISREG(facts.st_mode):
        return f"{_kind(facts)}:{stat.S_IFMT(facts.st_mode):o}:{facts.st_rdev}"
    digest = hashlib.sha256()
    with _open_regular(place, relative) as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return f"file:{digest.hexdigest()}"


def _now(place: Place) -> os.stat_result | None:
    if place.folder < 0:
        return None
    try:
        return os.stat(place.name, dir_fd=place.folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _check_unchanged(place: Place, relative: str, expected: str) -> None:
    found = _fingerprint(place, relative)
    if found == expected:
        return
    if found == ABSENT:
        why = "It is gone."
    elif expected == ABSENT:
        why = "Something is there now."
    else:
        why = "Its content is different now."
    raise ChangedSince(f"{shown(relative)} changed since it was read.", why, "Read it again and plan anew.")


def _check_replaceable(place: Place, relative: str) -> None:
    if place.facts is None:
        return
    if not stat.S_ISREG(place.facts.st_mode):
        raise _not_regular(place.facts, relative)
    if not os.access(place.name, os.W_OK, dir_fd=place.folder):
        raise PathRefused(f"{shown(relative)} is read-only.", "", "The person can make it writable.")


def _fill(place: Place, temporary: str, data: bytes) -> None:
    kept = place.facts
    descriptor = os.open(temporary, _CREATE, 0o666 if kept is None else 0o600, dir_fd=place.folder)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        if kept is not None:
            if (kept.st_uid, kept.st_gid) != (os.geteuid(), os.getegid()):
                with suppress(OSError):
                    os.fchown(descriptor, kept.st_uid, kept.st_gid)
            os.fchmod(descriptor, kept.st_mode & 0o777)
        os.fsync(descriptor)


def _take_place(place: Place, temporary: str, relative: str, *, new: bool) -> None:
    """A new file is linked into place, which fails when something appeared; an old one is replaced."""
    folder = place.folder
    if new:
        try:
            os.link(temporary, place.name, src_dir_fd=folder, dst_dir_fd=folder)
        except FileExistsError as error:
            raise ChangedSince(
                f"{shown(relative)} changed since it was read.", "Something is there now.", "Read it first."
            ) from error
        except OSError:
            # Some file systems know no hard links; there a rename right after the check has to do.
            _check_unchanged(place, relative, ABSENT)
        else:
            os.unlink(temporary, dir_fd=folder)
            return
    os.rename(temporary, place.name, src_dir_fd=folder, dst_dir_fd=folder)


def _sync_folder(folder: int) -> None:
    with suppress(OSError):
        os.fsync(folder)
