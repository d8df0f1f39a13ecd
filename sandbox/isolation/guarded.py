"""What in the workspace a command may not change: it would steer git, the editor or the shell later."""

from collections.abc import Iterator
from pathlib import Path

STEERING = """
.glimmer .gitconfig .gitmodules .githooks .husky .vscode .idea .devcontainer .envrc .mcp.json .bashrc
.bash_profile .bash_login .bash_logout .profile .zshrc .zshenv .zprofile .zlogin .zlogout .inputrc
"""
"""Names at the top of a workspace."""
_IN_GIT = ("hooks", "config", "config.worktree")
_MOST_MODULES = 200


def guarded(workspace: Path, repositories: tuple[Path, ...]) -> tuple[Path, ...]:
    """The existing files and folders to guard; those that a link stands for are left out.

    `repositories` are the repository folders git works with here. A missing folder for hooks is created,
    since only what exists can be guarded.
    """
    found = [path for name in STEERING.split() if _is_plain(path := workspace / name)]
    if _is_plain(link := workspace / ".git") and link.is_file():
        found.append(link)
    for folder in repositories:
        for place in (folder, *_modules(folder / "modules")):
            if (place / "HEAD").is_file() and not (place / "commondir").exists():
                _make(place / "hooks")
            found += [path for name in _IN_GIT if _is_plain(path := place / name)]
    return tuple(found)


def _modules(folder: Path) -> Iterator[Path]:
    """The repository folders of submodules, which git keeps here by name; a name may hold slashes."""
    waiting = [folder]
    seen = 0
    while waiting and seen < _MOST_MODULES:
        place = waiting.pop()
        if not _is_plain(place) or not place.is_dir():
            continue
        seen += 1
        if (place / "HEAD").is_file():
            yield place
            waiting.append(place / "modules")
        else:
            waiting.extend(place.iterdir())


def _make(folder: Path) -> None:
    try:
        folder.mkdir(exist_ok=True)
    except OSError:
        return


def _is_plain(path: Path) -> bool:
    return path.exists() and not path.is_symlink()
