"""Pictures shown outside the terminal, by the system's own viewer."""

import os
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path

from tools.pictures.desktop import Desktop, desktop_environment, desktops
from tools.programs import find_outside

SECONDS = 3.0
"""How long an opener may take to fail; a viewer that is still there then is taken for open."""

_OPENERS: dict[Desktop, tuple[str, ...]] = {
    "macos": ("open",),
    "wsl": ("wslview",),
    "wayland": ("xdg-open",),
    "x11": ("xdg-open",),
}


class Viewer:
    """Opens pictures from files that their owner alone can read. They lie there until `close`."""

    def __init__(self, root: Path) -> None:
        """Programs that lie in `root`, the project, are passed over."""
        self._root = root
        self._folder: Path | None = None
        self._count = 0

    def show(self, data: bytes) -> str:
        """Open the picture; "" when that went well, else a sentence that says what to do. Blocks."""
        try:
            path = self._written(data)
        except OSError as problem:
            return f"The picture cannot be written for the viewer: {problem.strerror or problem}."
        lies = f"It lies in {path} until you leave Glimmer."
        found = desktops(os.environ)
        if found[0] == "ssh":
            return f"Glimmer runs over SSH, so no viewer can be opened here. {lies}"
        for desktop in found:
            for name in _OPENERS.get(desktop, ()):
                if (program := find_outside(name, self._root)) is not None and _opened(program, path):
                    return ""
        return f"No viewer could be opened. {lies}"

    def close(self) -> None:
        """Remove the files."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _written(self, data: bytes) -> Path:
        """The picture as a new file, in a folder that others cannot look into."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="glimmer-pictures-"))
        self._count += 1
        ending = "jpg" if data.startswith(b"\xff\xd8") else "png"
        path = self._folder / f"picture-{self._count}.{ending}"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        return path


def _opened(program: str, path: Path) -> bool:
    """Whether the program took the file. One that stays is waited for in the background."""
    try:
        process = subprocess.Popen(
            (program, str(path)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=desktop_environment(),
            cwd=path.parent,
            start_new_session=True,
        )
    except OSError:
        return False
    try:
        return process.wait(SECONDS) == 0
    except subprocess.TimeoutExpired:
        threading.Thread(target=process.wait, name="viewer", daemon=True).start()
        return True
