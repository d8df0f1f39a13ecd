"""Where a command's paths lead: inside the project or not, to a secret or not, through a link or not."""

import glob
import os
import posixpath
import re
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path, PurePosixPath

from sandbox.commands.words import Doubt, Word, names
from sandbox.sensitive import looks_secret

_MOST_MATCHES = 5_000
_HARMLESS = frozenset({"", "-", "/dev/null"})
_SAMPLES = names(
    ".env .env.local id_rsa id_ed25519 server.pem server.key .netrc .npmrc credentials credentials.json"
    " secrets.json secrets.yml .ssh .aws .gnupg"
)


@dataclass(frozen=True, slots=True)
class Places:
    """The folders a command may be in when it runs, each relative to the project ("" is its top).

    There is more than one after `cd src; ...`, which goes on when `cd` fails. `root` is the project's folder,
    or None when only names can be judged and nothing on disk.
    """

    root: Path | None
    folders: frozenset[str] = frozenset({""})

    def entered(self, word: Word) -> "Places":
        """The same after a `cd` that worked."""
        return replace(self, folders=frozenset(_joined(folder, word.text) for folder in self.folders))

    def merged(self, other: "Places") -> "Places":
        return replace(self, folders=self.folders | other.folders)

    def matches(self, word: Word) -> list[str] | None:
        """What a wildcard may stand for, or None when that cannot be known."""
        if self.root is None:
            return None
        found: list[str] = []
        pattern = re.sub(r"\[[^/]*\]", "*", word.text.replace("**", "*"))
        for folder in self.folders:
            hits = glob.iglob(pattern, root_dir=self.root / folder)
            found.extend(islice(hits, _MOST_MATCHES + 1 - len(found)))
            if len(found) > _MOST_MATCHES:
                return None
        return found

    def doubt(self, word: Word) -> Doubt | None:
        """Why a word cannot be read as a path, if it cannot."""
        if word.home:
            return Doubt("names a path outside the project", word.span, looks_secret(word.text))
        doubt = self.path_doubt(word.text, word.span)
        if doubt is None and word.glob:
            return _upward_doubt(word) or self._wild_doubt(word)
        return doubt

    def _wild_doubt(self, word: Word) -> Doubt | None:
        matches = self.matches(word)
        if matches is None and self.root is not None:
            return Doubt("its wildcard matches too many files to judge", word.span)
        if matches is None:
            last = PurePosixPath(word.text).name
            risky = any(_may_match(sample, last) for sample in _SAMPLES)
            return (
                Doubt("its wildcard may match a file that looks secret", word.span, True) if risky else None
            )
        doubts = (self.path_doubt(match, word.span) for match in matches)
        return next((doubt for doubt in doubts if doubt is not None), None)

    def path_doubt(self, path: str, span: tuple[int, int]) -> Doubt | None:
        """Why a path is not one to read without asking."""
        if path in _HARMLESS:
            return None
        if looks_secret(path):
            return Doubt("looks like a secret", span, True)
        if any(self._leaves(folder, path) for folder in self.folders):
            return Doubt("names a path outside the project", span)
        return None if self.root is None else self._link_doubt(self.root, path, span)

    def _link_doubt(self, root: Path, path: str, span: tuple[int, int]) -> Doubt | None:
        top = os.path.realpath(root)
        for folder in self.folders:
            real = _real(root, folder, path)
            if not _below(real, top):
                return Doubt("leads outside the project through a link", span)
            if looks_secret(os.path.relpath(real, top)):
                return Doubt("leads to what looks like a secret", span, True)
        return None

    def _leaves(self, folder: str, path: str) -> bool:
        if path.startswith("/"):
            if self.root is None or self.root == Path("/"):
                return True
            return not _below(posixpath.normpath(path), posixpath.normpath(self.root.as_posix()))
        return _joined(folder, path).split("/")[0] == ".."


def places_in(root: Path | None, cwd: Path | None) -> Places | None:
    """Where a command starts, or None when that is outside the project."""
    if root is None:
        return Places(None)
    top = root.absolute()
    if cwd is None:
        return Places(top)
    real = os.path.realpath(cwd)
    if not _below(real, os.path.realpath(top)):
        return None
    return Places(top, frozenset({_joined("", os.path.relpath(real, os.path.realpath(top)))}))


def _real(root: Path, folder: str, path: str) -> str:
    try:
        return os.path.realpath(os.path.join(root, folder, path))
    except (OSError, ValueError):
        return "/"


def _joined(folder: str, path: str) -> str:
    joined = posixpath.normpath(posixpath.join(folder, path))
    return "" if joined == "." else joined


def _below(path: str, top: str) -> bool:
    return path == top or path.startswith(top.rstrip("/") + "/")


def _upward_doubt(word: Word) -> Doubt | None:
    """Before bash 5.2 `.*` and the like stand for `..` too, which looking at the disk never shows."""
    for part in word.text.split("/"):
        if part.startswith(".") and part != ".." and fnmatchcase("..", re.sub(r"\[.*\]", "*", part)):
            return Doubt("its wildcard may match the folder above", word.span)
    return None


def _may_match(name: str, pattern: str) -> bool:
    if name.startswith(".") and not pattern.startswith("."):
        return False
    parts = re.split(r"(\*|\?|\[[^\]]*\]?)", pattern)
    expression = "".join(
        ".*" if part == "*" or part.startswith("[") else "." if part == "?" else re.escape(part)
        for part in parts
    )
    return re.fullmatch(expression, name) is not None
