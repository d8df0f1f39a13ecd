"""From the path a model wrote to a file that is there, or to the error that says why not."""

from dataclasses import dataclass
from pathlib import PurePosixPath

from sandbox.actions import Action
from sandbox.paths import FileFacts, PathRefused, Workspace
from tools.base import Result
from tools.failure import failure, refused
from tools.near_names import missing
from tools.shown import shown


@dataclass(frozen=True, slots=True)
class Located:
    """A path in the workspace. `real` is where its links lead; `facts` is None when nothing is there."""

    path: PurePosixPath
    real: PurePosixPath
    facts: FileFacts | None

    @property
    def kind(self) -> str:
        """ "file", "dir", "other", or "" when nothing is there."""
        return self.facts.kind if self.facts else ""

    @property
    def reading(self) -> Action:
        """Reading it, as policy judges it: by the name behind any link."""
        return Action("read", str(self.real))


def locate(workspace: Workspace, text: str) -> Located | Result:
    """Where a path is and what is there."""
    try:
        path = workspace.locate(text)
        return Located(path, workspace.real(path), workspace.stat(path))
    except PathRefused as fault:
        return refused(fault)


def locate_file(workspace: Workspace, text: str) -> Located | Result:
    """A regular file to read."""
    place = locate(workspace, text)
    if isinstance(place, Result):
        return place
    match place.kind:
        case "file":
            return place
        case "dir":
            return failure("is_a_folder", f"{shown(place.path)} is a folder. Use list to see its files.")
        case "other":
            return failure("not_a_file", f"{shown(place.path)} is not a regular file and cannot be read.")
        case _:
            return missing(workspace, place.path)


def locate_target(workspace: Workspace, text: str) -> Located | Result:
    """A place that may be written: a regular file, or nothing yet. Never through a link."""
    place = locate(workspace, text)
    if isinstance(place, Result):
        return place
    try:
        workspace.check_write(place.path)
    except PathRefused as fault:
        return refused(fault)
    if place.path != place.real:
        told = f"{shown(place.path)} goes through a link and is not written. Use {shown(place.real)}."
        return failure("refused", told)
    if place.kind == "dir":
        return failure("is_a_folder", f"{shown(place.path)} is a folder, not a file.")
    if place.kind == "other":
        return failure("not_a_file", f"{shown(place.path)} is not a regular file.")
    return place
