"""`write`: a new file, or the whole of one replaced."""

from dataclasses import dataclass
from pathlib import PurePosixPath

from pydantic import BaseModel, ConfigDict

from sandbox.actions import Action
from sandbox.paths import ABSENT, PathRefused, Workspace
from tools.base import Display, FileChange, Plan, Result, Running
from tools.failure import failure, refused
from tools.located import Located, locate_target
from tools.shown import shown, size
from tools.text_file import LineEnds, TextFile, decode, plural, split_lines
from tools.unified import unified

LARGEST_FILE = 1 << 24


class WriteArguments(BaseModel):
    """What `write` takes."""

    model_config = ConfigDict(extra="forbid")

    path: str
    content: str


@dataclass(frozen=True, slots=True)
class Written:
    """The payload of a write: the bytes and what to say of them."""

    path: PurePosixPath
    data: bytes
    message: str
    diff: str


class WriteTool:
    """Writes whole files. A replaced file keeps its encoding, byte order mark and line ends."""

    name = "write"
    arguments = WriteArguments

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def prepare(self, arguments: WriteArguments) -> Plan | Result:
        """Read what is there now and make the new bytes; nothing is written."""
        place = locate_target(self._workspace, arguments.path)
        if isinstance(place, Result):
            return place
        if arguments.path.endswith("/"):
            return failure("is_a_folder", f"{shown(place.path)}/ names a folder, not a file.")
        try:
            # What was not there when the place was looked at is not there for this plan: a file that
            # appears meanwhile is a change, not something to replace unseen.
            fingerprint = self._workspace.fingerprint(place.path) if place.facts else ABSENT
            file = self._now(place)
        except PathRefused as fault:
            return refused(fault)
        if isinstance(file, Result):
            return file
        made = _made(place.path, file, arguments.content.replace("\r\n", "\n"))
        if isinstance(made, Result):
            return made
        written, change = made
        return Plan((Action("write", str(place.path)),), change, fingerprint, written)

    def apply(self, plan: Plan, running: Running) -> Result:
        """Write exactly what was planned, if the place is still what it was."""
        written: Written = plan.payload
        try:
            self._workspace.write(written.path, written.data, plan.fingerprint)
        except PathRefused as fault:
            return refused(fault)
        display = Display(written.message, written.diff, "diff", str(written.path))
        return Result(written.message, display, changed=(written.path,))

    def _now(self, place: Located) -> TextFile | Result | None:
        """The text that would be replaced, None when nothing is there, or why it cannot be replaced."""
        if place.facts is None:
            return None
        told = f"{shown(place.path)} is {{}} ({size(place.facts.size)}) and is not replaced."
        data = b"" if place.facts.size > LARGEST_FILE else self._workspace.read(place.path, LARGEST_FILE + 1)
        if max(place.facts.size, len(data)) > LARGEST_FILE:
            return failure("too_large", told.format("a large file"))
        file = decode(data)
        return failure("binary", told.format("a binary file")) if file is None else file


def _made(path: PurePosixPath, file: TextFile | None, content: str) -> tuple[Written, FileChange] | Result:
    name = shown(path)
    target = file or TextFile("")
    ends = LineEnds(target.text)
    text = content.removeprefix("\ufeff")
    try:
        data = target.encode(text.replace("\n", ends.dominant))
    except UnicodeEncodeError as fault:
        lost = fault.object[fault.start]
        return failure("encoding", f"{name} is {target.label or 'UTF-8'}, which has no {lost!r}.")
    before = None if file is None else ends.text
    if before == text:
        return failure("no_change", f"{name} has this content already. Nothing was changed.")
    verb = "Created" if file is None else "Replaced"
    message = f"{verb} {name} ({plural(len(split_lines(text)), 'line')})."
    return Written(path, data, message, unified(name, before, text)), FileChange(str(path), before, text)
