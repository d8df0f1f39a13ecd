"""A terminal's screen as a picture, drawn by Glimmer itself: no terminal and no desktop is needed."""

from dataclasses import dataclass

from PIL import Image, ImageDraw

from tools.base import Picture
from tools.pictures.box_drawing import RGB, draw_shape
from tools.pictures.decode import as_png
from tools.pictures.fonts import Font, font_files, load_font
from tools.pictures.terminal_screen import Cell, Colour, Screen, Style, screen_of

COLUMNS, ROWS = 80, 24
"""The size of the terminal that commands run in."""
MOST_LINES = 60
CELL = (9, 19)
"""Width and height of a cell in pixels. A picture is 720 pixels wide, and 1,140 high at most."""

_FONT_SIZE = 15
_FORE, _BACK = (229, 229, 229), (24, 24, 24)
_BASE: tuple[RGB, ...] = (
    (24, 24, 24),
    (205, 49, 49),
    (13, 188, 121),
    (229, 229, 16),
    (59, 120, 225),
    (188, 63, 188),
    (17, 168, 205),
    (229, 229, 229),
    (118, 118, 118),
    (241, 76, 76),
    (35, 209, 139),
    (245, 245, 67),
    (96, 156, 248),
    (214, 112, 214),
    (41, 184, 219),
    (255, 255, 255),
)


@dataclass(frozen=True, slots=True)
class Drawn:
    """The picture, how many lines it shows, and how many were shown above them."""

    picture: Picture
    lines: int
    above: int


def draw_terminal(output: str, *, was_stopped: bool = False) -> Drawn:
    """What a terminal shows after a program printed `output`, its last MOST_LINES lines.

    A full-screen program that `was_stopped` is shown as it was. Blocks for a moment.
    """
    screen = screen_of(output, COLUMNS, ROWS, MOST_LINES, was_stopped=was_stopped)
    return Drawn(as_png(_drawn(screen)), len(screen.lines), screen.above)


def _drawn(screen: Screen) -> Image.Image:
    wide, high = CELL
    canvas = Image.new("RGB", (screen.columns * wide, max(1, len(screen.lines)) * high), _BACK)
    brush = _Brush(ImageDraw.Draw(canvas))
    for row, line in enumerate(screen.lines):
        for column, cell in enumerate(line):
            if cell.text:
                brush.draw(cell, column * wide, row * high)
    return canvas


class _Brush:
    """Draws cells with two fonts: one for East Asian and other wide characters where there is one."""

    def __init__(self, draw: ImageDraw.ImageDraw) -> None:
        narrow, wide = font_files()
        self._draw = draw
        self._narrow = load_font(narrow, _FONT_SIZE)
        self._wide = load_font(wide or narrow, _FONT_SIZE)

    def draw(self, cell: Cell, left: int, top: int) -> None:
        style = cell.style
        fore, back = _colours(style)
        right, bottom = left + CELL[0] * (2 if cell.wide else 1), top + CELL[1]
        if back != _BACK:
            self._draw.rectangle((left, top, right - 1, bottom - 1), fill=back)
        if style.underline:
            self._draw.line((left, bottom - 3, right - 1, bottom - 3), fill=fore)
        if cell.text == " " or style.hidden:
            return
        if not draw_shape(self._draw, cell.text, (left, top, right, bottom), fore, back):
            self._letter(cell, (left + right) / 2, bottom - 5, fore)

    def _letter(self, cell: Cell, middle: float, base: float, fore: RGB) -> None:
        font: Font = self._wide if cell.wide else self._narrow
        strong = 0.4 if cell.style.bold else 0
        self._draw.text((middle, base), cell.text, fill=fore, font=font, anchor="ms", stroke_width=strong)


def _colours(style: Style) -> tuple[RGB, RGB]:
    """Foreground and background of a style."""
    number = style.fore
    if style.bold and isinstance(number, int) and number < 8:
        number += 8
    fore, back = _rgb(number, _FORE), _rgb(style.back, _BACK)
    if style.inverse:
        fore, back = back, fore
    if style.dim:
        fore = ((fore[0] + back[0]) // 2, (fore[1] + back[1]) // 2, (fore[2] + back[2]) // 2)
    return fore, back


def _rgb(colour: Colour, default: RGB) -> RGB:
    match colour:
        case None:
            return default
        case (red, green, blue):
            return red, green, blue
        case int(number) if number < 16:
            return _BASE[number]
        case int(number) if number < 232:
            number -= 16
            levels = (0, 95, 135, 175, 215, 255)
            return levels[number // 36], levels[number // 6 % 6], levels[number % 6]
        case int(number):
            grey = 8 + 10 * (number - 232)
            return grey, grey, grey
