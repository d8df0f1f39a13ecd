"""A picture of the conversation: one line that opens to show it in coloured characters."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from engine.messages import Image
from glimmer_tui.widgets.attachments import PICTURE, token_words
from glimmer_tui.widgets.block import Fold
from glimmer_tui.widgets.lines import Line
from glimmer_tui.widgets.safe_text import one_line

if TYPE_CHECKING:
    from PIL.Image import Image as Thumbnail

MOST_COLUMNS, MOST_ROWS, FEWEST_ROWS = 48, 12, 3


class PictureBlock(Fold):
    """A picture that the person or a tool showed the model. `o` opens it outside the terminal.

    Without colours there is nothing to draw, and its line is all there is.
    """

    BINDINGS: ClassVar[list[BindingType]] = [("o", "open_outside")]
    is_output = False

    class Wanted(Message):
        """The person wants to see the picture in the system's viewer."""

        def __init__(self, data: bytes) -> None:
            super().__init__()
            self.data = data

    def __init__(self, image: Image, name: str, tokens: int, *, is_open: bool = True) -> None:
        super().__init__(is_open=is_open, classes="picture-block")
        self._image = image
        self._label = one_line(name, 60)
        self._tokens = tokens
        self._is_gone = False
        self._preview = Preview(image)

    def compose(self) -> ComposeResult:
        yield from super().compose()
        yield self._preview

    def on_mount(self) -> None:
        self._preview.display = False
        super().on_mount()

    def watch_has_focus(self, has_focus: bool) -> None:
        super().watch_has_focus(has_focus)
        self.redraw()

    def copy(self) -> "PictureBlock":
        block = PictureBlock(self._image, self._label, self._tokens, is_open=self.is_open)
        block._is_gone = self._is_gone
        return block

    def mark_gone(self) -> None:
        """The model no longer sees it."""
        self._is_gone = True
        self.redraw()

    def title(self) -> Content:
        size = f"  {self._image.width}x{self._image.height} · {token_words(self._tokens)}"
        mark = " ▾" if self.is_open else " ▸"
        return Content.assemble(
            (f"{PICTURE} ", "$muted" if self._is_gone else "$accent"),
            (self._label, "bold"),
            (size, "$muted"),
            (" · out of the model's view" if self._is_gone else "", "$warning"),
            (mark if self._is_drawn else "", "$muted"),
            ("  o opens it" if self.has_focus else "", "$accent"),
        )

    def body(self) -> Sequence[Line]:
        return ()

    def set_open(self, is_open: bool) -> None:
        super().set_open(is_open)
        if self.is_attached and not is_open:
            self._preview.display = False

    def action_open_outside(self) -> None:
        self.post_message(self.Wanted(self._image.data))

    def action_enter_body(self) -> None:
        self.set_open(True)

    @property
    def _is_drawn(self) -> bool:
        return not self.app.no_color

    def _show_body(self) -> None:
        self.set_class(self._is_drawn, "-open")
        self._preview.display = self._is_drawn


class Preview(Widget):
    """The picture, two pixels a cell, as large as there is room. It is decoded beside the event loop."""

    def __init__(self, image: Image) -> None:
        super().__init__()
        self._image = image
        self._small: Thumbnail | None = None
        self._strips: tuple[Size, list[Strip]] | None = None

    async def on_mount(self) -> None:
        self.run_worker(self._load(), group="preview")

    async def _load(self) -> None:
        from glimmer_tui.pictures.half_blocks import thumbnail

        self._small = await asyncio.to_thread(thumbnail, self._image.data)
        self._strips = None
        self.refresh()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        from glimmer_tui.pictures.half_blocks import size_in_cells

        rows = min(MOST_ROWS, max(FEWEST_ROWS, viewport.height // 3))
        return size_in_cells(self._image.width, self._image.height, min(width, MOST_COLUMNS), rows)[1]

    def render_line(self, y: int) -> Strip:
        if self._small is None or self.size.width < 1:
            return Strip.blank(self.size.width, self.rich_style)
        if self._strips is None or self._strips[0] != self.size:
            self._strips = (self.size, self._drawn(self._small))
        strips = self._strips[1]
        return strips[y] if y < len(strips) else Strip.blank(self.size.width, self.rich_style)

    def notify_style_update(self) -> None:
        self._strips = None
        super().notify_style_update()

    def _drawn(self, small: "Thumbnail") -> list[Strip]:
        from glimmer_tui.pictures.half_blocks import HALF, cells_of, size_in_cells

        room = min(self.size.width, MOST_COLUMNS), self.size.height
        columns, rows = size_in_cells(self._image.width, self._image.height, *room)
        strips: list[Strip] = []
        for row in cells_of(small, columns, rows):
            segments = [
                Segment(HALF, Style(color=Color.from_rgb(*upper), bgcolor=Color.from_rgb(*lower)))
                for upper, lower in row
            ]
            strips.append(Strip(segments, columns).extend_cell_length(self.size.width, self.rich_style))
        return strips
