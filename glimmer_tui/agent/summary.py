"""One plain line that says what a call is about, for lists and logs."""

import unicodedata
from collections.abc import Mapping
from typing import Any

LIMIT = 100
"""Longest summary, in characters."""

_MAIN_ARGUMENT = {
    "diff": "path",
    "edit": "path",
    "list": "path",
    "outline": "path",
    "read": "path",
    "run": "command",
    "search": "pattern",
    "test": "target",
    "write": "path",
}


def summarize(name: str, arguments: Mapping[str, Any]) -> str:
    """The tool's name and its main argument, as in `read a.py` or `run pytest -q`.

    The values come from the model: white space is folded, and characters that could hide or reorder
    what is shown are replaced.
    """
    words = [name]
    main = arguments.get(_MAIN_ARGUMENT.get(name, ""))
    if isinstance(main, str) and main:
        words.append(main + _lines(arguments) if name == "read" else main)
    return one_line(" ".join(words), LIMIT)


def one_line(text: str, limit: int) -> str:
    """`text` on one line of at most `limit` characters, without control or formatting characters."""
    shown = "".join(_shown(character) for character in text[: 4 * limit])
    folded = " ".join(shown.split())
    return folded if len(folded) <= limit else folded[: limit - 1] + "…"


def _shown(character: str) -> str:
    if character.isspace():
        return " "
    return "\N{REPLACEMENT CHARACTER}" if unicodedata.category(character).startswith("C") else character


def _lines(arguments: Mapping[str, Any]) -> str:
    """`:3-9`, `:3-` or `:-9` for the lines asked for, "" for all."""
    start, end = arguments.get("start"), arguments.get("end")
    if not isinstance(start, int) and not isinstance(end, int):
        return ""
    return f":{start if isinstance(start, int) else ''}-{end if isinstance(end, int) else ''}"
