"""A walk over the project that respects .gitignore, for machines without ripgrep."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tools.globs import compile_glob

LARGEST_IGNORE_FILE = 1 << 20


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of a .gitignore. `glob` is seen from the folder `base` (with a slash at its end, or "")."""

    base: str
    glob: str
    negated: bool
    folders_only: bool
    anchored: bool

    def fits(self, path: str, is_folder: bool) -> bool:
        if self.folders_only and not is_folder:
            return False
        if not path.startswith(self.base):
            return False
        return compile_glob(self.glob)(
            path.removeprefix(self.base) if self.anchored else path.rpartition("/")[2]
        )


def parse_rules(text: str, base: str) -> list[Rule]:
    """The rules of an ignore file that lies in `base`."""
    rules: list[Rule] = []
    for line in text.splitlines():
        glob = line.rstrip(" ") if not line.endswith("\\ ") else line
        if not glob or glob.startswith("#"):
            continue
        negated = glob.startswith("!")
        glob = glob[1:] if negated else glob
        folders_only = glob.endswith("/")
        glob = glob.rstrip("/")
        anchored = "/" in glob
        glob = glob.removeprefix("/")
        if glob:
            rules.append(Rule(base, glob, negated, folders_only, anchored))
    return rules


def ignored(path: str, is_folder: bool, rules: list[Rule]) -> bool:
    """Whether the last rule that fits ignores the path."""
    for rule in reversed(rules):
        if rule.fits(path, is_folder):
            return not rule.negated
    return False


def walk_files(root: Path, folder: PurePosixPath) -> Iterator[str]:
    """Regular files beneath `folder`, sorted folder by folder, links not followed."""
    base = "" if folder == PurePosixPath() else f"{folder}/"
    rules = _rules_of(root / ".git" / "info" / "exclude", "")
    for parent in [*reversed(folder.parents)]:
        parent_base = "" if parent == PurePosixPath() else f"{parent}/"
        rules = rules + _rules_of(root / parent / ".gitignore", parent_base)
    yield from _walk(root, base, rules)


def _walk(root: Path, base: str, rules: list[Rule]) -> Iterator[str]:
    pending: list[tuple[str, list[Rule]] | str] = [(base, rules)]
    while pending:
        place = pending.pop()
        if isinstance(place, str):
            yield place
            continue
        folder, known = place
        try:
            entries = sorted(os.scandir(root / folder), key=lambda entry: entry.name, reverse=True)
        except OSError:
            continue
        known = known + _rules_of(root / folder / ".gitignore", folder)
        for entry in entries:
            path = folder + entry.name
            is_folder = entry.is_dir(follow_symlinks=False)
            if entry.name == ".git" or ignored(path, is_folder, known):
                continue
            if is_folder:
                pending.append((path + "/", known))
            elif entry.is_file(follow_symlinks=False):
                pending.append(path)


def _rules_of(file: Path, base: str) -> list[Rule]:
    try:
        if not file.is_file():
            return []
        with file.open("rb") as stream:
            text = stream.read(LARGEST_IGNORE_FILE).decode("utf-8", "replace")
    except OSError:
        return []
    return parse_rules(text, base)
