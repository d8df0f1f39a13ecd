"""`list`: the files of the project, one path a line."""

from dataclasses import dataclass
from pathlib import PurePosixPath

from pydantic import BaseModel, ConfigDict

from sandbox.actions import Action
from sandbox.paths import PathRefused, Workspace
from tools.base import Display, Plan, Result, Running
from tools.failure import failure, not_readable, refused
from tools.globs import glob_filter
from tools.near_names import missing
from tools.project_files import project_files
from tools.shown import shown

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
        try:
            path = self._workspace.locate(arguments.path or ".")
            facts = self._workspace.stat(path)
        except PathRefused as fault:
            return refused(fault)
        except OSError as fault:
            return not_readable(PurePosixPath(arguments.path or "."), fault)
        if facts is None:
            return failure("not_found", f"No folder {shown(path)}.")
        if facts.kind == "file":
            return failure("not_a_folder", f"{shown(path)} is a file. Use read to see it.")
        if facts.kind != "dir":
            return failure("not_a_folder", f"{shown(path)} is not a folder.")
        return Plan((Action("read", str(path)),), payload=Wanted(path, arguments.glob or ""))

    def apply(self, plan: Plan, running: Running) -> Result:
        """List the folder."""
        wanted: Wanted = plan.payload
        fits = glob_filter(wanted.glob or "*", str(wanted.folder))
        try:
            files = project_files(self._workspace.root, wanted.folder, fits)
        except FileNotFoundError:
            return missing(self._workspace, wanted.folder)
        except OSError as fault:
            return not_readable(wanted.folder, fault)
        if not files.paths:
            message = f"No files match {shown(wanted.glob)}." if wanted.glob else "No files."
            return Result(message, Display(message))
        lines = [shown(path) for path in files.paths[:MOST_SHOWN]]
        if len(files.paths) > MOST_SHOWN or not files.complete:
            more = len(files.paths) - len(lines)
            amount = f"{more}" if files.complete else f"more than {more}"
            lines.append(f"[cut: {amount} more; narrow with path or glob]")
        text = "\n".join(lines)
        count = f"{len(files.paths)}{'' if files.complete else '+'}"
        title = f"{count} file{'' if count == '1' else 's'}" + (
            f" in {shown(wanted.folder)}" if wanted.folder.parts else ""
        )
        return Result(text, Display(title, text))
