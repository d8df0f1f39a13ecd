"""The search without ripgrep: the same files, the same matches for ordinary patterns."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tools.text_file import decode_line
from tools.walk import walk_files

LARGEST_FILE = 1 << 26
# Bytes that are no UTF-8 fit no pattern in ripgrep; a line break fits none here.
BROKEN = re.compile("[\udc80-\udcff]")


class BadPattern(Exception):
    """The pattern is no regular expression; the message says why, in short."""


@dataclass(frozen=True, slots=True)
class Match:
    """One line that matched: workspace-relative path, number from 1, text without its line end."""

    path: str
    line: int
    text: str


def python_search(root: Path, where: PurePosixPath, pattern: str) -> Iterator[Match]:
    """Match line by line. Raises BadPattern. Binary files and files over 64 MB are passed over."""
    try:
        expression = re.compile(pattern)
    except re.error as fault:
        raise BadPattern(f"Invalid pattern: {fault.msg}.") from None
    is_file = (root / where).is_file()
    for path in [str(where)] if is_file else walk_files(root, where):
        if is_file or "\n" not in path.removeprefix(str(where)):
            yield from _matches(root, path, expression)


def _matches(root: Path, path: str, expression: re.Pattern[str]) -> Iterator[Match]:
    file = root / path
    try:
        if file.stat().st_size > LARGEST_FILE:
            return
        data = file.read_bytes()
    except OSError:
        return
    if b"\0" in data:
        return
    ends = data.count(b"\n")
    for number, line in enumerate(data.split(b"\n"), 1):
        if number > ends and not line:
            return
        if expression.search(BROKEN.sub("\n", line.removesuffix(b"\r").decode("utf-8", "surrogateescape"))):
            yield Match(path, number, decode_line(line))
