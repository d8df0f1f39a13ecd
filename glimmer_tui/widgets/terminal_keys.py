"""Keys that Textual does not tell apart by itself."""

from enum import StrEnum
from typing import cast


class _Key(StrEnum):
    """In the form of Textual's own table."""

    ALT_ENTER = "alt+enter"


def teach_alt_enter() -> None:
    """Let Alt+Enter be a key of its own in terminals without the kitty keyboard protocol.

    They send Escape and a carriage return, which Textual reads as a plain Enter: the message would be sent
    where a new line was wanted. The table is Textual's own; without it Ctrl+J still makes new lines.
    """
    try:
        from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
    except ImportError:
        return
    cast(dict[str, object], ANSI_SEQUENCES_KEYS).setdefault("\x1b\r", (_Key.ALT_ENTER,))
