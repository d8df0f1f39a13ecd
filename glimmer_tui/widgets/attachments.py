"""The pictures that will go with the next message, above the composer."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.content import Content
from textual.widgets import Static

from engine.messages import Image
from engine.vision.grid import DEFAULT_CAP, grid_of
from glimmer_tui.widgets.safe_text import one_line

if TYPE_CHECKING:
    from glimmer_tui.pictures.attached import Attached

PICTURE = "\N{WHITE SQUARE CONTAINING BLACK SMALL SQUARE}"
MOST_SHOWN = 4


class Attachments(Static):
    """A row for each picture: its name, its size, and what it takes of the context."""

    def __init__(self) -> None:
        super().__init__(markup=False)
        self._pictures: list[Attached] = []
        self._cap = 0
        self.display = False

    @property
    def pictures(self) -> "tuple[Attached, ...]":
        return tuple(self._pictures)

    @property
    def cap(self) -> int:
        """The most tokens of one picture; 0 while the model is not known."""
        return self._cap

    @cap.setter
    def cap(self, tokens: int) -> None:
        self._cap = tokens
        self._draw()

    def add(self, pictures: "Sequence[Attached]") -> None:
        """Put pictures behind those that are there."""
        self._pictures += pictures
        self._draw()

    def drop_last(self) -> None:
        """Take the last one away."""
        del self._pictures[-1:]
        self._draw()

    def take(self) -> "tuple[Attached, ...]":
        """Take all of them away, to be sent."""
        taken = self.pictures
        self._pictures.clear()
        self._draw()
        return taken

    def give_back(self, pictures: "Sequence[Attached]") -> None:
        """Put pictures that could not be sent before those that are there."""
        self._pictures[:0] = pictures
        self._draw()

    def _draw(self) -> None:
        self.display = bool(self._pictures)
        hidden = max(0, len(self._pictures) - MOST_SHOWN)
        rows = [Content.styled(f"… and {hidden} more", "$muted")] if hidden else []
        rows += [self._row(picture) for picture in self._pictures[hidden:]]
        if rows:
            rows[-1] = Content.assemble(rows[-1], ("   Backspace takes it away", "$muted"))
        self.update(Content("\n").join(rows))

    def _row(self, picture: "Attached") -> Content:
        about = "" if self._cap else "~"
        tokens = token_words(tokens_of(picture.image, self._cap))
        return Content.assemble(
            (f"{PICTURE} ", "$accent"),
            one_line(picture.name, 40),
            (f"  {picture.width}x{picture.height} · {about}{tokens}", "$muted"),
        )


def token_words(count: int) -> str:
    """As in "1,196 tokens"."""
    return f"{count:,} token{'' if count == 1 else 's'}"


def tokens_of(image: Image, cap: int) -> int:
    """What a picture takes of the context under a cap; 0 stands for the usual one."""
    return grid_of(image.width, image.height, cap or DEFAULT_CAP).tokens
