"""Reading and restoring single paths of the project, never through a link.

Every access walks from the project folder one component at a time without following links, so a folder
that was swapped for a link between two looks cannot lead a restore out of the project.
"""

import hashlib
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from uuid import uuid4

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Absent:
    """Nothing is there. `missing` counts the folders on the way that are not there either."""

    missing: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Regular:
    """A file: permission bits, size in bytes and the SHA-256 of its content.

    A file over the size limit is not read: its digest is then made of its modification time. `blob` names
    the kept copy, "" when there is none.
    """

    mode: int
    size: int
    digest: str
    blob: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Link:
    """A symbolic link and the path it holds, which is never followed."""

    target: str


@dataclass(frozen=True, slots=True)
class Other:
    """Something that is neither file nor link; `what` says it in words ("a folder")."""

    what: str


State = Absent | Regular | Link | Other


class WorkTree:
    """The files below `root`, addressed by paths relative to it."""

    def __init__(self, root: Path, limit: int) -> None:
        self._root = root
        self._limit = limit

    def locate(self, path: PurePosixPath) -> PurePosixPath:
        """The same path with links among its folders resolved. Raises ValueError outside the project."""
        if path.is_absolute() or ".." in path.parts or not path.parts:
            raise ValueError("it lies outside the project")
        try:
            folder = (self._root / path.parent).resolve()
        except (OSError, RuntimeError) as error:
            raise ValueError("the links on the way to it run in a circle") from error
        if not folder.is_relative_to(self._root):
            raise ValueError("a folder on the way is a link that leads out of the project")
        return PurePosixPath(folder.relative_to(self._root).as_posix(), path.name)

    def read(self, path: PurePosixPath) -> tuple[State, bytes | None]:
        """What is at `path` now, and its content when it is a file within the size limit."""
        try:
            with self._parent(path) as parent:
                return self._read_entry(parent, path.name)
        except FileNotFoundError:
            folders = list(path.parents)[:-1]
            return Absent(sum(not os.path.lexists(self._root / folder) for folder in folders)), None
        except NotADirectoryError:
            return Other("behind a file or a link that is no folder"), None
        except OSError:
            return Other("not readable"), None

    def write(self, path: PurePosixPath, state: Regular | Link, content: bytes) -> None:
        """Put a file or a link at `path`, whole or not at all; missing folders are made."""
        temporary = f".{uuid4().hex}.glimmer"
        with self._parent(path, create=True) as parent:
            try:
                if isinstance(state, Link):
                    os.symlink(state.target, temporary, dir_fd=parent)
                else:
                    self._fill(parent, temporary, state.mode, content)
                os.rename(temporary, path.name, src_dir_fd=parent, dst_dir_fd=parent)
            except BaseException:
                with suppress(FileNotFoundError):
                    os.unlink(temporary, dir_fd=parent)
                raise
            os.fsync(parent)

    def remove(self, path: PurePosixPath, folders: int) -> None:
        """Remove the file or link at `path`, then up to `folders` of its parents while they are empty."""
        with self._parent(path) as parent:
            os.unlink(path.name, dir_fd=parent)
        for folder in list(path.parents)[:folders]:
            try:
                with self._parent(folder) as parent:
                    os.rmdir(folder.name, dir_fd=parent)
            except OSError:
                return

    @contextmanager
    def _parent(self, path: PurePosixPath, create: bool = False) -> Generator[int]:
        current = os.open(self._root, _FOLDER)
        try:
            for part in path.parts[:-1]:
                if create:
                    with suppress(FileExistsError):
                        os.mkdir(part, dir_fd=current)
                below = os.open(part, _FOLDER, dir_fd=current)
                os.close(current)
                current = below
            yield current
        finally:
            os.close(current)

    def _read_entry(self, parent: int, name: str) -> tuple[State, bytes | None]:
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            return Link(os.readlink(name, dir_fd=parent)), None
        if not stat.S_ISREG(status.st_mode):
            return Other("a folder" if stat.S_ISDIR(status.st_mode) else "a device or a pipe"), None
        # O_NONBLOCK: should a pipe take the file's place meanwhile, opening it must not hang.
        opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
        with os.fdopen(opened, "rb", buffering=0) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                return Other("a device or a pipe"), None
            mode = status.st_mode & 0o777
            content = self._read_up_to_limit(file.fileno())
        if content is None:
            return Regular(mode, status.st_size, f"mtime:{status.st_mtime_ns}"), None
        return Regular(mode, len(content), hashlib.sha256(content).hexdigest()), content

    def _read_up_to_limit(self, file: int) -> bytes | None:
        content = bytearray()
        while chunk := os.read(file, _CHUNK):
            content += chunk
            if len(content) > self._limit:
                return None
        return bytes(content)

    @staticmethod
    def _fill(parent: int, name: str, mode: int, content: bytes) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(name, flags, 0o600, dir_fd=parent), "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
