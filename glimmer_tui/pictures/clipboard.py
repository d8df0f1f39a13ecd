"""What lies in the clipboard: pictures, copied picture files, or text.

A terminal only ever pastes text, so pictures are asked of the desktop by a small program of its own.
"""

import asyncio
import base64
import binascii
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from glimmer_tui.pictures.attached import Attached, PictureError, picture_from_bytes, picture_from_file
from tools.pictures.desktop import Desktop, desktops
from tools.pictures.program import Printed, run_program
from tools.programs import find_outside

SECONDS = 10.0
MOST_BYTES = 256 << 20
MOST_TEXT = 1 << 20
NAME = "pasted picture"

_TYPES = ("image/png", "image/jpeg", "image/webp", "image/gif", "image/bmp", "image/x-bmp", "image/x-MS-bmp")
_FILES = ("text/uri-list", "x-special/gnome-copied-files")
_TEXT = ("text/plain;charset=utf-8", "UTF8_STRING", "text/plain", "STRING", "TEXT")
_INSTEAD = "Name the picture's file instead: type @path, or /image PATH."
_INSTALL: dict[Desktop, str] = {
    "wayland": f"Install wl-clipboard. {_INSTEAD}",
    "x11": f"Install xclip; xsel alone reads no pictures. {_INSTEAD}",
    "macos": f"Install pngpaste (brew install pngpaste). {_INSTEAD}",
    "wsl": f"Make Windows programs reachable from WSL. {_INSTEAD}",
}
_POWERSHELL = """\
$ErrorActionPreference = 'Stop'
[Console]::OutputEncoding = New-Object System.Text.UTF8Encoding $false
Add-Type -AssemblyName System.Windows.Forms
Add-Type -AssemblyName System.Drawing
$c = [System.Windows.Forms.Clipboard]
if ($c::ContainsImage()) {
  $m = New-Object System.IO.MemoryStream
  $c::GetImage().Save($m, [System.Drawing.Imaging.ImageFormat]::Png)
  'image'; [Convert]::ToBase64String($m.ToArray())
} elseif ($c::ContainsText()) {
  'text'; [Convert]::ToBase64String([Text.Encoding]::UTF8.GetBytes($c::GetText()))
} else { 'nothing' }
"""
_OSASCRIPT = "the clipboard as «class PNGf»"

Content = tuple[Attached, ...] | str | None


@dataclass(frozen=True, slots=True)
class Clipping:
    """Pictures, text, or None where the clipboard is empty, and the program that read it."""

    content: Content
    program: str


async def read_clipboard(root: Path | None = None) -> Clipping:
    """Read the clipboard once. Programs that lie in `root`, by default the working folder, are passed over.

    Raises PictureError, in words that also say what works instead. When it is cancelled, the program that
    reads is ended.
    """
    cancelled = threading.Event()
    try:
        return await asyncio.to_thread(_read, root or Path.cwd(), cancelled)
    except asyncio.CancelledError:
        cancelled.set()
        raise


def _read(root: Path, cancelled: threading.Event) -> Clipping:
    found = desktops(os.environ)
    fault: PictureError | None = None
    for desktop in found:
        for name, way in _WAYS.get(desktop, ()):
            if (path := find_outside(name, root)) is None:
                continue
            try:
                return Clipping(way(_Program(path, cancelled)), name)
            except _Unreachable as problem:
                fault = problem
    if fault is not None:
        raise fault
    raise _without(found[0])


def _without(desktop: Desktop) -> PictureError:
    """What is said where nothing can be asked."""
    what = "The clipboard cannot be read."
    match desktop:
        case "ssh":
            why = "Glimmer runs over SSH, and the clipboard is on the other machine."
            todo = "Copy the picture here with scp, and name it: type @path, or /image PATH."
            return PictureError(what, why, todo)
        case "none":
            why = "There is no desktop: neither DISPLAY nor WAYLAND_DISPLAY is set."
            return PictureError(what, why, _INSTEAD)
        case _:
            return PictureError(what, "No program for it is installed.", _INSTALL[desktop])


class _Unreachable(PictureError):
    """A program could not ask the desktop; another one may."""


@dataclass(frozen=True, slots=True)
class _Program:
    """A program that reads the clipboard, and the flag that ends it."""

    path: str
    cancelled: threading.Event

    def run(self, *arguments: str, most: int = MOST_TEXT) -> Printed:
        return run_program((self.path, *arguments), SECONDS, most, self.cancelled)


def _wl_paste(program: _Program) -> Content:
    listed = program.run("--list-types")
    _check_reached(listed, "Failed to connect", "wl_display", "compositor")
    return _offered(listed, lambda kind, most: program.run("--no-newline", "--type", kind, most=most))


