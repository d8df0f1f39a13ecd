"""What of the file system a command sees. Each kind of isolation enforces this its own way."""

import os
import pwd
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from sandbox.isolation.git_folders import git_folders
from sandbox.isolation.guarded import guarded
from sandbox.isolation.tool_folders import CACHES, tool_folders

# Homes, other people's too; what runs (sockets of services lie there); other disks; kernel images.
_HIDDEN_NAMES = "home root Users run var tmp mnt media proc dev boot lost+found"
_HIDDEN = frozenset(_HIDDEN_NAMES.split())
_SHOWN_OF_VAR = "lib/dpkg lib/rpm lib/pacman lib/texmf lib/ghc lib/alternatives cache/fontconfig"
_SECRETS_OF_ETC = """
shadow shadow- gshadow gshadow- sudoers sudoers.d ssh/ssh_host_*_key ssl/private NetworkManager wireguard
openvpn ppp krb5.keytab security/opasswd docker kubernetes
"""
_LINKS_OF_RUN = ("current-system", "opengl-driver")


@dataclass(frozen=True, slots=True)
class View:
    """A command's file system. Nothing exists for it beyond what this names.

    `system` are folders shown read-only, `readable` the same within otherwise hidden places, `hidden` files
    and folders within `system` that look empty, `writable` the workspace and its repository's folders,
    `guarded` what stays read-only within those. `home` is where HOME is. All are absolute; all but `home`
    exist.
    """

    workspace: Path
    home: Path
    system: tuple[Path, ...]
    readable: tuple[Path, ...]
    hidden: tuple[Path, ...]
    writable: tuple[Path, ...]
    guarded: tuple[Path, ...]


class NoView(Exception):
    """The workspace cannot be told apart from what must be hidden; the text says why, for the person."""


def look(workspace: Path, env: Mapping[str, str], *, network: bool, own: Path | None = None) -> View:
    """The view of a command in `workspace`, a resolved folder. Raises NoView.

    With `network`, how names are looked up is visible, and downloads from before are not: what is downloaded
    goes to the command's own home. `own` is that home's place on disk; a cache that has content there takes
    the place of the person's.
    """
    homes = home_folders(env)
    for home in homes:
        if home.is_relative_to(workspace):
            where = "the home folder" if home == workspace else "a folder that holds the home folder"
            raise NoView(f"Commands are not isolated: the project is {where}, with everything private in it.")
    repository = git_folders(workspace)
    writable = (workspace, *repository.own)
    shown = [*tool_folders(homes, env)]
    if not network:
        mine = {name for name in CACHES if own is not None and filled(own / name)}
        shown += [home / name for home in homes for name in CACHES if name not in mine]
    if repository.above and not any(home.is_relative_to(repository.above) for home in homes):
        shown.append(repository.above)
    shown += [Path("/var") / name for name in _SHOWN_OF_VAR.split()]
    shown += [Path("/run") / name for name in _LINKS_OF_RUN]
    if network:
        shown.append(Path(os.path.realpath("/etc/resolv.conf")))
    secrets = [path for name in _SECRETS_OF_ETC.split() for path in Path("/etc").glob(name)]
    return View(
        workspace,
        homes[0],
        tuple(_system()),
        tuple(_needed(shown, workspace, homes)),
        (*secrets, *(home for home in homes if not _is_hidden(home))),
        writable,
        guarded(workspace, repository.own),
    )


def home_folders(env: Mapping[str, str]) -> tuple[Path, ...]:
    """The person's home as the environment names it, and as the system does."""
    named = env.get("HOME", "")
    try:
        known = pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        known = ""
    found = [Path(os.path.realpath(path)) for path in (named, known) if os.path.isabs(path)]
    usable = [path for path in dict.fromkeys(found) if path != Path("/") and path.is_dir()]
    return tuple(usable) or (Path("/root"),)


def _system() -> Iterator[Path]:
    for entry in sorted(Path("/").iterdir()):
        if entry.name not in _HIDDEN and (entry.is_symlink() or entry.is_dir()):
            yield entry


def _needed(paths: list[Path], workspace: Path, homes: tuple[Path, ...]) -> Iterator[Path]:
    """Those that exist in hidden places and outside the workspace; nothing is shown twice."""
    for path in dict.fromkeys(paths):
        hidden = _is_hidden(path) or any(path.is_relative_to(home) for home in homes)
        if hidden and path.exists() and not path.is_relative_to(workspace):
            yield path


def _is_hidden(path: Path) -> bool:
    return len(path.parts) > 1 and path.parts[1] in _HIDDEN


def filled(folder: Path) -> bool:
    """Whether there is a folder with something in it."""
    return folder.is_dir() and any(folder.iterdir())
