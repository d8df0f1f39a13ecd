"""A decoded picture in RGB without transparency, made smaller on the way, a tile at a time.

The decoded original is the largest thing in memory; a second one of its size is never made.
"""

from PIL import Image

NEUTRAL = (128, 128, 128)
"""What shows through: on grey, black and white drawings can both be seen."""
_TILE = 1024
_WITH_ALPHA = frozenset({"RGBA", "RGBa", "LA", "La", "PA"})


def flattened(picture: Image.Image, target: tuple[int, int]) -> Image.Image:
    """RGB, reduced by whole factors to the smallest size that is no smaller than `target`."""
    across, down = (max(1, have // want) for have, want in zip(picture.size, target, strict=True))
    width, height = picture.size
    result = Image.new("RGB", (-(-width // across), -(-height // down)))
    wide, high = across * max(1, _TILE // across), down * max(1, _TILE // down)
    for top in range(0, height, high):
        for left in range(0, width, wide):
            box = (left, top, min(width, left + wide), min(height, top + high))
            tile = _rgb(picture.crop(box)).reduce((across, down))
            result.paste(tile, (left // across, top // down))
    return result


def _rgb(tile: Image.Image) -> Image.Image:
    if tile.mode.startswith("I"):
        # Sixteen bits a pixel; Pillow would cut them off at 255 instead of scaling them.
        return tile.convert("I").point(lambda value: value * (1 / 256)).convert("L").convert("RGB")
    if tile.mode in _WITH_ALPHA or "transparency" in tile.info:
        background = Image.new("RGBA", tile.size, (*NEUTRAL, 255))
        background.alpha_composite(tile.convert("RGBA"))
        return background.convert("RGB")
    return tile.convert("RGB")