def _xclip(program: _Program) -> Content:
    selection = ("-selection", "clipboard", "-o", "-t")
    listed = program.run(*selection, "TARGETS")
    _check_reached(listed, "open display")
    return _offered(listed, lambda kind, most: program.run(*selection, kind, most=most))


def _xsel(program: _Program) -> Content:
    """Text alone: xsel knows no other kind."""
    printed = program.run("--clipboard", "--output")
    _check_reached(printed, "open display")
    if text := printed.output.decode("utf-8", "replace"):
        return text
    why = "xsel found no text, and reads no pictures."
    raise PictureError("There may be a picture in the clipboard.", why, f"Install xclip. {_INSTEAD}")


def _pngpaste(program: _Program) -> Content:
    printed = program.run("-", most=MOST_BYTES)
    if printed.status == 0 and printed.output:
        return (picture_from_bytes(printed.output, NAME),)
    return _pbpaste()


def _osascript(program: _Program) -> Content:
    printed = program.run("-e", _OSASCRIPT, most=2 * MOST_BYTES)
    # It prints «data PNGf89504E47...».
    _, mark, rest = printed.output.partition(b"PNGf")
    if printed.status == 0 and mark:
        digits = rest.partition("»".encode())[0].strip()
        try:
            return (picture_from_bytes(binascii.unhexlify(digits), NAME),)
        except binascii.Error as fault:
            raise _garbled("osascript") from fault
    return _pbpaste()


def _pbpaste() -> Content:
    path = find_outside("pbpaste", Path("/nowhere"))
    if path is None:
        return None
    printed = run_program((path,), SECONDS, MOST_TEXT)
    return printed.output.decode("utf-8", "replace") or None


def _powershell(program: _Program) -> Content:
    encoded = base64.b64encode(_POWERSHELL.encode("utf-16-le")).decode("ascii")
    printed = program.run(
        "-NoProfile", "-NonInteractive", "-STA", "-EncodedCommand", encoded, most=2 * MOST_BYTES
    )
    kind, _, rest = printed.output.strip().partition(b"\n")
    if printed.status != 0:
        raise _Unreachable("Windows does not hand out its clipboard.", printed.complaint, _INSTEAD)
    try:
        data = base64.b64decode(rest.strip(), validate=True)
    except binascii.Error as fault:
        raise _garbled("powershell.exe") from fault
    match kind.strip():
        case b"image":
            return (picture_from_bytes(data, NAME),)
        case b"text":
            return data.decode("utf-8", "replace") or None
        case _:
            return None


_WAYS: dict[Desktop, tuple[tuple[str, Callable[[_Program], Content]], ...]] = {
    "macos": (("pngpaste", _pngpaste), ("osascript", _osascript)),
    "wsl": (("powershell.exe", _powershell),),
    "wayland": (("wl-paste", _wl_paste),),
    "x11": (("xclip", _xclip), ("xsel", _xsel)),
}


def _offered(listed: Printed, fetch: Callable[[str, int], Printed]) -> Content:
    """The best of what the clipboard offers: a picture, then copied files, then text."""
    kinds = listed.output.decode("utf-8", "replace").split() if listed.status == 0 else []
    for kind in _TYPES:
        if kind in kinds and (printed := fetch(kind, MOST_BYTES)).output:
            return (picture_from_bytes(printed.output, NAME),)
    if any(kind.startswith("image/") for kind in kinds) and not {*kinds} & {*_TEXT, *_FILES}:
        offered = ", ".join(kind for kind in kinds if kind.startswith("image/"))[:200]
        what = "The picture in the clipboard cannot be read."
        raise PictureError(what, f"It is offered as {offered} only.", "Copy it as PNG or JPEG.")
    for kind in _FILES:
        if kind in kinds and (found := _files(fetch(kind, MOST_TEXT).output)):
            return _pictures(found)
    for kind in _TEXT:
        if kind in kinds and (printed := fetch(kind, MOST_TEXT)).output:
            return printed.output.decode("utf-8", "replace")
    return None


def _files(listed: bytes) -> list[Path]:
    """The local files of a list of URLs, in which a comment or a verb may stand too."""
    urls = (urlsplit(line.strip()) for line in listed.decode("utf-8", "replace").splitlines())
    return [Path(unquote(url.path)) for url in urls if url.scheme == "file" and "\0" not in unquote(url.path)]


def _pictures(files: list[Path]) -> Content:
    return tuple(picture_from_file(path) for path in files)


def _check_reached(printed: Printed, *signs: str) -> None:
    if printed.status != 0 and any(sign in printed.complaint for sign in signs):
        what = "The desktop does not answer."
        raise _Unreachable(what, f"The clipboard's program says: {printed.complaint}.", _INSTEAD)


def _garbled(program: str) -> PictureError:
    what = "The picture in the clipboard cannot be read."
    return PictureError(what, f"{program} printed something else.", _INSTEAD)
