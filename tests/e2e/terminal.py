"""A real terminal for the real program: typed keys in, what the screen says out."""

import os
import re
import sys
import time
from pathlib import Path

import pexpect

ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[P_^].*?\x1b\\|\x1b[@-_]", re.S
)
PATIENCE = 90.0
"""Seconds until a wait is given up; far above what any step takes."""


class Terminal:
    """One run of Glimmer under a pty. Waits look at the text painted since the last wait that succeeded."""

    def __init__(self, arguments: list[str], folder: Path, columns: int = 120, rows: int = 40) -> None:
        """Run Python with `arguments` in `folder`."""
        environment = {
            **os.environ,
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
            "GLIMMER_STATE_DIR": str(folder / "state"),
            "GLIMMER_CONFIG_DIR": str(folder / "config"),
            "PYTHONPATH": str(Path(__file__).parents[2]),
        }
        self._raw = ""
        self._seen = 0
        self.child = pexpect.spawn(
            sys.executable,
            arguments,
            cwd=str(folder),
            env=environment,
            dimensions=(rows, columns),
            encoding="utf-8",
            codec_errors="replace",
        )
        self.child.delaybeforesend = None

    def wait_for(self, *words: str) -> str:
        """Wait until one of `words` is painted; returns it. Blanks and line ends in between do not matter."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            fresh = "".join(self._text()[self._seen :].split())
            for word in words:
                if "".join(word.split()) in fresh:
                    self._seen = len(self._text())
                    return word
            self._read()
        raise AssertionError(f"{words!r} was not painted. The last of the screen:\n{self._text()[-3000:]}")

    def press(self, keys: str) -> None:
        """Send keys, as a person would: nothing is sent while the program still paints."""
        self.settle()
        self.child.send(keys)

    def settle(self, quiet: float = 0.4) -> None:
        """Wait until nothing was painted for `quiet` seconds (or the program ended)."""
        while self._read(quiet):
            pass

    def wait_end(self) -> int:
        """Wait for the program to end; its exit code."""
        while self.child.isalive():
            self._read()
        self.child.close()
        return int(self.child.exitstatus if self.child.exitstatus is not None else -1)

    def close(self) -> None:
        """End the program whatever it does."""
        self.child.close(force=True)

    def _text(self) -> str:
        return ESCAPES.sub(" ", self._raw)

    def _read(self, patience: float = 0.2) -> bool:
        try:
            self._raw += self.child.read_nonblocking(65536, timeout=patience)
        except pexpect.TIMEOUT:
            return False
        except pexpect.EOF:
            return False
        return True
