"""Screens as pixels: terminals of several fonts, sizes and colours. Nothing of a font is kept but its glyphs'
pixels, in memory."""

import random
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

from nano.vision.screens import Line

RGB = tuple[int, int, int]
FIRST, LAST = 32, 126
"""Codes of the first and the last character that are drawn."""
_STYLES = ("plain", "bold", "red", "bright", "green", "cyan", "dim")


@dataclass(frozen=True, slots=True)
class Face:
    """A font in one size, in cells of `wide` x `high` pixels; no file is Pillow's own font."""

    regular: Path | None
    bold: Path | None
    size: int
    wide: int
    high: int


@dataclass(frozen=True, slots=True)
class Theme:
    """The background and one colour a style, in the order of the styles."""

    back: RGB
    fore: tuple[RGB, ...]


@dataclass(frozen=True, slots=True)
class Setting:
    """How a screen is drawn: where its first cell lies in pixels, and what is added as noise (0..255)."""

    face: Face
    theme: Theme
    left: int
    top: int
    noise: float = 0.0


DARK = Theme(
    (24, 24, 24),
    ((229, 229, 229),) * 2 + ((205, 49, 49), (241, 76, 76), (13, 188, 121), (17, 168, 205), (118, 118, 118)),
)
LIGHT = Theme(
    (255, 255, 255),
    ((30, 30, 30),) * 2 + ((190, 20, 20), (205, 49, 49), (10, 120, 60), (5, 100, 140), (120, 120, 120)),
)


def faces_in(folder: Path | None) -> list[tuple[Path | None, Path | None]]:
    """Regular and bold files of the monospace fonts below a folder; Pillow's own font where there is none."""
    if folder is None:
        return [(None, None)]
    files = {path.name: path for path in sorted(folder.rglob("*.ttf"))}
    pairs = [
        (path, files.get(f"{stem}{dash}Bold.ttf"))
        for name, path in files.items()
        for stem, dash in [_stem(name)]
        if stem and ("Mono" in stem or stem in ("Hack", "FiraCode"))
    ]
    return [*pairs] or [(None, None)]


def _stem(name: str) -> tuple[str, str]:
    if name.endswith("-Regular.ttf"):
        return name.removesuffix("-Regular.ttf"), "-"
    return (name.removesuffix(".ttf"), "-") if "-" not in name else ("", "")


def draw_theme(rng: random.Random) -> Theme:
    """One of the two themes, with its colours moved a little, and now and then of another tint."""
    base = rng.choice((DARK, LIGHT))

    def moved(colour: RGB, by: int) -> RGB:
        red, green, blue = (max(0, min(255, part + rng.randint(-by, by))) for part in colour)
        return red, green, blue

    return Theme(moved(base.back, 24), tuple(moved(colour, 22) for colour in base.fore))


def draw_face(rng: random.Random, fonts: list[tuple[Path | None, Path | None]], wide: int) -> Face:
    """A face whose cells are `wide` pixels wide."""
    regular, bold = rng.choice(fonts)
    size = round(wide / 0.6)
    high = round(size * rng.uniform(1.15, 1.4))
    return Face(regular, bold, size, wide, high)


def draw(lines: list[Line], setting: Setting, width: int, height: int) -> npt.NDArray[np.uint8]:
    """Lines as a picture [height, width, 3]; what does not fit is cut off."""
    face, theme = setting.face, setting.theme
    rows, columns = len(lines), max(1, -(-(width - setting.left) // face.wide))
    codes = np.zeros((rows, columns), np.int64)
    styles = np.zeros((rows, columns), np.int64)
    for row, line in enumerate(lines):
        column = 0
        for span in line:
            text = span.text[: max(0, columns - column)].encode("ascii", "replace")
            codes[row, column : column + len(text)] = np.frombuffer(text, np.uint8).astype(np.int64) - FIRST
            styles[row, column : column + len(text)] = _STYLES.index(span.style)
            column += len(text)
    heavy = (styles == 1) | (styles == 3)
    cover = np.where(heavy[..., None, None], glyphs(face, True)[codes], glyphs(face, False)[codes])
    colours = np.array(theme.fore, np.float32)[styles]
    back = np.array(theme.back, np.float32)
    share = cover.astype(np.float32)[..., None] / 255.0
    cells = back + share * (colours[:, :, None, None, :] - back)
    sheet = cells.transpose(0, 2, 1, 3, 4).reshape(rows * face.high, columns * face.wide, 3)
    canvas = np.empty((height, width, 3), np.float32)
    canvas[:] = back
    top, left = setting.top, setting.left
    first, last = max(0, -top), min(sheet.shape[0], height - top)
    wide = min(sheet.shape[1], width - left)
    if last > first:
        canvas[top + first : top + last, left : left + wide] = sheet[first:last, :wide]
    if setting.noise:
        canvas += np.random.default_rng(rows * width + top).normal(0.0, setting.noise, canvas.shape)
    return canvas.clip(0, 255).astype(np.uint8)


@cache
def glyphs(face: Face, bold: bool) -> npt.NDArray[np.uint8]:
    """How much of every pixel each character covers: [characters, high, wide]."""
    file = (face.bold or face.regular) if bold else face.regular
    font = ImageFont.load_default(face.size) if file is None else ImageFont.truetype(file, face.size)
    base = round(face.high / 2 + face.size * 0.36)
    sheet = np.zeros((LAST - FIRST + 1, face.high, face.wide), np.uint8)
    for code in range(FIRST + 1, LAST + 1):
        cell = Image.new("L", (face.wide, face.high))
        ImageDraw.Draw(cell).text((face.wide / 2, base), chr(code), fill=255, font=font, anchor="ms")
        sheet[code - FIRST] = np.asarray(cell)
    return sheet


def scaled(picture: npt.NDArray[np.uint8], width: int, height: int) -> npt.NDArray[np.uint8]:
    """Stretched as the encoder's loader stretches."""
    if picture.shape[:2] == (height, width):
        return picture
    return np.asarray(Image.fromarray(picture).resize((width, height), Image.Resampling.LANCZOS))
