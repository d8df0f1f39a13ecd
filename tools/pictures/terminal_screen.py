"""What a terminal shows after a program wrote to it: lines of cells with colours.

A small terminal: text, SGR colours, cursor movement, erasing, scrolling, and the second screen that
full-screen programs use. Everything else is swallowed. Whatever is written, the size stays bounded.
"""

import re
from collections import deque
from dataclasses import dataclass, field, replace
from functools import lru_cache

from rich.cells import get_character_cell_size

Colour = int | tuple[int, int, int] | None
"""A number of the 256 colours, red, green and blue, or the terminal's own."""

_TOKEN = re.compile(
    "\x1b\\[(?P<private>[<=>?]?)(?P<numbers>[0-9;:]{0,200})[ -/]*(?P<final>[@-~])"
    "|\x1b[\\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\\\)?"
    "|\x1b[ -/]*(?P<escape>[0-~])?"
    "|(?P<text>[^\x00-\x1f\x7f-\x9f]+)"
    "|(?P<control>[\x00-\x1f\x7f-\x9f])"
)
_TAB = 8
_MOST_NUMBER = 9999


@dataclass(frozen=True, slots=True)
class Style:
    """How a cell looks."""

    fore: Colour = None
    back: Colour = None
    bold: bool = False
    dim: bool = False
    italic: bool = False
    underline: bool = False
    inverse: bool = False
    hidden: bool = False


PLAIN = Style()


@dataclass(frozen=True, slots=True)
class Cell:
    """One place: a character with its combining marks, "" for the right half of a wide one."""

    text: str = " "
    style: Style = PLAIN
    wide: bool = False


BLANK = Cell()
Line = list[Cell]


@dataclass(slots=True)
class _Grid:
    """One screen of lines and its cursor."""

    lines: list[Line]
    row: int = 0
    column: int = 0
    saved: tuple[int, int] = (0, 0)
    last: int = 0
    """The lowest line that anything was written to."""


@dataclass(frozen=True, slots=True)
class Screen:
    """The last lines of what was shown, `columns` cells each, and how many were shown before them."""

    lines: list[Line] = field(repr=False)
    columns: int
    above: int


def screen_of(output: str, columns: int, rows: int, most: int, *, was_stopped: bool = False) -> Screen:
    """What a terminal of this size shows after `output`, with up to `most` lines of what scrolled away.

    A newline also returns the cursor to the first column. A full-screen program that `was_stopped` is shown
    as it was, though its screen was put away at its end.
    """
    terminal = _Terminal(columns, rows, most)
    terminal.write(output)
    return terminal.screen(most, was_stopped)


