"""Where the person writes: several lines, history at its edges, completion of commands."""

from textual import events
from textual.message import Message
from textual.widgets import TextArea

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
        self._past = PastInputs()

    async def _on_key(self, event: events.Key) -> None:
        if self._handled(event.key):
            event.stop()
            event.prevent_default()
            return
        await super()._on_key(event)

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
        """Submit what is written, unless it is blank."""
        text = self.text.strip()
        if not text:
            return
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
        elif key in NEW_LINE_KEYS:
            self.insert("\n")
        elif not self.text and key in ("home", "end", "question_mark"):
            self.post_message(self.Edge(key))
        else:
            return False
        return True

    def _replace(self, text: str) -> None:
        self.load_text(text)
        self.move_cursor(self.document.end)
