"""Where the repository of a workspace lies, when that is not simply the `.git` folder in it."""

import os
from dataclasses import dataclass
from pathlib import Path

_LONGEST = 4096


@dataclass(frozen=True, slots=True)
class GitFolders:
    """`own`: repository folders that git must write, the first one with the settings and hooks.

    `above`: the work tree that the workspace is a folder of, None when it is none.
    """

    own: tuple[Path, ...] = ()
    above: Path | None = None


def git_folders(workspace: Path) -> GitFolders:
    """Look for the repository. A `.git` file is believed only when the folder it names points back."""
    here = workspace / ".git"
    if here.is_symlink():
        return GitFolders()
    if here.is_dir():
        return GitFolders((here,))
    if here.is_file():
        return GitFolders(_linked(workspace, here))
    for folder in workspace.parents:
        if (folder / ".git").exists():
            return GitFolders(above=folder)
    return GitFolders()


def _linked(workspace: Path, file: Path) -> tuple[Path, ...]:
    """A further work tree: its own folder inside the repository's, and the repository's."""
    named = _line(file).removeprefix("gitdir: ")
    private = Path(os.path.realpath(workspace / named)) if named else workspace
    if not (back := _line(private / "gitdir")) or Path(os.path.realpath(back)) != file:
        return ()
    common = Path(os.path.realpath(private / _line(private / "commondir")))
    is_repository = (common / "objects").is_dir() and (common / "HEAD").is_file()
    if not is_repository or not private.is_relative_to(common / "worktrees"):
        return ()
    return (common, private)


def _line(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            text = os.fsdecode(stream.read(_LONGEST)).strip("\n")
    except OSError:
        return ""
    return "" if "\0" in text else text