class _Terminal:
    def __init__(self, columns: int, rows: int, most: int) -> None:
        self._columns, self._rows = columns, rows
        self._main = _Grid(self._blank())
        self._other: _Grid | None = None
        self._put_away: _Grid | None = None
        self._scrolled: deque[Line] = deque(maxlen=most)
        self._gone = 0
        self._style = PLAIN

    @property
    def _grid(self) -> _Grid:
        return self._other or self._main

    def write(self, output: str) -> None:
        for token in _TOKEN.finditer(output):
            if (text := token["text"]) is not None:
                self._text(text)
            elif (control := token["control"]) is not None:
                self._control(control)
            elif (final := token["final"]) is not None:
                self._sequence(token["private"], _numbers(token["numbers"]), final, token["numbers"])
            elif (escape := token["escape"]) is not None:
                self._escape(escape)

    def screen(self, most: int, was_stopped: bool) -> Screen:
        shown = self._other or (self._put_away if was_stopped else None)
        if shown is not None:
            return Screen(shown.lines, self._columns, 0)
        lines = [*self._scrolled, *self._main.lines[: self._main.last + 1]]
        while len(lines) > 1 and all(cell == BLANK for cell in lines[-1]):
            lines.pop()
        return Screen(lines[-most:], self._columns, self._gone + max(0, len(lines) - most))

    def _blank(self) -> list[Line]:
        return [[BLANK] * self._columns for _ in range(self._rows)]

    def _text(self, text: str) -> None:
        for char in text:
            width = 1 if char.isascii() else get_character_cell_size(char)
            if width:
                self._put(char, width)
            else:
                self._combine(char)

    def _combine(self, char: str) -> None:
        grid = self._grid
        line, at = grid.lines[grid.row], min(grid.column, self._columns) - 1
        while at > 0 and line[at].text == "":
            at -= 1
        if at >= 0 and len(line[at].text) < 8:
            line[at] = replace(line[at], text=line[at].text + char)

    def _put(self, char: str, width: int) -> None:
        grid = self._grid
        if grid.column + width > self._columns:
            self._newline()
        line = grid.lines[grid.row]
        _split(line, grid.column)
        if width == 2:
            _split(line, grid.column + 1)
        line[grid.column] = Cell(char, self._style, width == 2)
        if width == 2 and grid.column + 1 < self._columns:
            line[grid.column + 1] = Cell("", self._style)
        grid.column += width
        grid.last = max(grid.last, grid.row)

    def _control(self, char: str) -> None:
        grid = self._grid
        match char:
            case "\n" | "\x0b" | "\x0c":
                self._newline()
            case "\r":
                grid.column = 0
            case "\b":
                grid.column = max(0, min(grid.column, self._columns) - 1)
            case "\t":
                grid.column = min(self._columns - 1, (grid.column // _TAB + 1) * _TAB)
            case _:
                pass

    def _newline(self) -> None:
        grid = self._grid
        grid.column = 0
        if grid.row + 1 < self._rows:
            grid.row += 1
        else:
            top = grid.lines.pop(0)
            grid.lines.append([BLANK] * self._columns)
            if grid is self._main:
                self._gone += len(self._scrolled) == self._scrolled.maxlen
                self._scrolled.append(top)
        grid.last = max(grid.last, grid.row)

    def _escape(self, char: str) -> None:
        grid = self._grid
        match char:
            case "7":
                grid.saved = grid.row, grid.column
            case "8":
                grid.row, grid.column = grid.saved
            case "D" | "E":
                self._newline()
            case "M":
                if grid.row == 0:
                    grid.lines.pop()
                    grid.lines.insert(0, [BLANK] * self._columns)
                grid.row = max(0, grid.row - 1)
            case "c":
                self._style = PLAIN
                self._erase_screen(2)
                grid.row = grid.column = 0
            case _:
                pass

    def _sequence(self, private: str, numbers: list[int], final: str, written: str) -> None:
        first = numbers[0] if numbers else 0
        if private == "?" and final in "hl":
            if any(number in (47, 1047, 1049) for number in numbers):
                self._switch(final == "h")
            return
        if private:
            return
        match final:
            case "m":
                self._style = _styled(self._style, written)
            case "J":
                self._erase_screen(first)
            case "K":
                self._erase_line(self._grid.row, first)
            case "s" | "u":
                self._escape("7" if final == "s" else "8")
            case _:
                self._move(final, numbers)

    def _move(self, final: str, numbers: list[int]) -> None:
        grid = self._grid
        first = numbers[0] if numbers else 0
        second = numbers[1] if len(numbers) > 1 else 0
        row, column, step = grid.row, min(grid.column, self._columns - 1), max(1, first)
        match final:
            case "A":
                row -= step
            case "B":
                row += step
            case "C":
                column += step
            case "D":
                column -= step
            case "E" | "F":
                row, column = row + (step if final == "E" else -step), 0
            case "G" | "`":
                column = step - 1
            case "d":
                row = step - 1
            case "H" | "f":
                row, column = step - 1, max(1, second) - 1
            case "P" | "X" | "@":
                self._shift(final, min(step, self._columns))
            case _:
                return
        grid.row = max(0, min(row, self._rows - 1))
        grid.column = max(0, min(column, self._columns - 1))

    def _shift(self, final: str, count: int) -> None:
        """Delete, blank or insert cells at the cursor."""
        grid = self._grid
        line, at = grid.lines[grid.row], min(grid.column, self._columns - 1)
        blanks = [BLANK] * count
        match final:
            case "P":
                line[at:] = (line[at + count :] + blanks)[: self._columns - at]
            case "@":
                line[at:] = (blanks + line[at:])[: self._columns - at]
            case _:
                line[at : at + count] = blanks[: self._columns - at]
        _mend(line)

    def _erase_screen(self, how: int) -> None:
        grid = self._grid
        if how in (0, 1):
            self._erase_line(grid.row, how)
        first, stop = {0: (grid.row + 1, self._rows), 1: (0, grid.row)}.get(how, (0, self._rows))
        for row in range(first, stop):
            grid.lines[row] = [self._erased()] * self._columns
        if how == 3:
            self._scrolled.clear()
            self._gone = 0

    def _erase_line(self, row: int, how: int) -> None:
        grid = self._grid
        at = min(grid.column, self._columns - 1)
        first, stop = {0: (at, self._columns), 1: (0, at + 1)}.get(how, (0, self._columns))
        line = grid.lines[row]
        line[first:stop] = [self._erased()] * (stop - first)
        _mend(line)
        if self._style.back is not None:
            grid.last = max(grid.last, row)

    def _erased(self) -> Cell:
        return BLANK if self._style.back is None else Cell(" ", Style(back=self._style.back))

    def _switch(self, to_other: bool) -> None:
        if to_other:
            self._other = _Grid(self._blank())
        elif self._other is not None:
            self._put_away, self._other = self._other, None


def _split(line: Line, at: int) -> None:
    """Blank the other half of a wide character that is about to be written over."""
    if at >= len(line):
        return
    if line[at].text == "" and at > 0:
        line[at - 1] = Cell(" ", line[at - 1].style)
    elif line[at].wide and at + 1 < len(line):
        line[at + 1] = Cell(" ", line[at].style)


def _mend(line: Line) -> None:
    """Blank halves of wide characters whose other half is gone."""
    for at, cell in enumerate(line):
        is_left = cell.wide and not (at + 1 < len(line) and line[at + 1].text == "")
        is_right = cell.text == "" and not (at > 0 and line[at - 1].wide)
        if is_left or is_right:
            line[at] = Cell(" ", cell.style)


def _numbers(written: str) -> list[int]:
    return [min(_MOST_NUMBER, int(part[:5] or 0)) for part in re.split("[;:]", written)] if written else []


@lru_cache(maxsize=1024)
def _styled(style: Style, written: str) -> Style:
    """The style after an SGR sequence with these numbers."""
    # With colons a colour may name its colour space, and an underline its form.
    written = re.sub("([345]8):2:[0-9]*:([0-9]+:[0-9]+:[0-9]+)", r"\1:2:\2", written)
    codes = _numbers(re.sub("(?<![0-9:])4:[1-5]", "4", written)) or [0]
    at = 0
    while at < len(codes):
        code = codes[at]
        at += 1
        if code in (38, 48, 58):
            colour, used = _colour(codes[at:])
            at += used
            if code != 58:
                style = replace(style, fore=colour) if code == 38 else replace(style, back=colour)
        else:
            style = _simple(style, code)
    return style


def _simple(style: Style, code: int) -> Style:
    if code == 0:
        return PLAIN
    if 30 <= code <= 37 or 90 <= code <= 97:
        return replace(style, fore=code - 30 if code < 90 else code - 82)
    if 40 <= code <= 47 or 100 <= code <= 107:
        return replace(style, back=code - 40 if code < 100 else code - 92)
    changes = {
        1: {"bold": True},
        2: {"dim": True},
        3: {"italic": True},
        4: {"underline": True},
        7: {"inverse": True},
        8: {"hidden": True},
        22: {"bold": False, "dim": False},
        23: {"italic": False},
        24: {"underline": False},
        27: {"inverse": False},
        28: {"hidden": False},
        39: {"fore": None},
        49: {"back": None},
    }
    return replace(style, **changes[code]) if code in changes else style


def _colour(codes: list[int]) -> tuple[Colour, int]:
    """The colour behind 38 or 48, and how many numbers it took."""
    match codes:
        case [5, number, *_]:
            return min(255, number), 2
        case [2, red, green, blue, *_]:
            return (min(255, red), min(255, green), min(255, blue)), 4
        case _:
            return None, len(codes)
