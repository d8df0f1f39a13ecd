"""Fonts to draw a terminal with: a monospace font of this machine, or the one that comes with Pillow."""

from functools import cache
from pathlib import Path

from PIL import ImageFont

Font = ImageFont.FreeTypeFont | ImageFont.ImageFont

_FOLDERS = (
    "/usr/share/fonts",
    "/usr/local/share/fonts",
    "/System/Library/Fonts",
    "/Library/Fonts",
)
_MONOSPACE = (
    "DejaVuSansMono.ttf",
    "LiberationMono-Regular.ttf",
    "NotoSansMono-Regular.ttf",
    "UbuntuMono-R.ttf",
    "FreeMono.ttf",
    "Menlo.ttc",
    "SFNSMono.ttf",
    "Monaco.ttf",
)
_EAST_ASIAN = (
    "NotoSansCJK-Regular.ttc",
    "NotoSansMonoCJK-Regular.ttc",
    "NotoSansCJKsc-Regular.otf",
    "wqy-zenhei.ttc",
    "wqy-microhei.ttc",
    "DroidSansFallbackFull.ttf",
    "PingFang.ttc",
    "Hiragino Sans GB.ttc",
)
_MOST_FILES = 20_000


@cache
def font_files() -> tuple[Path | None, Path | None]:
    """The files of a monospace font and of one with East Asian characters; None where there is none."""
    wanted: dict[str, Path] = {}
    names = {*_MONOSPACE, *_EAST_ASIAN}
    seen = 0
    for folder in _FOLDERS:
        for path in Path(folder).rglob("*.[to]t[fc]"):
            seen += 1
            if path.name in names:
                wanted.setdefault(path.name, path)
            if seen >= _MOST_FILES:
                break
    return _first(_MONOSPACE, wanted), _first(_EAST_ASIAN, wanted)


def load_font(file: Path | None, size: int) -> Font:
    """The font in a size in pixels; Pillow's own where there is no file or it cannot be read."""
    if file is not None:
        try:
            return ImageFont.truetype(file, size)
        except (OSError, ValueError):
            pass
    return ImageFont.load_default(size)


def _first(names: tuple[str, ...], found: dict[str, Path]) -> Path | None:
    return next((found[name] for name in names if name in found), None)
