"""`read`: a text file, or a range of its lines."""

from dataclasses import dataclass
from pathlib import PurePosixPath

from pydantic import BaseModel, ConfigDict

from sandbox.paths import PathMissing, PathRefused, Workspace
from tools.base import Display, Plan, Result, Running
from tools.failure import failure, refused
from tools.line_window import Window, large_window, small_window
from tools.located import locate_file
from tools.near_names import missing
from tools.shown import shown, size
from tools.text_file import LineEnds, decode, plural

LARGE = 1 << 24


class ReadArguments(BaseModel):
    """What `read` takes. Lines count from 1, both ends included."""

    model_config = ConfigDict(extra="forbid")

    path: str
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """The payload of a read: a file that was there, its size in bytes, and the lines asked for."""

    path: PurePosixPath
    size: int
    start: int | None
    end: int | None

    @property
    def whole(self) -> bool:
        return self.start is None and self.end is None


class ReadTool:
    """Reads text for the model."""

    name = "read"
    arguments = ReadArguments

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def prepare(self, arguments: ReadArguments) -> Plan | Result:
        """Find the file; nothing of it is read yet."""
        start, end = arguments.start, arguments.end
        first = max(1, start or 1)
        if end is not None and end < first:
            return failure("invalid_arguments", f"end is {end}, which is before line {first}.")
        place = locate_file(self._workspace, arguments.path)
        if isinstance(place, Result):
            return place
        size_now = place.facts.size if place.facts else 0
        return Plan((place.reading,), payload=Wanted(place.path, size_now, start, end))

    def apply(self, plan: Plan, running: Running) -> Result:
        """Read the file. However large it is, time and memory are bounded."""
        wanted: Wanted = plan.payload
        first = max(1, wanted.start or 1)
        try:
            with self._workspace.open(wanted.path) as stream:
                data = stream.read(LARGE + 1)
                if len(data) > LARGE:
                    window = large_window(data, stream, first, wanted.end, running.cancelled)
                else:
                    window = _window(data, first, wanted.end)
        except PathMissing:
            return missing(self._workspace, wanted.path)
        except PathRefused as fault:
            return refused(fault)
        except OSError as fault:
            return failure("io_error", f"{shown(wanted.path)} cannot be read: {fault.strerror}.")
        if window is None:
            message = f"{shown(wanted.path)} is a binary file ({size(max(wanted.size, len(data)))})."
            return Result(message, Display(message, path=str(wanted.path)))
        return _told(wanted, first, window)


def _window(data: bytes, first: int, last: int | None) -> Window | None:
    file = decode(data)
    if file is None:
        return None
    ends = LineEnds(file.text)
    notes = tuple(note for note in (file.label, ends.label) if note)
    return small_window(ends.text, first, last, notes)


def _told(wanted: Wanted, first: int, window: Window) -> Result:
    name, path = shown(wanted.path), str(wanted.path)
    if window.of == "0":
        return Result(f"{name} (empty)", Display(f"{name} (empty)", path=path))
    if window.stopped < first:
        lines = plural(int(window.of), "line") if window.of.isdigit() else f"{window.of} lines"
        return failure("invalid_arguments", f"{name} has {lines}; line {first} is not there.")
    notes = ", ".join(window.notes)
    if wanted.whole:
        count = "1 line" if window.of == "1" else f"{window.of} lines"
        title = f"{name} ({count}{', ' if notes else ''}{notes})"
    else:
        title = f"{name} lines {first}-{window.stopped} of {window.of}" + (f" ({notes})" if notes else "")
    cut = ""
    if window.stopped < window.last:
        missed = f"lines {window.stopped + 1}-{window.last} of {window.of}"
        gap = "" if window.text.endswith("\n") else "\n"
        cut = f"{gap}[cut: {missed} not shown; read them with start and end]"
    return Result(f"{title}\n{window.text}{cut}", Display(title, window.text + cut, "code", path))
