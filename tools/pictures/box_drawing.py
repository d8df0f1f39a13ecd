"""Lines and blocks of terminal programs, drawn so that they meet whatever the font."""

from PIL import ImageDraw

_UP, _RIGHT, _DOWN, _LEFT = 1, 2, 4, 8
_LINES: dict[str, int] = {
    **dict.fromkeys("─━═╌╍┄┅┈┉", _LEFT | _RIGHT),
    **dict.fromkeys("│┃║╎╏┆┇┊┋", _UP | _DOWN),
    **dict.fromkeys("┌┏╔╭┍┎", _RIGHT | _DOWN),
    **dict.fromkeys("┐┓╗╮┑┒", _LEFT | _DOWN),
    **dict.fromkeys("└┗╚╰┕┖", _RIGHT | _UP),
    **dict.fromkeys("┘┛╝╯┙┚", _LEFT | _UP),
    **dict.fromkeys("├┣╠┝┠╟╞", _UP | _DOWN | _RIGHT),
    **dict.fromkeys("┤┫╣┥┨╢╡", _UP | _DOWN | _LEFT),
    **dict.fromkeys("┬┳╦┯┰╤╥", _LEFT | _RIGHT | _DOWN),
    **dict.fromkeys("┴┻╩┷┸╧╨", _LEFT | _RIGHT | _UP),
    **dict.fromkeys("┼╋╬┿╂╪╫", _UP | _RIGHT | _DOWN | _LEFT),
    **dict(zip("╴╵╶╷╸╹╺╻", (_LEFT, _UP, _RIGHT, _DOWN) * 2, strict=True)),
}
_HEAVY = frozenset("━┃┏┓┗┛┣┫┳┻╋═║╔╗╚╝╠╣╦╩╬╸╹╺╻")
_QUADRANTS = dict(zip("▘▝▀▖▌▞▛▗▚▐▜▄▙▟█", (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15), strict=True))
_SHADES = {"░": 0.25, "▒": 0.5, "▓": 0.75}

RGB = tuple[int, int, int]
Box = tuple[int, int, int, int]


def draw_shape(draw: ImageDraw.ImageDraw, char: str, box: Box, fore: RGB, back: RGB) -> bool:
    """Fill the cell `box` (left, top, right, bottom; the last two outside) if the character is a shape."""
    if (arms := _LINES.get(char)) is not None:
        _draw_lines(draw, arms, box, fore, 2 if char in _HEAVY else 1)
        return True
    if (quadrants := _QUADRANTS.get(char)) is not None:
        _draw_quadrants(draw, quadrants, box, fore)
        return True
    if (share := _SHADES.get(char)) is not None:
        mixed = tuple(round(f * share + b * (1 - share)) for f, b in zip(fore, back, strict=True))
        _fill(draw, box, (mixed[0], mixed[1], mixed[2]))
        return True
    return _draw_eighths(draw, char, box, fore)


def _draw_lines(draw: ImageDraw.ImageDraw, arms: int, box: Box, fore: RGB, width: int) -> None:
    left, top, right, bottom = box
    x, y = (left + right - width) // 2, (top + bottom - width) // 2
    if arms & (_LEFT | _RIGHT):
        start, stop = left if arms & _LEFT else x, right if arms & _RIGHT else x + width
        _fill(draw, (start, y, stop, y + width), fore)
    if arms & (_UP | _DOWN):
        start, stop = top if arms & _UP else y, bottom if arms & _DOWN else y + width
        _fill(draw, (x, start, x + width, stop), fore)


def _draw_quadrants(draw: ImageDraw.ImageDraw, quadrants: int, box: Box, fore: RGB) -> None:
    left, top, right, bottom = box
    x, y = (left + right) // 2, (top + bottom) // 2
    corners = ((left, top, x, y), (x, top, right, y), (left, y, x, bottom), (x, y, right, bottom))
    for index, corner in enumerate(corners):
        if quadrants >> index & 1:
            _fill(draw, corner, fore)


def _draw_eighths(draw: ImageDraw.ImageDraw, char: str, box: Box, fore: RGB) -> bool:
    left, top, right, bottom = box
    point = ord(char[0])
    if 0x2581 <= point <= 0x2587:
        high = round((bottom - top) * (point - 0x2580) / 8)
        _fill(draw, (left, bottom - high, right, bottom), fore)
    elif 0x2589 <= point <= 0x258F:
        wide = round((right - left) * (0x2590 - point) / 8)
        _fill(draw, (left, top, left + wide, bottom), fore)
    else:
        return False
    return True


def _fill(draw: ImageDraw.ImageDraw, box: Box, colour: RGB) -> None:
    left, top, right, bottom = box
    if right > left and bottom > top:
        draw.rectangle((left, top, right - 1, bottom - 1), fill=colour)
