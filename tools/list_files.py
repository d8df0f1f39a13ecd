"""`list`: the files of the project, one path a line."""

from dataclasses import dataclass
from pathlib import PurePosixPath

from pydantic import BaseModel, ConfigDict

from sandbox.paths import Workspace
from tools.base import Display, Plan, Result, Running
from tools.failure import failure
from tools.globs import glob_filter
from tools.located import locate
from tools.project_files import project_files
from tools.shown import shown
from tools.text_file import plural

MOST_SHOWN = 200


class ListArguments(BaseModel):
    """What `list` takes: a folder, and a glob that the files must fit."""

    model_config = ConfigDict(extra="forbid")

    path: str | None = None
    glob: str | None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """The payload of a listing."""

    folder: PurePosixPath
    glob: str


class ListTool:
    """Lists files, as .gitignore leaves them."""

    name = "list"
    arguments = ListArguments

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def prepare(self, arguments: ListArguments) -> Plan | Result:
        """Find the folder."""
        place = locate(self._workspace, arguments.path or ".")
        if isinstance(place, Result):
            return place
        if not place.kind:
            return failure("not_found", f"No folder {shown(place.path)}.")
        if place.kind != "dir":
            advice = " Use read to see it." if place.kind == "file" else ""
            return failure("not_a_folder", f"{shown(place.path)} is not a folder.{advice}")
        return Plan((place.reading,), payload=Wanted(place.real, arguments.glob or ""))

    def apply(self, plan: Plan, running: Running) -> Result:
        """List the folder."""
        wanted: Wanted = plan.payload
        fits = glob_filter(wanted.glob or "*", str(wanted.folder))
        try:
            files = project_files(self._workspace.root, wanted.folder, fits)
        except OSError as fault:
            return failure("io_error", f"The files could not be listed: {fault.strerror}.")
        if not files.paths:
            message = f"No files match {shown(wanted.glob)}." if wanted.glob else "No files."
            return Result(message, Display(message))
        lines = [shown(path) for path in files.paths[:MOST_SHOWN]]
        if len(files.paths) > MOST_SHOWN or not files.complete:
            more = len(files.paths) - len(lines)
            amount = f"{more}" if files.complete else f"more than {more}"
            lines.append(f"[cut: {amount} more; narrow with path or glob]")
        text = "\n".join(lines)
        count = plural(len(files.paths), "file") if files.complete else f"{len(files.paths)}+ files"
        place = f" in {shown(wanted.folder)}" if wanted.folder.parts else ""
        return Result(text, Display(count + place, text))
