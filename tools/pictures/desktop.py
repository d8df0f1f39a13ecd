"""What kind of screen Glimmer runs on, and the environment that programs for it need."""

import os
import platform
import sys
from collections.abc import Mapping
from typing import Literal

from sandbox.env import child_environment

Desktop = Literal["macos", "wsl", "wayland", "x11", "ssh", "none"]

_NAMES = (
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XDG_RUNTIME_DIR",
    "XAUTHORITY",
    "XDG_SESSION_TYPE",
    "XDG_CURRENT_DESKTOP",
    "DBUS_SESSION_BUS_ADDRESS",
    "WSL_DISTRO_NAME",
    "WSL_INTEROP",
    "SystemRoot",
)


def desktops(
    environ: Mapping[str, str], system: str = sys.platform, release: str = ""
) -> tuple[Desktop, ...]:
    """The ways to the person's screen and clipboard, the best one first; never empty.

    `release` is the kernel's own name, by which WSL is known where the environment says nothing. Over SSH
    the screen is on the other machine, except for an X display that is forwarded.
    """
    found: list[Desktop] = []
    is_remote = bool(environ.get("SSH_CONNECTION") or environ.get("SSH_TTY"))
    if system == "darwin" and not is_remote:
        found.append("macos")
    release = release or platform.release()
    if environ.get("WSL_DISTRO_NAME") or environ.get("WSL_INTEROP") or "microsoft" in release.lower():
        found.append("wsl")
    if environ.get("WAYLAND_DISPLAY"):
        found.append("wayland")
    if environ.get("DISPLAY"):
        found.append("x11")
    return tuple(found) or (("ssh",) if is_remote else ("none",))


def desktop_environment(base: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What a program of Glimmer's own choice may see: the shell's list, and where the screen is."""
    screen = {name: value for name in _NAMES if (value := base.get(name)) is not None}
    return child_environment(base) | screen
