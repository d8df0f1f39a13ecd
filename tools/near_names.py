"""Files with a name like one that does not exist, so that the model can correct itself."""

from difflib import SequenceMatcher, get_close_matches
from pathlib import PurePosixPath

from sandbox.paths import Workspace
from tools.base import Result
from tools.failure import failure
from tools.project_files import project_files
from tools.shown import shown

MOST_LISTED = 50_000
MOST_COMPARED = 3000
SUGGESTIONS = 3


def missing(workspace: Workspace, path: PurePosixPath) -> Result:
    """The error for a file that is not there, with the nearest names when there are any."""
    message = f"No file {shown(path)}."
    names = near_names(str(path), project_files(workspace.root, most=MOST_LISTED).paths)
    if names:
        *others, last = [shown(name) for name in names]
        choice = f"{', '.join(others)} or {last}" if others else last
        message += f" Did you mean {choice}?"
    return failure("not_found", message)


def near_names(wanted: str, paths: tuple[str, ...]) -> list[str]:
    """At most three paths, best first: the same file name elsewhere, then alike paths and file names."""
    folder, _, name = wanted.rpartition("/")
    paths = tuple(sorted(paths, key=lambda path: path.rpartition("/")[0] != folder))
    same = [path for path in paths if path.rpartition("/")[2] == name]
    same.sort(key=lambda path: -SequenceMatcher(None, wanted, path).ratio())
    places: dict[str, list[str]] = {}
    for path in paths:
        places.setdefault(path.rpartition("/")[2], []).append(path)
    alike = get_close_matches(wanted, paths[:MOST_COMPARED], SUGGESTIONS, 0.75)
    for near in get_close_matches(name, list(places)[:MOST_COMPARED], SUGGESTIONS, 0.75):
        alike += places[near]
    return list(dict.fromkeys([*same, *alike]))[:SUGGESTIONS]
