"""The command line that runs a program in bubblewrap with a given view of the file system."""

import os
from collections.abc import Iterator
from pathlib import Path

from sandbox.isolation.view import View

_ALWAYS = (
    "--unshare-user",
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-cgroup-try",
    "--die-with-parent",
    "--cap-drop",
    "ALL",
)
FILTER_DESCRIPTOR = 9
"""Where bubblewrap finds the filter of system calls."""


def bubblewrap(program: str, view: View, private: Path, *, network: bool) -> list[str]:
    """The words before the confined program's own. `program` is bwrap's path.

    `private` is a folder of this shell's: `home` and `tmp` in it become HOME and /tmp; the rest of it is
    visible where it is, read-only.
    """
    words = [program, *_ALWAYS, "--seccomp", str(FILTER_DESCRIPTOR)]
    if not network:
        words.append("--unshare-net")
    for path in view.system:
        words += _shown(path)
    words += ["--proc", "/proc", "--dev", "/dev"]
    words += ["--symlink", "/run", "/var/run", "--symlink", "/tmp", "/var/tmp"]
    for _, mount in sorted(_mounts(view, private), key=lambda found: len(found[0].parts)):
        words += mount
    return [*words, "--remount-ro", "/", "--"]


def _mounts(view: View, private: Path) -> Iterator[tuple[Path, list[str]]]:
    """What lies below the system's folders: each place and its words. Outer places must come before inner."""
    yield Path("/tmp"), ["--bind", str(private / "tmp"), "/tmp"]
    for path in view.hidden:
        yield path, ["--tmpfs", str(path)] if path.is_dir() else ["--ro-bind", "/dev/null", str(path)]
    yield view.home, ["--bind", str(private / "home"), str(view.home)]
    for path in view.readable:
        yield path, _shown(path)
    yield private, _bind("--ro-bind", private)
    for path in view.writable:
        yield path, _bind("--bind", path)
    for path in view.guarded:
        yield path, _bind("--ro-bind", path)


def _shown(path: Path) -> list[str]:
    return ["--symlink", os.readlink(path), str(path)] if path.is_symlink() else _bind("--ro-bind", path)


def _bind(kind: str, path: Path) -> list[str]:
    return [kind, str(path), str(path)]
