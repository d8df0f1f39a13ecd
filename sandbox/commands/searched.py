"""What a search through whole folders would read: whether there is a secret among it."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

from sandbox.commands.places import Places
from sandbox.commands.words import Doubt, Word
from sandbox.sensitive import looks_secret

_MOST_ENTRIES = 50_000
_LARGEST_LIST = 1 << 18
_SKIPPED = frozenset({"node_modules", "site-packages", ".venv", "venv", "__pycache__", ".tox"})
_IGNORE_FILES = frozenset({".gitignore", ".ignore", ".rgignore"})
_GIT_SETTINGS = frozenset({"config", "config.worktree"})
_PLAIN_SETTING = re.compile(
    r"(?:[#;].*"
    r"|\[(?:core|user|init|pull|push|fetch|(?:remote|branch|submodule) \"[\w./+-]*\")\]"
    r"|(?:url|pushurl)\s*=\s*(?:(?:https?|git|ssh)://(?:git@)?|git@|\.{0,2}/)[\w.~-]*(?:[:/][\w.~-]*)*"
    r"|(?:repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|name"
    r"|email|fetch|merge|remote|rebase|active|defaultbranch|autocrlf|eol|ff|prune|worktree|gh-resolved"
    r"|vscode-merge-base)\s*=[\w\s./:*+@<>-]*)?",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Search:
    """How a program searches below the folders it is given.

    `hidden`: names that begin with a dot are searched. `follows`: links met on the way are followed.
    `skipped`: folders of these names are left out, because the command says so.
    """

    hidden: bool
    follows: bool = False
    skipped: frozenset[str] = frozenset()


@dataclass(slots=True)
class _Seen:
    """What was met so far, in all folders of one search. `lifts`: patterns that ignore files let in again."""

    count: int = 0
    lifts: list[str] = field(default_factory=list[str])


def searched_doubt(places: Places, starts: list[Word], span: tuple[int, int], search: Search) -> Doubt | None:
    """Why a search asks: a folder holds a secret or cannot be looked through. Without a root it does not."""
    if places.root is None:
        return None
    top = os.path.realpath(places.root)
    seen = _Seen()
    for folder in sorted(places.folders):
        if not search.hidden:
            seen.lifts.extend(_lifts_above(top, folder))
        for start, where in _expanded(places, starts or [Word(".", span)]):
            real = os.path.realpath(os.path.join(top, folder, start))
            if (doubt := _walked_doubt(places, top, real, search, seen, where)) is not None:
                return doubt
    return None


def _expanded(places: Places, starts: list[Word]) -> Iterator[tuple[str, tuple[int, int]]]:
    for word in starts:
        for text in (places.matches(word) or []) if word.glob else [word.text]:
            yield text, word.span


def _walked_doubt(
    places: Places, top: str, start: str, search: Search, seen: _Seen, span: tuple[int, int]
) -> Doubt | None:
    for base, folders, files in os.walk(start):
        inside = os.path.relpath(base, top)
        if not search.hidden:
            for name in _IGNORE_FILES.intersection(files):
                seen.lifts.extend(_lifts(base, name))
        in_git = ".git" in inside.split("/")
        folders[:] = [name for name in folders if _entered(name, search, seen, in_git)]
        names = [*folders, *(name for name in files if _shown(name, search, seen))]
        seen.count += len(names)
        if seen.count > _MOST_ENTRIES:
            return Doubt("searches too many files to judge", span)
        for name in names:
            path = os.path.normpath(os.path.join(inside, name))
            if _is_secret(top, path):
                return Doubt(f"searches a folder that holds {path}", span, True)
            if search.follows and os.path.islink(os.path.join(base, name)):
                return Doubt(f"searches a folder that holds the link {path}", span)
    return None


def _shown(name: str, search: Search, seen: _Seen) -> bool:
    return search.hidden or not name.startswith(".") or any(fnmatch(name, lift) for lift in seen.lifts)


def _entered(name: str, search: Search, seen: _Seen, in_git: bool) -> bool:
    if name in _SKIPPED or name in search.skipped or (in_git and name == "objects"):
        return False
    return _shown(name, search, seen)


def _is_secret(top: str, path: str) -> bool:
    """By its name; git's own settings by what they hold, as nearly every project has them."""
    parts = path.split("/")
    if ".git" not in parts[:-1] or parts[-1] not in _GIT_SETTINGS or any(map(looks_secret, parts)):
        return looks_secret(path)
    try:
        with open(os.path.join(top, path), "rb") as file:
            data = file.read(_LARGEST_LIST + 1)
        lines = data.decode("utf-8").splitlines()
    except (OSError, ValueError):
        return True
    return len(data) > _LARGEST_LIST or not all(_PLAIN_SETTING.fullmatch(line.strip()) for line in lines)


def _lifts_above(top: str, folder: str) -> Iterator[str]:
    """The patterns of the ignore files above a folder, up to the project's own."""
    place = Path(os.path.realpath(os.path.join(top, folder)))
    for above in (place, *place.parents):
        if not above.is_relative_to(top):
            return
        for name in sorted(_IGNORE_FILES):
            yield from _lifts(str(above), name)
        yield from _lifts(str(above), ".git/info/exclude")


def _lifts(base: str, name: str) -> Iterator[str]:
    """What an ignore file lets in again: a program then searches it although its name begins with a dot."""
    path = os.path.join(base, name)
    if not os.path.isfile(path):
        return
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read(_LARGEST_LIST)
    except OSError:
        yield "*"
        return
    for line in text.splitlines():
        if line.startswith("!"):
            for part in line[1:].replace("\\", "").strip().strip("/").split("/"):
                yield re.sub(r"\[.*\]", "*", part)
