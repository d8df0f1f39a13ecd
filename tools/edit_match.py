"""Where an edit's old text lies in a file: exactly, or on whole lines that differ in white space only.

Never by similarity: a near match is only shown to the model, so that it can copy the real lines.
"""

from dataclasses import dataclass
from difflib import SequenceMatcher

from tools.shown import shortened
from tools.text_file import split_lines

LINES_NAMED = 10
LINES_SHOWN = 5
WINDOWS_COMPARED = 60
LONGEST_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Places:
    """Spans of the text to be replaced by `new`, in order. `tolerant`: white space differed."""

    spans: tuple[tuple[int, int], ...]
    new: str
    tolerant: bool = False


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Why there is no place, for the model."""

    kind: str
    message: str


def find_places(name: str, text: str, old: str, new: str, everywhere: bool) -> Places | Mismatch:
    """Find what to replace in `text`. All line ends are LF; `name` is the file as the model reads it."""
    if not old:
        if text or not new:
            return Mismatch("invalid_arguments", "old is empty. Copy the text to replace from the file.")
        return Places(((0, 0),), new)
    if old == new:
        return Mismatch("no_change", "old and new are the same. Nothing was changed.")
    starts = occurrences(text, old)
    if not starts:
        return _tolerant(name, text, old, new)
    if len(starts) == 1 or everywhere:
        return Places(_apart(starts, len(old)), new)
    return Mismatch(
        "not_unique",
        f"old occurs {len(starts)} times in {name}, at lines {_lines_of(text, starts)}. "
        "Add surrounding lines to make it unique, or set all.",
    )


def occurrences(text: str, old: str) -> list[int]:
    """Every start of `old` in `text`, overlapping ones too."""
    starts: list[int] = []
    at = text.find(old)
    while at >= 0:
        starts.append(at)
        at = text.find(old, at + 1)
    return starts


def _apart(starts: list[int], length: int) -> tuple[tuple[int, int], ...]:
    spans: list[tuple[int, int]] = []
    for start in starts:
        if not spans or start >= spans[-1][1]:
            spans.append((start, start + length))
    return tuple(spans)


def _lines_of(text: str, starts: list[int]) -> str:
    numbers: list[int] = []
    line, at = 1, 0
    for start in starts[:LINES_NAMED]:
        line += text.count("\n", at, start)
        at = start
        numbers.append(line)
    if len(starts) > LINES_NAMED:
        return f"{', '.join(map(str, numbers))} and {len(starts) - LINES_NAMED} more"
    return f"{', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"


def _tolerant(name: str, text: str, old: str, new: str) -> Places | Mismatch:
    lines = split_lines(text)
    wanted = [_loose(line) for line in split_lines(old)]
    found: list[int] = []
    if any(wanted):
        have = [_loose(line) for line in lines]
        size = len(wanted)
        found = [at for at in range(len(have) - size + 1) if have[at : at + size] == wanted]
    if not found:
        return Mismatch("no_match", f"No match for old in {name}. " + _nearest(lines, old))
    if len(found) > 1:
        where = ", ".join(str(at + 1) for at in found[:LINES_NAMED])
        return Mismatch(
            "not_unique",
            f"old matches {len(found)} places in {name} that differ in white space only, at lines {where}. "
            "Copy the lines exactly, with surrounding lines to make them unique.",
        )
    start = sum(len(line) + 1 for line in lines[: found[0]])
    end = start + sum(len(line) + 1 for line in lines[found[0] : found[0] + len(wanted)])
    if not old.endswith("\n"):
        end -= 1
    elif end > len(text):
        new = new.removesuffix("\n")
    return Places(((start, min(end, len(text))),), new, tolerant=True)


def _loose(line: str) -> str:
    return " ".join(line.split())


def _nearest(lines: list[str], old: str) -> str:
    if not lines:
        return "The file is empty."
    wanted = [_loose(line) for line in split_lines(old) if line.strip()][:LINES_SHOWN] or [""]
    at = _best_window([_loose(line) for line in lines], wanted)
    size = min(len(wanted), LINES_SHOWN)
    first = max(0, min(at - (LINES_SHOWN - size) // 2, len(lines) - LINES_SHOWN))
    shown = [
        f"{number}| {shortened(line, LONGEST_SHOWN)}"
        for number, line in enumerate(lines[first : first + LINES_SHOWN], first + 1)
    ]
    return "The nearest lines are:\n" + "\n".join(shown)


def _best_window(have: list[str], wanted: list[str]) -> int:
    """The start of the lines most like `wanted`: first by shared words, then by characters."""
    shared = [0.0] * len(have)
    words = [set(line.split()) for line in wanted]
    for number, line in enumerate(have):
        mine = set(line.split())
        for offset, theirs in enumerate(words[: number + 1]):
            shared[number - offset] += len(mine & theirs) / (len(theirs) + 1)
    rough = sorted(range(len(have)), key=lambda at: -shared[at])[:WINDOWS_COMPARED]

    def alike(at: int) -> float:
        return sum(
            SequenceMatcher(None, line[:LONGEST_SHOWN], have[at + i][:LONGEST_SHOWN], autojunk=False).ratio()
            for i, line in enumerate(wanted)
            if at + i < len(have)
        )

    return max(sorted(rough), key=alike)
