"""What the model is told around the person's words. Byte-stable: no clock, no folder, no machine."""

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from engine.messages import Image, Message, Text

INSTRUCTIONS_FILE = "AGENTS.md"
INSTRUCTIONS_LIMIT = 16 * 1024
"""Most bytes taken from the project's instructions."""

NOTE_PREFIX = "[Glimmer]"
"""Begins a user message that Glimmer wrote, not the person."""

_FRAME = "project_instructions"


@dataclass(frozen=True, slots=True)
class Instructions:
    """The project's own instructions. `cut`: the file is longer than what was taken."""

    text: str
    cut: bool = False


@cache
def system_message() -> Message:
    """The system message. Its id is fixed, so that an engine may keep it read across conversations."""
    text = files("glimmer_tui.agent").joinpath("prompts", "system.md").read_text("utf-8")
    return Message("system", (Text(text.strip()),), id="system")


def read_instructions(root: Path) -> Instructions | None:
    """The instructions at the project's root, when there is a regular file of that name. Raises OSError."""
    path = root / INSTRUCTIONS_FILE
    if path.is_symlink() or not path.is_file():
        return None
    with path.open("rb") as file:
        data = file.read(INSTRUCTIONS_LIMIT + 1)
    text = data[:INSTRUCTIONS_LIMIT].decode("utf-8", "replace").strip()
    return Instructions(text, len(data) > INSTRUCTIONS_LIMIT) if text else None


def user_message(
    text: str, images: tuple[Image, ...] = (), instructions: Instructions | None = None
) -> Message:
    """The person's message: exactly their words, behind the project's instructions when there are some."""
    words = (Text(text),) if text else ()
    if instructions is None:
        return Message("user", (*words, *images))
    return Message("user", (Text(_framed(instructions)), *words, *images))


def note_message(text: str) -> Message:
    """A note of Glimmer's to the model, marked as such."""
    return Message("user", (Text(f"{NOTE_PREFIX} {text}"),))


def _framed(instructions: Instructions) -> str:
    """The instructions as a block of data that their own text cannot close."""
    body = instructions.text.replace(f"</{_FRAME}", f"<\\/{_FRAME}")
    more = "\n(cut here: the file is longer)" if instructions.cut else ""
    return f'<{_FRAME} file="{INSTRUCTIONS_FILE}">\n{body}{more}\n</{_FRAME}>\n\n'
