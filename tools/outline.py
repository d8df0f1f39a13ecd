"""`outline`: the classes and functions of a source file, with their lines."""

from dataclasses import dataclass
from pathlib import PurePosixPath

from pydantic import BaseModel, ConfigDict

from sandbox.paths import PathRefused, Workspace
from tools.base import Display, Plan, Result, Running
from tools.failure import failure, refused
from tools.located import locate_file
from tools.outline_languages import Language, language_of, names
from tools.outline_parse import Definition, definitions
from tools.shown import shown, size
from tools.text_file import LineEnds, decode

LARGEST_FILE = 2_000_000
MOST_SHOWN = 400


class OutlineArguments(BaseModel):
    """What `outline` takes."""

    model_config = ConfigDict(extra="forbid")

    path: str


@dataclass(frozen=True, slots=True)
class Wanted:
    """The payload of an outline."""

    path: PurePosixPath
    language: Language


class OutlineTool:
    """Parses with tree-sitter, so that broken and half-written files have an outline too."""

    name = "outline"
    arguments = OutlineArguments

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def prepare(self, arguments: OutlineArguments) -> Plan | Result:
        """Find the file and its language."""
        place = locate_file(self._workspace, arguments.path)
        if isinstance(place, Result):
            return place
        language = language_of(place.path.name)
        if language is None:
            told = f"No outline for {shown(place.path)}. There are outlines for {', '.join(names())}."
            return failure("unsupported", told)
        if place.facts and place.facts.size > LARGEST_FILE:
            told = f"{shown(place.path)} is too large to outline ({size(place.facts.size)}). Use search."
            return failure("too_large", told)
        return Plan((place.reading,), payload=Wanted(place.path, language))

    def apply(self, plan: Plan, running: Running) -> Result:
        """Parse the file."""
        wanted: Wanted = plan.payload
        name = shown(wanted.path)
        try:
            file = decode(self._workspace.read(wanted.path, LARGEST_FILE))
        except PathRefused as fault:
            return refused(fault)
        if file is None:
            return failure("binary", f"{name} is a binary file and has no outline.")
        found = definitions(wanted.language, LineEnds(file.text).text)
        if not found:
            return Result(f"No definitions in {name}.", Display(f"No definitions in {name}."))
        text = _tree(found[:MOST_SHOWN])
        if len(found) > MOST_SHOWN:
            text += f"\n[cut: {len(found) - MOST_SHOWN} more definitions; use search]"
        return Result(text, Display(f"Outline of {name}", text, "code", str(wanted.path)))


def _tree(found: list[Definition]) -> str:
    return "\n".join(f"{'  ' * one.depth}{one.line} {one.signature}" for one in found)
