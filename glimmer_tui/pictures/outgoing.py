"""A message with its pictures as it goes to the model: those attached before, and those its text names."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from glimmer_tui.pictures.attached import Attached, PictureError
from glimmer_tui.pictures.mentions import MOST, find_pictures, mentions_picture


@dataclass(frozen=True, slots=True)
class Outgoing:
    """What was typed, and the same with placeholders and pictures.

    `insists`: the person attached a picture or mentioned one with @. Otherwise the message makes sense with
    paths alone, to a model that sees none.
    """

    typed: str
    text: str
    pictures: tuple[Attached, ...] = ()
    insists: bool = False


def outgoing(typed: str, attached: Sequence[Attached], root: Path) -> Outgoing:
    """The message that is sent for what was typed. Blocks: files are read. Raises PictureError."""
    said = find_pictures(typed, root, len(attached) + 1)
    pictures = (*attached, *said.pictures)
    if len(pictures) > MOST:
        raise too_many()
    heads = " ".join(picture.placeholder(number) for number, picture in enumerate(attached, 1))
    text = "\n".join(part for part in (heads, said.text) if part)
    insists = bool(attached) or (bool(said.pictures) and mentions_picture(typed, root))
    return Outgoing(typed, text, pictures, insists)


def too_many() -> PictureError:
    """More pictures than one message may hold."""
    return PictureError(f"A message can hold {MOST} pictures.", "", "Send them in several messages.")


def dropped(text: str, root: Path) -> tuple[Attached, ...]:
    """The pictures whose paths the text is made of; () where it holds more. Blocks; raises PictureError."""
    said = find_pictures(text, root)
    rest = said.text
    for number, picture in enumerate(said.pictures, 1):
        rest = rest.replace(picture.placeholder(number), "")
    return () if rest.strip() else said.pictures
