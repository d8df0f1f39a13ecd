"""llama.cpp's log, which goes to a file and never to the terminal."""

import ctypes
from pathlib import Path
from typing import IO

import llama_cpp.llama_cpp as native


class _NativeLog:
    """Where the library's log goes. One for the process: the library has one log."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._path: Path | None = None
        self._callback = native.llama_log_callback(self._write)
        native.llama_log_set(self._callback, ctypes.c_void_p(0))

    def redirect(self, path: Path | None) -> None:
        """Append to `path` from now on; None, or a path that cannot be written, discards the log."""
        self._path = path
        native.llama_log_set(self._callback, ctypes.c_void_p(0))
        before, self._file = self._file, None
        if before is not None:
            before.close()
        if path is None:
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("ab", buffering=0)
        except OSError:
            self._file = None

    def leave(self, path: Path | None) -> None:
        """Close the log if it still goes to `path`."""
        if self._path == path:
            self.redirect(None)

    def _write(self, _level: int, text: bytes, _data: ctypes.c_void_p) -> None:
        file = self._file
        if file is None:
            return
        try:
            file.write(text)
        except (OSError, ValueError):
            self._file = None


class Library:
    """The library, made ready once a process, on first use."""

    log: _NativeLog | None = None

    @classmethod
    def prepare(cls, log_file: Path | None) -> None:
        """Start the library if it is not, and send its log to `log_file`."""
        first = cls.log is None
        if cls.log is None:
            cls.log = _NativeLog()
        cls.log.redirect(log_file)
        if first:
            native.llama_backend_init()

    @classmethod
    def leave(cls, log_file: Path | None) -> None:
        """Close the log if it still goes to `log_file`."""
        if cls.log is not None:
            cls.log.leave(log_file)


def see_log(log_file: Path | None) -> str:
    """The sentence that says where the details are."""
    return f"The details are in {log_file}." if log_file else "A log file shows the details."
