"""`read`: a text file, or a range of its lines."""

from dataclasses import dataclass
from pathlib import PurePosixPath

from pydantic import BaseModel, ConfigDict

from sandbox.actions import Action
from sandbox.paths import PathRefused, Workspace
from tools.base import Display, Plan, Result, Running
from tools.failure import failure, not_readable, refused
from tools.near_names import missing
from tools.shown import shortened, shown, size
from tools.text_file import LineEnds, TextFile, decode, plural

MOST_BYTES = 1 << 24
MOST_LINES = 2000
MOST_CHARACTERS = 60_000
LONGEST_LINE = 2000


class ReadArguments(BaseModel):
    """What `read` takes. Lines count from 1, both ends included."""

    model_config = ConfigDict(extra="forbid")

    path: str
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """The payload of a read: a file that was there, and the lines asked for."""

    path: PurePosixPath
    start: int | None
    end: int | None


class ReadTool:
    """Reads text for the model."""

    name = "read"
    arguments = ReadArguments

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def prepare(self, arguments: ReadArguments) -> Plan | Result:
        """Find the file; nothing of it is read yet."""
        start, end = arguments.start, arguments.end
        if start is not None and end is not None and end < start:
            return failure("invalid_arguments", f"end is {end}, which is before start, {start}.")
        try:
            path = self._workspace.locate(arguments.path)
            facts = self._workspace.stat(path)
        except PathRefused as fault:
            return refused(fault)
        except OSError as fault:
            return not_readable(PurePosixPath(arguments.path), fault)
        if facts is None:
            return missing(self._workspace, path)
        if facts.kind == "dir":
            return failure("is_a_folder", f"{shown(path)} is a folder. Use list to see its files.")
        if facts.kind != "file":
            return failure("not_a_file", f"{shown(path)} is not a regular file and cannot be read.")
        return Plan((Action("read", str(path)),), payload=Wanted(path, start, end))

    def apply(self, plan: Plan, running: Running) -> Result:
        """Read the file."""
        wanted: Wanted = plan.payload
        try:
            facts = self._workspace.stat(wanted.path)
            if facts is None:
                return missing(self._workspace, wanted.path)
            data = self._workspace.read(wanted.path, MOST_BYTES)
        except PathRefused as fault:
            return refused(fault)
        except OSError as fault:
            return not_readable(wanted.path, fault)
        text = decode(data, whole=len(data) >= facts.size)
        if text is None:
            message = f"{shown(wanted.path)} is a binary file ({size(facts.size)})."
            return Result(message, Display(message, path=str(wanted.path)))
        return shown_lines(wanted, text)


def shown_lines(wanted: Wanted, file: TextFile) -> Result:
    """The lines asked for, under a first line that says what they are."""
    ends = LineEnds(file.text)
    lines = _lines(ends.text)
    name, count = shown(wanted.path), len(lines)
    notes = "".join(f", {note}" for note in (file.label, ends.label) if note)
    if not count:
        return Result(f"{name} (empty)", Display(f"{name} (empty)", path=str(wanted.path)))
    first = max(1, wanted.start or 1)
    last = count if wanted.end is None else min(wanted.end, count)
    if first > count or last < first:
        return failure("invalid_arguments", f"{name} has {plural(count, 'line')}; there is no such range.")
    body, stopped = _fitting(lines, first, last)
    if wanted.start is None and wanted.end is None:
        title = f"{name} ({plural(count, 'line')}{notes})"
    else:
        title = f"{name} lines {first}-{stopped} of {count}" + (f" ({notes[2:]})" if notes else "")
    for_model = f"{title}\n{body}"
    if stopped < last:
        gap = "" if body.endswith("\n") else "\n"
        missed = f"lines {stopped + 1}-{last} of {count}"
        for_model += f"{gap}[cut: {missed} not shown; read them with start and end]"
    return Result(for_model, Display(title, body, "code", str(wanted.path)))


def _lines(text: str) -> list[str]:
    pieces = text.split("\n")
    lines = [f"{piece}\n" for piece in pieces[:-1]]
    return [*lines, pieces[-1]] if pieces[-1] else lines


def _fitting(lines: list[str], first: int, last: int) -> tuple[str, int]:
    """The lines from `first` on that fit the bounds, and the number of the last one of them."""
    taken: list[str] = []
    room = MOST_CHARACTERS
    for line in lines[first - 1 : min(last, first - 1 + MOST_LINES)]:
        end = "\n" if line.endswith("\n") else ""
        kept = shortened(line.removesuffix("\n"), LONGEST_LINE) + end
        if len(kept) > room and taken:
            break
        taken.append(kept)
        room -= len(kept)
    return "".join(taken), first - 1 + len(taken)
