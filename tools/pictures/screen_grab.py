"""A picture of the person's whole screen, with whatever program the desktop has for it."""

import os
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path

from tools.pictures.decode import Decoded, decode_bytes, decode_file
from tools.pictures.desktop import Desktop, desktops
from tools.pictures.errors import PictureError
from tools.pictures.program import run_program
from tools.programs import find_outside

SECONDS = 20.0
_MOST = 256 << 20
_FILE = "<file>"


@dataclass(frozen=True, slots=True)
class _Way:
    """A program and its arguments; it prints a picture, or writes it where `_FILE` stands."""

    program: str
    arguments: tuple[str, ...]


_WAYS: dict[Desktop, tuple[_Way, ...]] = {
    "macos": (_Way("screencapture", ("-x", "-t", "png", _FILE)),),
    "wayland": (
        _Way("grim", ("-",)),
        _Way("gnome-screenshot", ("-f", _FILE)),
        _Way("spectacle", ("-b", "-n", "-f", "-o", _FILE)),
    ),
    "x11": (
        _Way("maim", ()),
        _Way("scrot", ("--overwrite", _FILE)),
        _Way("import", ("-silent", "-window", "root", "png:-")),
        _Way("gnome-screenshot", ("-f", _FILE)),
        _Way("spectacle", ("-b", "-n", "-f", "-o", _FILE)),
    ),
}
_INSTALL: dict[Desktop, str] = {
    "macos": "Allow the terminal to record the screen, in System Settings, Privacy and Security.",
    "wayland": "Install grim (wlroots) or gnome-screenshot (GNOME).",
    "x11": "Install scrot, maim or ImageMagick.",
}
_WITHOUT: dict[Desktop, tuple[str, str]] = {
    "ssh": (
        "Glimmer runs over SSH, and the screen is on the other machine.",
        "Take it there, copy it with scp, and name the file with @path.",
    ),
    "wsl": (
        "In WSL the screen belongs to Windows.",
        "Take it with Win+Shift+S and paste it, or name its file with @path.",
    ),
    "none": ("There is no desktop: neither DISPLAY nor WAYLAND_DISPLAY is set.", "Start one first."),
}


@dataclass(frozen=True, slots=True)
class Grab:
    """The screen, and the program that showed it."""

    decoded: Decoded
    program: str


def grab_desktop(root: Path, cancelled: threading.Event | None = None) -> Grab:
    """Take the picture; programs that the project `root` brings are passed over. Blocks.

    Where several programs are there, each is tried until one succeeds. Raises PictureError.
    """
    known = desktops(os.environ)
    found: dict[Desktop, tuple[_Way, ...]] = {
        desktop: ways for desktop in known if (ways := _WAYS.get(desktop))
    }
    if not found:
        why, todo = _WITHOUT[known[0]]
        raise PictureError("No picture of the screen can be taken.", why, todo)
    failed: list[str] = []
    for way in dict.fromkeys(way for ways in found.values() for way in ways):
        if (path := find_outside(way.program, root)) is None:
            continue
        try:
            return Grab(_taken(path, way, cancelled), way.program)
        except PictureError as fault:
            if cancelled is not None and cancelled.is_set():
                raise
            failed.append(f"{way.program}: {fault}")
    why = " ".join(failed) or "No program for it is installed."
    raise PictureError("No picture of the screen could be taken.", why, _INSTALL[next(iter(found))])


def _taken(path: str, way: _Way, cancelled: threading.Event | None) -> Decoded:
    with tempfile.TemporaryDirectory(prefix="glimmer-") as folder:
        file = Path(folder, "screen.png")
        arguments = [str(file) if word == _FILE else word for word in way.arguments]
        printed = run_program((path, *arguments), SECONDS, _MOST, cancelled)
        if printed.status != 0:
            raise PictureError(f"It ended with status {printed.status}.", printed.complaint)
        if _FILE in way.arguments:
            return decode_file(file)
        return decode_bytes(printed.output, "Its picture")
