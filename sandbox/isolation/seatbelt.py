"""A profile for macOS's sandbox-exec that comes close to a view of the file system.

In a profile the last rule that fits decides. Not tried on hardware by its authors; the text is tested.
"""

from collections.abc import Iterable
from pathlib import Path

from sandbox.isolation.view import View

PROGRAM = "/usr/bin/sandbox-exec"
_HIDDEN = ("/Users", "/Volumes", "/private/tmp", "/private/var")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/dtracehelper")
_START = """(version 1)
(deny default)
(allow process-exec process-fork)
(allow signal (target same-sandbox))
(allow process-info* (target same-sandbox))
(allow sysctl-read)
(allow pseudo-tty)
(allow file-ioctl (regex #"^/dev/ttys[0-9]+$"))
(allow file-write-data (regex #"^/dev/ttys[0-9]+$"))
(allow ipc-posix-sem)
(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo"))
(allow file-read*)
"""
_NETWORK = """(allow network*)
(allow system-socket)
(allow mach-lookup (global-name "com.apple.SystemConfiguration.configd"))
(allow mach-lookup (global-name "com.apple.trustd.agent"))
"""


def seatbelt(view: View, private: Path, *, network: bool) -> str:
    """The profile. `private` is this shell's folder; `home` and `tmp` in it are the command's own."""
    hidden = [*map(Path, _HIDDEN), view.home, *view.hidden]
    lines = [_START, _rule("deny", "file-read*", hidden)]
    # Programs look up the folders on the way to what they may read.
    lines.append(_rule("allow", "file-read-metadata", _above(view), "literal"))
    lines.append(_rule("allow", "file-read*", (*view.readable, *view.writable, private)))
    lines.append(_rule("allow", "file-write*", (*view.writable, private / "home", private / "tmp")))
    lines.append(_rule("allow", "file-write-data", map(Path, _DEVICES), "literal"))
    lines.append(f'(allow file-write-data (regex #"^{_pattern(private)}/(once/)?tell$"))\n')
    if view.guarded:
        lines.append(_rule("deny", "file-write*", view.guarded))
        # A folder that holds something guarded is not moved away with it.
        around = dict.fromkeys(path.parent for path in view.guarded if path.parent != view.workspace)
        if around:
            lines.append(_rule("deny", "file-write-unlink", around, "literal"))
    if network:
        lines.append(_NETWORK)
    return "".join(lines)


def _above(view: View) -> list[Path]:
    shown = (*view.writable, *view.readable)
    return list(dict.fromkeys(folder for path in shown for folder in path.parents))


def _rule(verdict: str, operation: str, paths: Iterable[Path], form: str = "subpath") -> str:
    named = "".join(f"\n  ({form} {_quoted(path)})" for path in paths)
    return f"({verdict} {operation}{named})\n"


def _quoted(path: Path) -> str:
    escaped = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _pattern(path: Path) -> str:
    return "".join(char if char.isalnum() or char in "/_-" else f"\\{char}" for char in str(path))
