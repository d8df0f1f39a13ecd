"""A shell's own folder: its channel to bash, and the commands' home and temporary folder."""

import os
import shutil
import stat
import tempfile
import weakref
from pathlib import Path

from sandbox.isolation.view import View


class PrivateFolder:
    """A fresh folder of the person's alone, with `home` and `tmp` in it; gone when removed or forgotten."""

    def __init__(self) -> None:
        # Links on the way are followed now, since the folder is named the same inside and outside.
        self.path = Path(os.path.realpath(tempfile.mkdtemp(prefix="glimmer-")))
        self.remove = weakref.finalize(self, _remove, str(self.path))
        for name in ("home", "tmp"):
            (self.path / name).mkdir(mode=0o700)


def clear_the_way(view: View, home: Path) -> None:
    """Take links and files off the way to what will be shown below the commands' own home.

    A command may have put them there, to lead astray whoever makes the folders to show things in.
    """
    for path in view.readable:
        if not path.is_relative_to(view.home):
            continue
        place = home
        for part in path.relative_to(view.home).parts:
            place = place / part
            if place.is_symlink() or place.is_file():
                place.unlink()


def _remove(folder: str) -> None:
    """Remove all of it, folders that a command made unwritable too."""
    for place, folders, _ in os.walk(folder):
        for name in folders:
            path = os.path.join(place, name)
            try:
                if stat.S_ISDIR(os.lstat(path).st_mode):
                    os.chmod(path, 0o700)
            except OSError:
                continue
    shutil.rmtree(folder, ignore_errors=True)
