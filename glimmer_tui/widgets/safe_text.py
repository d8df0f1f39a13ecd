"""Foreign text made harmless for the screen: nothing in it can move the cursor, hide or reorder."""

import re

_SEQUENCES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours, cursor movement
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)"  # titles, links
    r"|\x1b[ -/]*[0-~]"
)
_BREAKS = re.compile(r"[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_INVISIBLE = re.compile(
    r"[\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    r"\u200b\u200c\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
_SURROGATES = re.compile(r"[\ud800-\udfff]")


def printable(text: str) -> str:
    """`text` with escape sequences, control, bidi and invisible characters taken out.

    Line feeds and tabs stay. The other line separators become spaces, so that every part of the screen
    counts the same lines; half surrogates, which no terminal can be sent, become the replacement character.
    """
    if text.isascii() and text.isprintable():
        return text
    text = _SEQUENCES.sub("", text)
    text = _BREAKS.sub(" ", text.replace("\r", ""))
    return _SURROGATES.sub("\ufffd", _INVISIBLE.sub("", text))


def one_line(text: str, limit: int = 400) -> str:
    """`text` as one printable line of at most `limit` characters."""
    line = " ".join(printable(text[: limit * 4]).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def terminal_text(text: str) -> str:
    """Terminal output as it would look at rest: a carriage return starts its line again."""
    lines = text.replace("\r\n", "\n").split("\n")
    return printable("\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines))
