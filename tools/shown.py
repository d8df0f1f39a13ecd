"""Names from the disk, made safe to print: one line, no characters that hide or reorder."""

import unicodedata
from pathlib import PurePosixPath

HIDING = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})


def shown(path: PurePosixPath | str) -> str:
    """A path for the model and the person. Control, bidi and broken characters become escapes."""
    text = str(path)
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        char.encode("unicode_escape").decode("ascii") if unicodedata.category(char) in HIDING else char
        for char in text
    )


def size(count: int) -> str:
    """A number of bytes in words, as in "12 bytes" or "3.4 MB"."""
    if count < 1000:
        return f"{count} bytes"
    if count < 1_000_000:
        return f"{count / 1000:.1f} kB"
    if count < 1_000_000_000:
        return f"{count / 1_000_000:.1f} MB"
    return f"{count / 1_000_000_000:.1f} GB"


def shortened(text: str, limit: int) -> str:
    """At most `limit` characters of a line, with a mark where the rest is missing."""
    return text if len(text) <= limit else f"{text[:limit]}[cut: rest of line]"


def head_and_tail(text: str, limit: int, hint: str = "", missing: int = 0) -> str:
    """At most about `limit` characters of a text: its beginning, a mark, and its end, cut at line ends.

    `missing`: characters that were cut from its middle before.
    """
    if len(text) <= limit:
        return text
    head, tail = text[: limit // 2], text[len(text) - limit // 2 :]
    if "\n" in head[limit // 4 :]:
        head = head[: head.rindex("\n")]
    if "\n" in tail[: limit // 4]:
        tail = tail[tail.index("\n") + 1 :]
    missing += len(text) - len(head) - len(tail)
    return f"{head}\n[cut: {missing} characters{hint}]\n{tail}"
