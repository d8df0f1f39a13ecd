"""Whether a command changed what steers git, the editor or the shell, where that could not be kept from it.

What exists when a shell starts is guarded, if the kind of isolation can. A file that appears later, or any
with Landlock, can only be noticed, and is told at once.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from sandbox.isolation.git_folders import git_folders
from sandbox.isolation.guarded import STEERING
from sandbox.refusals import shown

State = dict[str, tuple[int, ...]]
_OF_GIT = ("config", "config.worktree", "commondir", "hooks")
_MOST = 300
_MOST_NAMED = 5


def steering(workspace: Path) -> State:
    """What is there now, by path; a fingerprint of each that any change alters."""
    found: State = {}
    repository = git_folders(workspace)
    places = [workspace / name for name in STEERING.split()]
    places += [folder / name for folder in repository.own for name in _OF_GIT]
    for path in _files(places):
        try:
            facts = os.lstat(path)
        except OSError:
            continue
        found[str(path)] = (facts.st_mode, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)
        if len(found) >= _MOST:
            break
    return found


def changed(before: State, after: State, workspace: Path) -> str:
    """A sentence about what is new or different, or "". Settings of a repository just made do not count."""
    is_new = not any("/.git/" in path for path in before)
    names = [
        os.path.relpath(path, workspace)
        for path in sorted(after)
        if before.get(path) != after[path] and not (is_new and path.endswith("/.git/config"))
    ]
    if not names:
        return ""
    listed = ", ".join(shown(name) for name in names[:_MOST_NAMED])
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    what = "This changed what steers git, the editor or the shell"
    return f"[{what}: {listed}{more}. Look at it before it is used.]"


def _files(places: list[Path]) -> Iterator[Path]:
    """Those places, and what is in them where they are folders; the samples of hooks do nothing."""
    waiting = places
    while waiting:
        path = waiting.pop()
        try:
            inside = list(path.iterdir()) if path.is_dir() and not path.is_symlink() else None
        except OSError:
            inside = None
        if inside is None:
            yield path
        else:
            waiting.extend(entry for entry in inside if not entry.name.endswith(".sample"))
