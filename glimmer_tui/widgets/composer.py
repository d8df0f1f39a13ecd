"""Where the person writes: several lines, history at its edges, completion of commands."""

from textual import events
from textual.message import Message
from textual.widgets import TextArea

from glimmer_tui.pictures.names import may_be_dropped
from glimmer_tui.widgets.past_inputs import PastInputs

NEW_LINE_KEYS = ("ctrl+j", "alt+enter", "shift+enter", "ctrl+enter")
MARK = "\N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK}"
PLACEHOLDER = "Say what you want changed"


class Composer(TextArea):
    """Enter sends, Ctrl+J, Alt+Enter and Shift+Enter make a new line, Up and Down reach the past."""

    class Submitted(Message):
        """The person sent `text`."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Steered(Message):
        """A key for the completions shown above: "up", "down", "accept", "send" or "close"."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    class Edge(Message):
        """A key that means nothing in an empty composer: "home", "end" or "question_mark"."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    class Emptied(Message):
        """Backspace at the start of the text: the last picture is to be taken away."""

    class ClipboardWanted(Message):
        """Whatever the clipboard holds is to be put into the message."""

    class Dropped(Message):
        """The terminal pasted what looks like dropped files; it is not in the text yet."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def __init__(self) -> None:
        super().__init__(
            soft_wrap=True,
            tab_behavior="focus",
            compact=True,
            highlight_cursor_line=False,
            placeholder=PLACEHOLDER,
        )
        self.cursor_blink = False
        self.completing = False
        """Whether completions are shown, so that Up, Down, Tab, Enter and Escape are theirs."""
        self.has_pictures = False
        """Whether pictures wait to be sent, so that Backspace can reach them and no text is needed."""
        self._past = PastInputs()

    async def _on_key(self, event: events.Key) -> None:
        if self._handled(event.key):
            event.stop()
            event.prevent_default()
            return
        await super()._on_key(event)

    async def _on_paste(self, event: events.Paste) -> None:
        """Text is left to the base class. Some terminals paste nothing at all where a picture was copied."""
        if not event.text:
            message: Message = self.ClipboardWanted()
        elif may_be_dropped(event.text):
            message = self.Dropped(event.text)
        else:
            return
        event.stop()
        event.prevent_default()
        self.post_message(message)

    def action_paste(self) -> None:
        self.post_message(self.ClipboardWanted())

    def give_back(self, text: str) -> None:
        """Put a text that could not be sent back, before what was written since."""
        self.load_text(f"{text}\n{self.text}" if self.text.strip() else text)
        self.move_cursor(self.document.end)

    def action_cursor_up(self, select: bool = False) -> None:
        at_edge = self.wrapped_document.location_to_offset(self.cursor_location).y == 0
        if select or not at_edge or (older := self._past.older(self.text)) is None:
            super().action_cursor_up(select)
            return
        self._replace(older)

    def action_cursor_down(self, select: bool = False) -> None:
        last = self.wrapped_document.height - 1
        at_edge = self.wrapped_document.location_to_offset(self.cursor_location).y >= last
        if select or not at_edge or (newer := self._past.newer()) is None:
            super().action_cursor_down(select)
            return
        self._replace(newer)

    def send(self) -> None:
        """Submit what is written, unless it is blank and no picture waits."""
        text = self.text.strip()
        if not text and not self.has_pictures:
            return
        if text:
            self._past.add(text)
        self.clear()
        self.post_message(self.Submitted(text))

    def _handled(self, key: str) -> bool:
        if self.completing and key in ("up", "down", "tab", "escape"):
            self.post_message(self.Steered({"tab": "accept", "escape": "close"}.get(key, key)))
        elif key == "enter":
            if self.completing:
                self.post_message(self.Steered("send"))
            else:
                self.send()
        elif key == "backspace" and self.has_pictures and self._is_at_start:
            self.post_message(self.Emptied())
        elif key in NEW_LINE_KEYS:
            self.insert("\n")
        elif not self.text and key in ("home", "end", "question_mark"):
            self.post_message(self.Edge(key))
        else:
            return False
        return True

    @property
    def _is_at_start(self) -> bool:
        return self.selection.is_empty and self.cursor_location == (0, 0)

    def _replace(self, text: str) -> None:
        self.load_text(text)
        self.move_cursor(self.document.end)
