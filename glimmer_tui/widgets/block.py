"""What a conversation is made of: blocks, and blocks that fold."""

from collections.abc import Sequence
from typing import ClassVar, Self

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from glimmer_tui.widgets.lines import Line
from glimmer_tui.widgets.sheet import Sheet


class Block(Vertical):
    """One thing in the conversation.

    Each kind has its own `copy`, and one that folds its own `title` and `body`. They raise here because
    Textual's metaclass leaves no room for that of an abstract class.
    """

    @property
    def live(self) -> bool:
        """Still being written to; a live block is never taken out of the conversation."""
        return False

    def copy(self) -> "Block":
        """A new block that shows the same, for when this one was taken out and is wanted back."""
        raise NotImplementedError


class Fold(Block, can_focus=True):
    """A block of one line that opens to show a body. Enter, space or a click opens and closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("enter,space", "flip"),
        ("up,k", "step(-1)"),
        ("down,j", "step(1)"),
        ("right,l", "enter_body"),
    ]
    is_output = True
    """Whether it opens and closes together with all other output."""

    class Stepped(Message):
        """The person moves to the block before (-1) or after (1) this one."""

        def __init__(self, block: "Fold", step: int) -> None:
            super().__init__()
            self.block = block
            self.step = step

    def __init__(self, *, is_open: bool = False, classes: str | None = None) -> None:
        super().__init__(classes=classes)
        self._is_open = is_open
        self._header = Static(classes="fold--header", markup=False)

    def compose(self) -> ComposeResult:
        yield self._header

    def on_mount(self) -> None:
        self.redraw()
        if self._is_open:
            self._show_body()

    @property
    def is_open(self) -> bool:
        return self._is_open

    def title(self) -> Content:
        """The one line."""
        raise NotImplementedError

    def body(self) -> Sequence[Line]:
        """What opening shows; empty when there is nothing to see."""
        raise NotImplementedError

    def redraw(self) -> None:
        """Show the title, and the body when it is open, as they are now."""
        if not self.is_attached:
            return
        self._header.update(self.title())
        if self._is_open:
            self._show_body()

    def set_open(self, is_open: bool) -> None:
        """Open or close."""
        if is_open == self._is_open:
            return
        self._is_open = is_open
        if not self.is_attached:
            return
        if is_open:
            self._show_body()
        else:
            self.remove_class("-open")
            for sheet in self.query(Sheet):
                sheet.remove()
        self._header.update(self.title())

    def action_flip(self) -> None:
        self.set_open(not self._is_open)

    def action_step(self, step: int) -> None:
        self.post_message(self.Stepped(self, step))

    def action_enter_body(self) -> None:
        self.set_open(True)
        for sheet in self.query(Sheet):
            sheet.focus()

    def on_click(self, event: events.Click) -> None:
        if event.widget is self._header:
            event.stop()
            self.action_flip()

    def _show_body(self) -> None:
        lines = self.body()
        self.set_class(bool(lines), "-open")
        sheets = list(self.query(Sheet))
        if sheets:
            sheets[0].show(lines)
        elif lines:
            self.mount(BodySheet(lines))


class BodySheet(Sheet):
    """The body of a fold. Left or Escape goes back to its line."""

    BINDINGS: ClassVar[list[BindingType]] = [("left,escape,h", "leave")]

    def action_leave(self) -> None:
        if isinstance(self.parent, Fold):
            self.parent.focus()


class TextBlock(Block):
    """A block that shows one piece of content and never changes."""

    def __init__(self, content: Content, classes: str = "") -> None:
        super().__init__(classes=classes)
        self._shown = content
        self._kind = classes

    def compose(self) -> ComposeResult:
        yield Static(self._shown, markup=False)

    def copy(self) -> Self:
        return type(self)(self._shown, self._kind)
