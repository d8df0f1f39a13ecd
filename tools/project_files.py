"""The files of the project, as .gitignore leaves them: by ripgrep, or by a walk in Python without it."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tools.ripgrep import Outcome, find_ripgrep, records, ripgrep
from tools.walk import walk_files

MOST_FILES = 200_000
SECONDS = 20.0
LONGEST_PATH = 8192
ROOT = PurePosixPath()


@dataclass(frozen=True, slots=True)
class Files:
    """Sorted workspace-relative paths. `complete` is False when a bound was reached."""

    paths: tuple[str, ...]
    complete: bool = True


def order(path: str) -> list[str]:
    """The sorting key that ripgrep uses: folder by folder, not character by character."""
    return path.split("/")


def beneath(folder: PurePosixPath) -> str:
    """A workspace path as an argument for rg, which starts its own paths with it."""
    return f"./{folder}" if folder.parts else "./"


def project_files(
    root: Path,
    folder: PurePosixPath = ROOT,
    fits: Callable[[str], bool] = lambda _path: True,
    most: int = MOST_FILES,
) -> Files:
    """The regular files beneath `folder` that pass `fits`, hidden ones too, `.git` never."""
    program = find_ripgrep(root)
    found: list[str] = []
    complete = True
    if program is None:
        for path in walk_files(root, folder):
            if fits(path):
                found.append(path)
            if len(found) >= most:
                complete = False
                break
    else:
        outcome = Outcome()
        arguments = ["--files", "--null", "--", beneath(folder)]
        with ripgrep(program, arguments, root, SECONDS, outcome) as chunks:
            for record, _length in records(chunks, b"\0", LONGEST_PATH):
                path = os.fsdecode(record.removeprefix(b"./"))
                if fits(path):
                    found.append(path)
                if len(found) >= most:
                    complete = False
                    break
        complete = complete and not outcome.timed_out
    return Files(tuple(sorted(found, key=order)), complete)
