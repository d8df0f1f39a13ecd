"""Programs a tool may start on its own account: never one that the project put on the PATH."""

import os
import shutil
from pathlib import Path


def is_outside(program: str, root: Path) -> bool:
    """Whether a program is named by an absolute path to a folder that is not the project's.

    The folder counts, links followed: the Python of a virtual environment links to one outside.
    """
    if not os.path.isabs(program):
        return False
    return not Path(os.path.realpath(os.path.dirname(program))).is_relative_to(os.path.realpath(root))


def find_outside(name: str, root: Path) -> str | None:
    """The first program of this name on the PATH that the project did not put there."""
    for folder in os.get_exec_path():
        if is_outside(os.path.join(folder, name), root) and (found := shutil.which(name, path=folder)):
            return found
    return None
