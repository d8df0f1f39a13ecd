"""`edit`: one exact replacement in a file, or all of them."""

from dataclasses import dataclass
from pathlib import PurePosixPath

from pydantic import BaseModel, ConfigDict

from sandbox.actions import Action
from sandbox.paths import PathRefused, Workspace
from tools.base import Display, FileChange, Plan, Result, Running
from tools.edit_match import Mismatch, find_places
from tools.failure import failure, refused
from tools.located import locate_target
from tools.near_names import missing
from tools.shown import shown, size
from tools.text_file import LineEnds, decode, plural, spliced
from tools.unified import unified

LARGEST_FILE = 1 << 24


class EditArguments(BaseModel):
    """What `edit` takes. `old` must occur once unless `all` is true."""

    model_config = ConfigDict(extra="forbid")

    path: str
    old: str
    new: str
    all: bool | None = None


@dataclass(frozen=True, slots=True)
class Edited:
    """The payload of an edit: the bytes to write and what to say of it."""

    path: PurePosixPath
    data: bytes
    message: str
    diff: str


class EditTool:
    """Replaces text in place and keeps everything else of the file byte for byte."""

    name = "edit"
    arguments = EditArguments

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def prepare(self, arguments: EditArguments) -> Plan | Result:
        """Find the place and make the new text; the file is not touched."""
        place = locate_target(self._workspace, arguments.path)
        if isinstance(place, Result):
            return place
        if place.facts is None:
            return missing(self._workspace, place.path)
        path = place.path
        data, fingerprint = b"", ""
        try:
            if place.facts.size <= LARGEST_FILE:
                fingerprint = self._workspace.fingerprint(path)
                data = self._workspace.read(path, LARGEST_FILE + 1)
        except PathRefused as fault:
            return refused(fault)
        if (most := max(place.facts.size, len(data))) > LARGEST_FILE:
            return failure("too_large", f"{shown(path)} is too large to edit ({size(most)}).")
        made = replace_in(path, data, arguments)
        if isinstance(made, Result):
            return made
        edited, change = made
        return Plan((Action("write", str(path)),), change, fingerprint, edited)

    def apply(self, plan: Plan, running: Running) -> Result:
        """Write exactly what was planned, if the file is still what it was."""
        edited: Edited = plan.payload
        try:
            self._workspace.write(edited.path, edited.data, plan.fingerprint)
        except PathRefused as fault:
            return refused(fault)
        display = Display(edited.message, edited.diff, "diff", str(edited.path))
        return Result(edited.message, display, changed=(edited.path,))


def replace_in(
    path: PurePosixPath, data: bytes, arguments: EditArguments
) -> tuple[Edited, FileChange] | Result:
    """The edited bytes of a file, or why there are none."""
    name = shown(path)
    file = decode(data)
    if file is None:
        return failure("binary", f"{name} is a binary file ({size(len(data))}) and cannot be edited.")
    ends = LineEnds(file.text)
    old, new = arguments.old.replace("\r\n", "\n"), arguments.new.replace("\r\n", "\n")
    places = find_places(name, ends.text, old, new, bool(arguments.all))
    if isinstance(places, Mismatch):
        return failure(places.kind, places.message)
    raw = spliced(ends.raw, [ends.replace(start, end, places.new) for start, end in places.spans])
    after = spliced(ends.text, [(start, end, places.new) for start, end in places.spans])
    if raw == ends.raw:
        return failure("no_change", f"The edit would not change {name}.")
    try:
        written = file.encode(raw)
    except UnicodeEncodeError as fault:
        lost = fault.object[fault.start]
        return failure("encoding", f"{name} is {file.label}, which has no {lost!r}. Use other characters.")
    line = ends.text.count("\n", 0, places.spans[0][0]) + 1
    count = plural(len(places.spans), "replacement")
    message = f"Edited {name}: {count}{' at' if len(places.spans) == 1 else ', first at'} line {line}."
    if places.tolerant:
        message += " Matched a line that differs in white space only."
    change = FileChange(str(path), ends.text, after)
    return Edited(path, written, message, unified(name, ends.text, after)), change
