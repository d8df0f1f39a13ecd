"""Many lines in a bounded window: only those in sight are drawn, long ones are wrapped, nothing is hidden."""

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len
from textual.content import Content
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.visual import Visual

from glimmer_tui.widgets.lines import Line


class Sheet(ScrollView, can_focus=True):
    """A read-only window on `lines`. Its height follows them up to the `max-height` of its style."""

    ALLOW_SELECT = False
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "sheet--plain",
        "sheet--added",
        "sheet--removed",
        "sheet--note",
        "sheet--gutter",
    }

    def __init__(self, lines: Sequence[Line], *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._lines = list(lines)
        self._width = 0
        self._rows: list[Line] = []
        self._rows_of: list[Line] | None = None
        self._strips: dict[int, Strip] = {}

    def show(self, lines: Sequence[Line]) -> None:
        """Replace the lines; stays at the bottom when it was there."""
        at_end = self.scroll_offset.y >= self.max_scroll_y
        self._lines = list(lines)
        self._wrap(self._width)
        self.refresh(layout=True)
        if at_end:
            self.scroll_end(animate=False)

    def show_first_change(self) -> None:
        """Scroll to the first added or removed row when it is out of sight or at the very bottom."""
        for row, line in enumerate(self._rows):
            if line.kind in ("added", "removed"):
                if row >= self.size.height - 1:
                    self.scroll_to(y=row - min(self.size.height // 4, row), animate=False)
                return

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        # The bar takes its column from the text, so wrap for the narrower of the two.
        self._wrap(max(width - self.styles.scrollbar_size_vertical, 1))
        return len(self._rows)

    def on_resize(self) -> None:
        self._wrap(max(self.size.width - self.styles.scrollbar_size_vertical, 1))

    def notify_style_update(self) -> None:
        self._strips.clear()
        super().notify_style_update()

    def render_line(self, y: int) -> Strip:
        row = y + self.scroll_offset.y
        if row >= len(self._rows):
            return Strip.blank(self.size.width, self.rich_style)
        if row not in self._strips:
            self._strips[row] = self._drawn(self._rows[row])
        return self._strips[row]

    def _drawn(self, line: Line) -> Strip:
        style = self.get_visual_style(f"sheet--{line.kind}")
        content = line.text
        if line.gutter:
            content = Content.assemble((line.gutter, ".sheet--gutter"), line.text)
        if line.kind in ("added", "removed") and line.gutter:
            # The sign keeps the line's own colour, so that the change reads without its background too.
            content = Content.assemble(
                (line.gutter[:-2], ".sheet--gutter"), (line.gutter[-2:], f".sheet--{line.kind}"), line.text
            )
        width = max(self.size.width, 1)
        strips = Visual.to_strips(self, content, width, 1, style, pad=True)
        return strips[0].crop_extend(0, width, style.rich_style)

    def _wrap(self, width: int) -> None:
        if width == self._width and self._rows_of is self._lines:
            return
        self._width, self._rows_of = width, self._lines
        self._strips.clear()
        self._rows = [row for line in self._lines for row in wrapped(line, width)]
        self.virtual_size = Size(0, len(self._rows))


def wrapped(line: Line, width: int) -> list[Line]:
    """The line as rows of at most `width` cells, the gutter included; only the first shows its number."""
    room = max(width - len(line.gutter), 2)
    if line.text.cell_length <= room and len(line.text) <= room * 4:
        return [line]
    first, *rest = line.text.divide(_cuts(line.text.plain, room))
    blank = " " * len(line.gutter)
    return [Line(first, line.gutter, line.kind), *(Line(part, blank, line.kind) for part in rest)]


def _cuts(text: str, room: int) -> list[int]:
    """Where to break `text` so that no row is wider than `room`, or made of endless zero-width characters."""
    cuts: list[int] = []
    cells = start = 0
    for index, char in enumerate(text):
        size = 1 if " " <= char <= "~" else cell_len(char)
        if cells + size > room or index - start >= room * 4:
            cuts.append(index)
            cells, start = 0, index
        cells += size
    return cuts
