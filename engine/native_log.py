"""llama.cpp's log, which goes to a file and never to the terminal."""

import ctypes
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import IO

import llama_cpp.llama_cpp as native


class _NativeLog:
    """Where the library's log goes. One for the process: the library has one log."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._path: Path | None = None
        self._users = Counter[Path | None]()
        self._callback = native.llama_log_callback(self._write)
        native.llama_log_set(self._callback, ctypes.c_void_p(0))

    def join(self, path: Path | None) -> None:
        """One user more, whose log appends to `path`; None, or what cannot be written, discards it."""
        self._users[path] += 1
        self._redirect(path)

    def join_in(self, set_log: Callable[..., None]) -> None:
        """Take the log of another of llama.cpp's libraries, which is set by `set_log`."""
        set_log(self._callback, ctypes.c_void_p(0))

    def leave(self, path: Path | None) -> None:
        """One user less; with the last one the log is closed, if it still goes to `path`."""
        self._users[path] -= 1
        if self._path == path and self._users[path] <= 0:
            self._redirect(None)

    def _redirect(self, path: Path | None) -> None:
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
    def start(cls) -> _NativeLog:
        """Start the library if it is not; its log goes nowhere until it is told where."""
        if cls.log is None:
            cls.log = _NativeLog()
            native.llama_backend_init()
        return cls.log

    @classmethod
    def prepare(cls, log_file: Path | None) -> None:
        """Start the library if it is not, and send its log to `log_file`; `leave` ends that."""
        cls.start().join(log_file)

    @classmethod
    def leave(cls, log_file: Path | None) -> None:
        """Close the log if it still goes to `log_file`, and nobody else uses it."""
        if cls.log is not None:
            cls.log.leave(log_file)


def see_log(log_file: Path | None) -> str:
    """The sentence that says where the details are."""
    return f"The details are in {log_file}." if log_file else "A log file shows the details."
