"""The lines of a sheet, made from what a tool shows: code, terminal text, a diff, plain text."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from textual.content import Content

from glimmer_tui.widgets.safe_text import printable, terminal_text
from glimmer_tui.widgets.syntax import highlighted, lines_of
from tools.base import Display, FileChange

LineKind = Literal["plain", "added", "removed", "note"]
CONTEXT = 3
COMPARED = 4_000
"""Changed lines beyond which a diff is all removed, then all added: comparing them takes too long."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line: what stands left of it (a number and a sign), its text, and how it is coloured."""

    text: Content
    gutter: str = ""
    kind: LineKind = "plain"


def plain_lines(text: str) -> list[Line]:
    """Plain text, a line each."""
    return [Line(Content(part.expandtabs(4))) for part in printable(text).rstrip("\n").split("\n")]


def display_lines(display: Display) -> list[Line]:
    """The body of a tool's result in the form it asks for."""
    if not display.body:
        return []
    match display.form:
        case "code":
            text = printable(display.body).rstrip("\n").expandtabs(4)
            return [Line(part) for part in lines_of(highlighted(text, path=display.path))]
        case "diff":
            return diff_lines(printable(display.body).rstrip("\n"), display.path)
        case "terminal":
            return plain_lines(terminal_text(display.body))
        case "text":
            return plain_lines(display.body)


def change_lines(change: FileChange, shown: Callable[[str], str] = printable) -> list[Line]:
    """The change as a numbered diff with a little context. `shown` makes each line fit to be seen."""
    before, after = _split(change.before or ""), _split(change.after)
    if before and after and all(part.endswith("\r") for part in before[:-1] + after[:-1]):
        before, after = [p.removesuffix("\r") for p in before], [p.removesuffix("\r") for p in after]
    old, new = _coloured(before, change.path, shown), _coloured(after, change.path, shown)
    width = len(str(max(len(before), len(after), 1)))
    lines: list[Line] = []
    last = 0
    for group in _groups(before, after):
        if group[0][1] > last and lines:
            lines.append(Line(Content("⋯"), " " * (width + 2), "note"))
        for tag, a, a_end, b, b_end in group:
            if tag == "equal":
                lines += [Line(new[b + i], f"{b + i + 1:>{width}}   ") for i in range(b_end - b)]
                continue
            lines += [Line(old[i], f"{i + 1:>{width}} - ", "removed") for i in range(a, a_end)]
            lines += [Line(new[i], f"{i + 1:>{width}} + ", "added") for i in range(b, b_end)]
        last = group[-1][2]
    return lines + _end_notes(change)


def count_changes(lines: list[Line]) -> tuple[int, int]:
    """How many lines are added and removed."""
    return sum(line.kind == "added" for line in lines), sum(line.kind == "removed" for line in lines)


def _split(text: str) -> list[str]:
    if not text:
        return []
    return text.removesuffix("\n").split("\n")


def _coloured(lines: list[str], path: str, shown: Callable[[str], str]) -> list[Content]:
    text = "\n".join(_indented(shown, line) for line in lines)
    return lines_of(highlighted(text, path=path)) if lines else []


def _indented(shown: Callable[[str], str], line: str) -> str:
    """A line made visible; the tabs it starts with are its indentation and stay."""
    body = line.lstrip("\t")
    return ("\t" * (len(line) - len(body))).expandtabs(4) + shown(body).replace("\n", " ").expandtabs(4)


Opcode = tuple[str, int, int, int, int]


def _groups(before: list[str], after: list[str]) -> list[list[Opcode]]:
    """Changes with context around them. What both sides share at the ends is not compared line by line."""
    start, most = 0, min(len(before), len(after))
    while start < most and before[start] == after[start]:
        start += 1
    end = 0
    while end < most - start and before[-1 - end] == after[-1 - end]:
        end += 1
    a_end, b_end = len(before) - end, len(after) - end
    if max(a_end, b_end) - start > COMPARED:
        inner: list[Opcode] = [("replace", start, a_end, start, b_end)]
    else:
        matcher = SequenceMatcher(None, before[start:a_end], after[start:b_end], autojunk=False)
        inner = [(t, a + start, b + start, c + start, d + start) for t, a, b, c, d in matcher.get_opcodes()]
    codes = [("equal", 0, start, 0, start), *inner, ("equal", a_end, len(before), b_end, len(after))]
    return _with_context([code for code in codes if code[1] < code[2] or code[3] < code[4]])


def _with_context(codes: list[Opcode]) -> list[list[Opcode]]:
    groups: list[list[Opcode]] = [[]]
    for index, (tag, a, a_end, b, b_end) in enumerate(codes):
        if tag != "equal":
            groups[-1].append((tag, a, a_end, b, b_end))
            continue
        head = CONTEXT if index > 0 else 0
        tail = CONTEXT if index < len(codes) - 1 else 0
        if a_end - a <= head + tail:
            groups[-1].append((tag, a, a_end, b, b_end))
            continue
        if head:
            groups[-1].append((tag, a, a + head, b, b + head))
            groups.append([])
        if tail:
            groups[-1].append((tag, a_end - tail, a_end, b_end - tail, b_end))
    return [group for group in groups if any(code[0] != "equal" for code in group)]


def _end_notes(change: FileChange) -> list[Line]:
    if change.before is None:
        return []
    had, has = change.before.endswith("\n"), change.after.endswith("\n")
    if had == has or not change.before or not change.after:
        return []
    words = "the last line loses its line feed" if had else "the last line gets a line feed"
    return [Line(Content(words), "", "note")]


_HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")


def diff_lines(text: str, path: str = "") -> list[Line]:
    """A unified diff as numbered lines; of its headers only the files' names stay, when there are several."""
    rows = text.split("\n")
    starts = [int(match[group]) for row in rows if (match := _HUNK.match(row)) for group in (1, 3)]
    width = len(str(max(starts, default=1) + 9))
    code = lines_of(highlighted("\n".join(row[1:].expandtabs(4) for row in rows), path=path))
    files = sum(row.startswith("+++ ") for row in rows)
    lines: list[Line] = []
    old = new = old_left = new_left = 0
    for row, colored in zip(rows, code, strict=True):
        if old_left <= 0 and new_left <= 0:
            if match := _HUNK.match(row):
                old, new = int(match[1]), int(match[3])
                old_left, new_left = int(match[2] or 1), int(match[4] or 1)
                if lines and lines[-1].gutter:
                    lines.append(Line(Content("⋯"), " " * (width + 2), "note"))
            elif not row.startswith(("--- ", "+++ ")) or (files > 1 and row.startswith("+++ ")):
                lines.append(Line(Content(row.removeprefix("+++ b/").expandtabs(4)), "", "note"))
        elif row.startswith("+"):
            lines.append(Line(colored, f"{new:>{width}} + ", "added"))
            new, new_left = new + 1, new_left - 1
        elif row.startswith("-"):
            lines.append(Line(colored, f"{old:>{width}} - ", "removed"))
            old, old_left = old + 1, old_left - 1
        elif row.startswith("\\"):
            lines.append(Line(Content(row.expandtabs(4)), "", "note"))
        else:
            lines.append(Line(colored, f"{new:>{width}}   "))
            old, new, old_left, new_left = old + 1, new + 1, old_left - 1, new_left - 1
    return lines
