"""One short run of a foreign program: no shell, no input, a time limit and a limit to what it may print."""

import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from tools.pictures.desktop import desktop_environment
from tools.pictures.errors import PictureError

_CHUNK = 1 << 16
_MOST_COMPLAINTS = 4096
_LOOK_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Printed:
    """How it ended: its exit status, what it printed, and the last line of its complaints."""

    status: int
    output: bytes
    complaint: str


def run_program(
    command: Sequence[str], seconds: float, most: int, cancelled: threading.Event | None = None
) -> Printed:
    """Run a program by its absolute path to its end. Blocks.

    Raises PictureError where it does not start, takes too long, prints more than `most` bytes, or where
    `cancelled` is set. Nothing that it started in its own group outlives the call.
    """
    name = os.path.basename(command[0])
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=desktop_environment(),
            start_new_session=True,
        )
    except OSError as fault:
        why = f"The system says: {fault.strerror}."
        raise PictureError(f"{name} does not start.", why, f"Check that {command[0]} runs.") from fault
    with process:
        try:
            output, complaints = _read(process, time.monotonic() + seconds, most, cancelled)
        except TimeoutError as fault:
            why = f"It was stopped after {seconds:g} s."
            raise PictureError(f"{name} does not answer.", why, "Try again.") from fault
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
    return Printed(process.returncode, output, _last_line(complaints))


def _read(
    process: subprocess.Popen[bytes], deadline: float, most: int, cancelled: threading.Event | None
) -> tuple[bytes, bytes]:
    """Output and complaints, until the program has ended. Raises TimeoutError at the deadline."""
    output, complaints = bytearray(), bytearray()
    name = os.path.basename(str(process.args[0])) if isinstance(process.args, tuple | list) else ""
    with selectors.DefaultSelector() as selector:
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                selector.register(stream, selectors.EVENT_READ)
        while selector.get_map() or process.poll() is None:
            if cancelled is not None and cancelled.is_set():
                raise PictureError(f"{name} was stopped.", "The turn was cancelled.")
            if time.monotonic() >= deadline:
                raise TimeoutError
            ended = process.poll() is not None
            ready = selector.select(_LOOK_SECONDS) if selector.get_map() else _pause()
            if ended and not ready:
                break  # something it left behind holds its output open
            for key, _ in ready:
                chunk = os.read(key.fd, _CHUNK)
                if not chunk:
                    selector.unregister(key.fileobj)
                elif key.fileobj is process.stdout:
                    output += chunk
                else:
                    complaints += chunk[: max(0, _MOST_COMPLAINTS - len(complaints))]
            if len(output) > most:
                why = f"It printed more than {most / 1e6:.0f} MB."
                raise PictureError(f"{name} gave too much.", why, "Save the picture to a file instead.")
    return bytes(output), bytes(complaints)


def _pause() -> list[tuple[selectors.SelectorKey, int]]:
    time.sleep(0.01)
    return []


def _last_line(complaints: bytes) -> str:
    lines = complaints.decode("utf-8", "replace").strip().splitlines()
    text = "".join(char if char.isprintable() else " " for char in lines[-1]) if lines else ""
    return text.strip()[:200]
