"""Colour themes: TOML data checked on reading, then given to Textual under the names the styles use."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from textual.theme import Theme

KEYS: Mapping[str, tuple[str, ...]] = {
    "colors": (
        "background",
        "surface",
        "panel",
        "foreground",
        "muted",
        "rule",
        "accent",
        "success",
        "error",
        "warning",
    ),
    "diff": ("added", "added_background", "removed", "removed_background"),
    "syntax": ("keyword", "string", "number", "comment", "name", "type"),
}
_COLOR = re.compile(r"#[0-9a-fA-F]{6}")


class ThemeError(Exception):
    """A theme file cannot be used; the message names the file, the key and what is expected."""


@dataclass(frozen=True, slots=True)
class Palette:
    """A theme as read: its name, whether it is dark, and a colour (`#rrggbb`) for every `table.key`."""

    name: str
    dark: bool
    colors: Mapping[str, str]


def names() -> tuple[str, ...]:
    """The themes that ship with Glimmer, in order."""
    return tuple(sorted(item.name[:-5] for item in files("themes").iterdir() if item.name.endswith(".toml")))


def load(name: str) -> Palette:
    """The theme called `name`. Raises ThemeError."""
    known = names()
    if name not in known:
        raise ThemeError(f"There is no theme {name!r}. Choose one of: {', '.join(known)}.")
    return parse(files("themes").joinpath(f"{name}.toml").read_text("utf-8"), f"themes/{name}.toml")


def parse(text: str, source: str) -> Palette:
    """Check a theme's TOML `text`; `source` is what errors call it. Raises ThemeError."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ThemeError(f"{source} is not valid TOML: {error}.") from error
    _only(data, ("name", "dark", *KEYS), source, "")
    name, dark = data.get("name"), data.get("dark")
    if not isinstance(name, str) or not name:
        raise ThemeError(f"{source}: name must be a word in quotes.")
    if not isinstance(dark, bool):
        raise ThemeError(f"{source}: dark must be true or false.")
    colors: dict[str, str] = {}
    for table, keys in KEYS.items():
        values: Any = data.get(table)
        if not isinstance(values, dict):
            raise ThemeError(f"{source}: the table [{table}] is missing.")
        _only(values, keys, source, f"{table}.")
        for key in keys:
            colors[f"{table}.{key}"] = _color(values.get(key), f"{source}: {table}.{key}")
    return Palette(name, dark, colors)


def textual_theme(palette: Palette) -> Theme:
    """The palette as a Textual theme. Styles reach its colours as $muted, $diff-added, $syntax-name."""
    get = palette.colors.__getitem__
    accent = get("colors.accent")
    variables = {
        "muted": get("colors.muted"),
        "rule": get("colors.rule"),
        "text-muted": get("colors.muted"),
        "border": accent,
        "border-blurred": get("colors.rule"),
        "scrollbar": get("colors.rule"),
        "scrollbar-hover": get("colors.muted"),
        "scrollbar-active": accent,
        "scrollbar-background": get("colors.background"),
        "scrollbar-background-hover": get("colors.background"),
        "scrollbar-background-active": get("colors.background"),
        "scrollbar-corner-color": get("colors.background"),
        "input-cursor-background": accent,
        "input-cursor-foreground": get("colors.background"),
        "input-selection-background": get("colors.panel"),
        "input-selection-foreground": get("colors.foreground"),
        "screen-selection-background": get("colors.panel"),
        "screen-selection-foreground": get("colors.foreground"),
    }
    for name, color in palette.colors.items():
        table, _, key = name.partition(".")
        if table != "colors":
            variables[f"{table}-{key.replace('_', '-')}"] = color
    return Theme(
        name=palette.name,
        primary=accent,
        accent=accent,
        secondary=get("colors.muted"),
        foreground=get("colors.foreground"),
        background=get("colors.background"),
        surface=get("colors.surface"),
        panel=get("colors.panel"),
        success=get("colors.success"),
        error=get("colors.error"),
        warning=get("colors.warning"),
        dark=palette.dark,
        variables=variables,
    )


def _only(data: Mapping[str, Any], allowed: tuple[str, ...], source: str, prefix: str) -> None:
    for key in data:
        if key not in allowed:
            raise ThemeError(f"{source}: {prefix}{key} is not a key of a theme.")


def _color(value: object, where: str) -> str:
    if value is None:
        raise ThemeError(f"{where} is missing; give a colour such as '#1a2b3c'.")
    if not isinstance(value, str) or not _COLOR.fullmatch(value):
        raise ThemeError(f"{where} is {value!r}, which is not a colour such as '#1a2b3c'.")
    return value
