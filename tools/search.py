"""`search`: a regular expression over the project's files."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pydantic import BaseModel, ConfigDict

from sandbox.paths import Workspace
from sandbox.sensitive import looks_secret
from tools.base import Display, Plan, Result, Running
from tools.failure import failure
from tools.globs import glob_filter
from tools.located import locate
from tools.near_names import missing
from tools.python_search import BadPattern, Match, python_search
from tools.ripgrep import Outcome, find_ripgrep, records, ripgrep
from tools.shown import shortened, shown
from tools.text_file import decode_line

MOST_MATCHES = 100
LONGEST_LINE = 200
LONGEST_RECORD = 1 << 14
SECONDS = 20.0
# rg ends a match with a line break, so a name that holds one could be taken for another match.
NO_BROKEN_NAMES = "--glob=!*\n*"


class SearchArguments(BaseModel):
    """What `search` takes. `path` is a folder or a file, `glob` filters the files in it."""

    model_config = ConfigDict(extra="forbid")

    pattern: str
    path: str | None = None
    glob: str | None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """The payload of a search. `is_file`: `path` names one file."""

    pattern: str
    path: PurePosixPath
    is_file: bool
    glob: str


class SearchTool:
    """Searches with ripgrep, or in Python on a machine without it."""

    name = "search"
    arguments = SearchArguments

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def prepare(self, arguments: SearchArguments) -> Plan | Result:
        """Find where to search."""
        pattern, glob = arguments.pattern, arguments.glob or ""
        if not pattern or not (_can_be_passed(pattern) and _can_be_passed(glob)):
            told = "Invalid pattern: it is empty, or it or the glob holds a line break or no proper text."
            return failure("invalid_pattern", told)
        place = locate(self._workspace, arguments.path or ".")
        if isinstance(place, Result):
            return place
        if not place.kind:
            return missing(self._workspace, place.path)
        if place.kind == "other":
            return failure("not_a_file", f"{shown(place.path)} is neither a file nor a folder.")
        if ".git" in place.real.parts:
            return failure("refused", "The .git folder is not searched.")
        wanted = Wanted(pattern, place.real, place.kind == "file", glob)
        return Plan((place.reading,), payload=wanted)

    def apply(self, plan: Plan, running: Running) -> Result:
        """Search."""
        wanted: Wanted = plan.payload
        program = find_ripgrep(self._workspace.root)
        outcome = Outcome()
        if program is None:
            found = python_search(self._workspace.root, wanted.path, wanted.pattern)
        else:
            found = _ripgrep_search(program, self._workspace.root, wanted, outcome)
        try:
            matches = _take(found, wanted, running)
        except BadPattern as fault:
            return failure("invalid_pattern", str(fault))
        except OSError as fault:
            return failure("io_error", f"The search could not run: {fault.strerror}.")
        return _report(wanted, matches, outcome.timed_out)


def _can_be_passed(text: str) -> bool:
    """Whether a text can be an argument of a program that works line by line."""
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        return False
    return not any(char in text for char in "\n\0")


def _take(found: Iterator[Match], wanted: Wanted, running: Running) -> list[Match]:
    fits = glob_filter(wanted.glob, str(wanted.path)) if wanted.glob and not wanted.is_file else None
    # Whoever may search a folder was not asked about a secret in it. One that is named was judged by name.
    allowed = wanted.is_file or looks_secret(str(wanted.path))
    taken: list[Match] = []
    for match in found:
        if running.cancelled.is_set():
            break
        if (fits is None or fits(match.path)) and (allowed or not looks_secret(match.path)):
            taken.append(match)
        if len(taken) > MOST_MATCHES:
            break
    return taken


def _report(wanted: Wanted, matches: list[Match], timed_out: bool) -> Result:
    if not matches and not timed_out:
        message = f"No matches for {shown(wanted.pattern)}."
        return Result(message, Display(message))
    lines = [
        f"{shown(match.path)}:{match.line}:{shortened(match.text, LONGEST_LINE)}"
        for match in matches[:MOST_MATCHES]
    ]
    count = f"{len(lines)} match{'' if len(lines) == 1 else 'es'}"
    if len(matches) > MOST_MATCHES:
        count = f"first {count}"
        lines.append(f"[cut: only the first {MOST_MATCHES} matches are shown; narrow with path or glob]")
    if timed_out:
        lines.append(f"[cut: the search was stopped after {SECONDS:.0f} s; narrow with path or glob]")
    text = "\n".join(lines)
    return Result(text, Display(f"{count} for {shown(wanted.pattern)}", text))


def _ripgrep_search(program: str, root: Path, wanted: Wanted, outcome: Outcome) -> Iterator[Match]:
    arguments = ["--line-number", "--no-heading", "--null", "--sort=path", "--crlf", NO_BROKEN_NAMES]
    name = wanted.glob.rpartition("/")[2]
    if wanted.is_file:
        where, folder, arguments = f"./{wanted.path}", root, [*arguments, "--no-filename"]
    else:
        where, folder, arguments = "./", root / wanted.path, [*arguments, "--with-filename"]
        if name and "**" not in name:
            arguments += [f"--type-add=asked:{name}", "--type=asked"]
    found = False
    with ripgrep(program, [*arguments, "--", wanted.pattern, where], folder, SECONDS, outcome) as chunks:
        for record, length in records(chunks, b"\n", LONGEST_RECORD):
            match = _parse(record, length, wanted)
            if match is not None:
                found = True
                yield match
    if not found and outcome.complaint:
        raise BadPattern(_in_short(outcome.complaint))


def _parse(record: bytes, length: int, wanted: Wanted) -> Match | None:
    """A match from a line of rg's output, None for a remark of rg's."""
    path, rest = str(wanted.path), record
    if not wanted.is_file:
        name, null, rest = record.partition(b"\0")
        if not null:
            return None
        path = str(wanted.path / os.fsdecode(name.removeprefix(b"./")))
    line, colon, text = rest.partition(b":")
    if not colon or not line.isdigit():
        return None
    return Match(path, int(line), decode_line(text, torn=length > len(record)))


def _in_short(complaint: str) -> str:
    for line in reversed(complaint.strip().splitlines()):
        if line.startswith("error: "):
            return f"Invalid pattern: {line.removeprefix('error: ')}."
    first = complaint.strip().splitlines()
    return f"Invalid pattern: {first[0] if first else 'ripgrep refused it'}"
