"""A private bare git repository that keeps file contents and one journal a session.

It lies in Glimmer's state folder, never in the person's project: no index, branch, hook, stash or
configuration of theirs is ever near it. Git runs with an empty environment apart from what is named here,
so neither the person's settings nor a GIT_* variable has a say.

A session is one ref, `refs/glimmer/<session>`, that points at a commit: the commit's message is the
journal, its tree holds every blob the journal names. Moving the ref is the only step that changes
anything, so a process killed at any point leaves the old journal or the new one.
"""

import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Container, Generator, Iterable
from contextlib import contextmanager
from pathlib import Path

_SETTINGS = {
    "core.fsmonitor": "",
    "core.hooksPath": "/dev/null",
    "core.logAllRefUpdates": "false",
    "core.fsync": "objects,reference",
    "gc.auto": "0",
    "maintenance.auto": "false",
}
_REFS = "refs/glimmer/"
_SESSION = re.compile(r"[0-9a-f]{8,64}")


class SnapshotError(Exception):
    """A snapshot could not be taken or read: `what` happened, `why`, and what the person can `todo`."""

    def __init__(self, what: str, why: str = "", todo: str = "") -> None:
        self.what = what
        self.why = why
        self.todo = todo
        super().__init__(" ".join(part for part in (what, why, todo) if part))


class SnapshotsUnavailable(SnapshotError):
    """Nothing can be recorded here at all; every write then needs the person's word."""


def find_git(project: Path) -> str:
    """The absolute path of git. Raises SnapshotsUnavailable; a git inside the project is not trusted."""
    found = shutil.which("git")
    if found is None:
        raise SnapshotsUnavailable(
            "Changes cannot be undone here.",
            "The program git was not found.",
            "Install git and start Glimmer again.",
        )
    if not os.path.isabs(found) or "=" in found or Path(found).resolve().is_relative_to(project):
        raise SnapshotsUnavailable(
            "Changes cannot be undone here.",
            f"The git that PATH names first, {found}, is not one that can be trusted.",
            "Put the folder of your system's git first in PATH and start Glimmer again.",
        )
    return found


class ObjectStore:
    """File contents by object id and journals by session name, in the bare repository `folder`."""

    def __init__(self, folder: Path, git: str) -> None:
        self._folder = folder
        environment = {
            "PATH": f"{os.path.dirname(git)}:/usr/bin:/bin",
            "HOME": str(folder),
            "LC_ALL": "C",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_AUTHOR_NAME": "Glimmer",
            "GIT_AUTHOR_EMAIL": "glimmer@localhost",
            "GIT_COMMITTER_NAME": "Glimmer",
            "GIT_COMMITTER_EMAIL": "glimmer@localhost",
        }
        settings = [word for key, value in _SETTINGS.items() for word in ("-c", f"{key}={value}")]
        self._command = [
            "/usr/bin/env", "-i", *(f"{key}={value}" for key, value in environment.items()),
            git, f"--git-dir={folder}", *settings,
        ]  # fmt: skip
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with self.locked():
                if not (folder / "HEAD").exists() or not (folder / "objects").is_dir():
                    self._git("init", "-q", "--bare", "--template=")
        except OSError as error:
            raise SnapshotsUnavailable(
                "Changes cannot be undone here.",
                f"The folder {folder} cannot be written: {error.strerror}.",
                "Make it writable, or choose another state folder.",
            ) from error

    @contextmanager
    def locked(self) -> Generator[None]:
        """Hold the store: one operation at a time over all threads and processes."""
        with (self._folder / "glimmer.lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            # Nobody else is at work now, so a lock of git's own was left by a process that was killed.
            for stale in (self._folder / "refs").rglob("*.lock"):
                stale.unlink(missing_ok=True)
            for name in ("HEAD.lock", "config.lock", "packed-refs.lock"):
                (self._folder / name).unlink(missing_ok=True)
            yield

    def claim(self, session: str) -> int | None:
        """Take a session for as long as the returned descriptor stays open; None when it is taken."""
        descriptor = os.open(
            self._folder / f"{session}.session", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
        )
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        return descriptor

    def put(self, content: bytes) -> str:
        """Keep `content` byte for byte and return its object id."""
        return self._git("hash-object", "-w", "--no-filters", "--stdin", stdin=content).decode().strip()

    def get(self, blob: str) -> bytes:
        """The content kept under an object id."""
        return self._git("cat-file", "blob", blob)

    def journals(self) -> dict[str, str]:
        """Every session's journal."""
        listing = self._git("for-each-ref", "--format=%(refname)%00%(contents)%00", _REFS)
        fields = listing.decode("utf-8", "replace").split("\0")
        pairs = zip(fields[::2], fields[1::2], strict=False)
        named = {ref.strip().removeprefix(_REFS): text for ref, text in pairs}
        return {session: text for session, text in named.items() if _SESSION.fullmatch(session)}

    def save(self, session: str, journal: str, blobs: Iterable[str]) -> None:
        """Replace a session's journal (ASCII text), keeping exactly the blobs it names."""
        entries = "".join(f"100644 blob {blob}\t{blob}\0" for blob in sorted(set(blobs)))
        tree = self._git("mktree", "-z", stdin=entries.encode()).decode().strip()
        commit = self._git("commit-tree", tree, stdin=journal.encode("ascii")).decode().strip()
        self._git("update-ref", "--no-deref", _REFS + session, commit)

    def drop(self, session: str) -> bool:
        """Forget a whole session, unless a process uses it."""
        descriptor = self.claim(session)
        if descriptor is None:
            return False
        try:
            self._git("update-ref", "--no-deref", "-d", _REFS + session)
            (self._folder / f"{session}.session").unlink(missing_ok=True)
        finally:
            os.close(descriptor)
        return True

    def forget_claims(self, sessions: Container[str]) -> None:
        """Remove the claim files of processes that ended without a journal among `sessions`."""
        for file in self._folder.glob("*.session"):
            if file.stem in sessions or (descriptor := self.claim(file.stem)) is None:
                continue
            file.unlink(missing_ok=True)
            os.close(descriptor)

    def prune(self) -> None:
        """Delete what no journal names any more."""
        self._git("prune", "--expire=now")

    def loose_objects(self) -> int:
        """How many objects lie in the store."""
        return int(self._git("count-objects").split()[0])

    def _git(self, *arguments: str, stdin: bytes = b"") -> bytes:
        try:
            # Importing GitPython runs git, so it waits until git is known to be there.
            from git import Git
            from git.exc import GitCommandError
        except ImportError as error:
            raise SnapshotsUnavailable(
                "Changes cannot be undone here.",
                "The program git does not run.",
                "Check that `git version` works.",
            ) from error
        with tempfile.TemporaryFile() as source:
            source.write(stdin)
            source.seek(0)
            try:
                return Git(str(self._folder)).execute(
                    [*self._command, *arguments],
                    istream=source,
                    stdout_as_string=False,
                    strip_newline_in_stdout=False,
                    start_new_session=True,
                )
            except GitCommandError as error:
                raise SnapshotError(
                    "A snapshot could not be stored or read.",
                    f"git {arguments[0]} failed: {str(error.stderr).strip() or error.status}.",
                    f"Check that the disk is not full and that {self._folder} is writable.",
                ) from error
