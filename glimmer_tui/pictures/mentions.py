"""Pictures that are named in a typed message: `@shot.png`, or a path that was pasted or dropped into it.

A mention that names a picture becomes a placeholder, and the picture goes with the message. What is not
there, or is an ordinary text file, stays as it was written: the model reads files by itself. Nothing but
pictures is ever taken out of a file here. A path without @ counts only when it is absolute, as those are that
a terminal drops: code that says "./logo.png" stays code.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from glimmer_tui.pictures.attached import Attached, PictureError, picture_from_file
from glimmer_tui.pictures.names import ENDS
from sandbox.sensitive import looks_secret
from tools.pictures.header import Damaged, NotAPicture, read_header
from tools.shown import shown

MOST = 16

_MENTION = re.compile(
    r"""(?<![^\s(\[{<,;:"'])
    (?:
      @"(?P<at_double>(?:[^"\\\n]|\\.)+)"
      | @'(?P<at_single>[^'\n]+)'
      | @(?P<at>(?:\\.|[^\s\\"'@])(?:\\.|[^\s\\])*)
      | (?P<url>file://[^\s'"<>]+)
      | "(?P<double>~?/(?:[^"\\\n]|\\.)+)"
      | '(?P<single>(?:~?/|file://)(?:[^'\n]|'\\'')+)'
      | (?P<bare>~?/(?:\\.|[^\s\\])+)
    )""",
    re.VERBOSE,
)
_AFTER = ".,;:!?)]}>\"'"
"""What may follow a path in a sentence."""


@dataclass(frozen=True, slots=True)
class Said:
    """A message as it goes to the model: its text with placeholders, and the pictures in their order."""

    text: str
    pictures: tuple[Attached, ...]


def find_pictures(text: str, root: Path, first: int = 1) -> Said:
    """The message with the pictures that it names, from `first` on. Blocks: files are read.

    Relative paths start at `root`; a path may lead out of it, since the person wrote it. The same file named
    twice is one picture. Raises PictureError for a picture that cannot be used, for a folder, and for a file
    that looks like a secret.
    """
    finder = _Finder(root, first)
    lines = [finder.line(line) for line in text.split("\n")]
    return Said("\n".join(lines), tuple(finder.found.values()))


def mentions_picture(text: str, root: Path) -> bool:
    """Whether a picture is mentioned with @, and not only named by its path. Blocks: headers are read."""
    for match in _MENTION.finditer(text):
        kind, written = match.lastgroup or "", match[match.lastgroup or 0]
        for candidate, _ in _candidates(kind, written) if kind.startswith("at") else ():
            path = _path(candidate, root)
            if path is not None and _is_picture(path):
                return True
    return False


def picture_at(written: str, root: Path) -> Attached:
    """The picture at a path as a person types it, for a command that takes nothing else.

    Blocks; raises PictureError for whatever is no picture.
    """
    text = written.strip().removeprefix("@")
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        text = text[1:-1]
    if not text:
        raise PictureError("No picture is named.", "", "Write a path: /image shot.png")
    for candidate in (text, _unescaped(text)):
        path = _path(candidate, root)
        if path is not None and os.path.lexists(path):
            return picture_from_file(path)
    raise PictureError(f"There is no file {shown(text)[:200]}.", "", "Check the path.")


class _Finder:
    """Replaces mentions, a line at a time, and keeps what they named."""

    def __init__(self, root: Path, first: int) -> None:
        self._root = root
        self._first = first
        self.found: dict[Path, Attached] = {}

    def line(self, line: str) -> str:
        whole = line.strip()
        # Some terminals drop a path with blanks as it is.
        is_path = " " in whole and whole.startswith(("/", "~/"))
        if is_path and (said := self._said(whole, "", is_mention=False)) is not None:
            return line.replace(whole, said)
        return _MENTION.sub(self._replaced, line)

    def _replaced(self, match: re.Match[str]) -> str:
        kind, written = match.lastgroup or "", match[match.lastgroup or 0]
        is_mention = kind.startswith("at")
        for candidate, rest in _candidates(kind, written):
            said = self._said(candidate, rest, is_mention=is_mention)
            if said is not None:
                return said
        return match[0]

    def _said(self, candidate: str, rest: str, *, is_mention: bool) -> str | None:
        """What stands in the place of a path; None where it stays as it is."""
        path = _path(candidate, self._root)
        if path is None or not os.path.exists(path):
            return None
        looks_like_one = candidate.lower().endswith(ENDS)
        if not looks_like_one and not (is_mention and _must_be_a_picture(path)):
            return None
        return f"{self._placeholder(path)}{rest}"

    def _placeholder(self, path: Path) -> str:
        key = Path(os.path.realpath(path))
        if key not in self.found:
            if len(self.found) == MOST:
                what = f"A message can hold {MOST} pictures."
                raise PictureError(what, "This one names more.", "Send them in several messages.")
            self.found[key] = picture_from_file(path)
        return self.found[key].placeholder(self._first + list(self.found).index(key))


def _must_be_a_picture(path: Path) -> bool:
    """Whether a mention without a picture's name is one, or is nothing that may be mentioned.

    False for an ordinary file: it stays in the text as its name. Raises PictureError for the others.
    """
    if path.is_dir():
        why = "Only a picture can be put into a message."
        todo = "Name a picture in it, or write the folder without @: the model can list it."
        raise PictureError(f"{shown(path.name or str(path))} is a folder.", why, todo)
    is_one = _is_picture(path)
    if not is_one and looks_secret(path.as_posix()):
        why = "It is no picture, and its name looks like that of a secret."
        todo = "Write its name without @ if the model is only to know of it."
        raise PictureError(f"{shown(path.name)} is not sent.", why, todo)
    return is_one


def _is_picture(path: Path) -> bool:
    if not path.is_file():
        return False
    try:
        with path.open("rb") as stream:
            read_header(stream)
    except (NotAPicture, OSError):
        return False
    except Damaged:
        return True
    return True


def _candidates(kind: str, written: str) -> list[tuple[str, str]]:
    """The paths that a mention can mean, the longest first, each with what then follows it."""
    match kind:
        case "url":
            ends = _shortened(written)
            return [(unquote(urlsplit(url).path), rest) for url, rest in ends]
        case "single" if written.startswith("file://"):
            return [(unquote(urlsplit(written).path), "")]
        case "single":
            return [(written.replace("'\\''", "'"), "")]
        case "at_single":
            return [(written, "")]
        case "at_double" | "double":
            return [(written, ""), (_unescaped(written), "")]
        case _:
            plain = _shortened(written)
            return plain + [(_unescaped(path), rest) for path, rest in plain if "\\" in path]


def _shortened(written: str) -> list[tuple[str, str]]:
    """The words, and the words without the punctuation behind them."""
    ends = [(written, "")]
    path = written
    while path and path[-1] in _AFTER and len(ends) <= 4:
        path = path[:-1]
        ends.append((path, written[len(path) :]))
    return ends


def _unescaped(path: str) -> str:
    return re.sub(r"\\(.)", r"\1", path)


def _path(written: str, root: Path) -> Path | None:
    """An absolute path, or None for what can be none."""
    if "\0" in written or not written or len(written) > 4096:
        return None
    if written.startswith("file://"):
        written = unquote(urlsplit(written).path)
    try:
        path = root / Path(written).expanduser()
        os.lstat(path.parent)
    except (OSError, RuntimeError, ValueError):
        return None
    return path
