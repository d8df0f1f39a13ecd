"""Something that waits for the person's key, guarded against keys that were meant for something else."""

from collections.abc import Callable
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.containers import Vertical

from glimmer_tui.widgets.sheet import Sheet

GUARD_SECONDS = 0.3


class Prompt(Vertical, can_focus=True):
    """A question above the composer.

    Keys are ignored for the first 300 ms, and for 300 ms more after each ignored one, so that somebody
    who is typing when it appears does not answer it. `clock` counts seconds.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "scroll(-1)", show=False),
        Binding("down,j", "scroll(1)", show=False),
        Binding("pageup", "scroll(-10)", show=False),
        Binding("pagedown", "scroll(10)", show=False),
        Binding("home", "scroll(-1000000)", show=False),
        Binding("end", "scroll(1000000)", show=False),
    ]

    def __init__(self, clock: Callable[[], float], classes: str) -> None:
        super().__init__(classes=f"prompt {classes}")
        self._clock = clock
        self._deaf_until = clock() + GUARD_SECONDS

    def on_mount(self) -> None:
        self._deaf_until = self._clock() + GUARD_SECONDS

    @property
    def guarded(self) -> bool:
        """Whether a key pressed now is ignored."""
        return self._clock() < self._deaf_until

    def on_key(self, event: events.Key) -> None:
        if self.guarded:
            self._deaf_until = self._clock() + GUARD_SECONDS
            event.stop()
            event.prevent_default()
            return
        if self.answer(event.key):
            event.stop()
            event.prevent_default()

    def answer(self, key: str) -> bool:
        """Act on a key; True when it was one of the prompt's. Each prompt has its own: see `Block`."""
        raise NotImplementedError

    def action_scroll(self, rows: int) -> None:
        for sheet in self.query(Sheet):
            sheet.scroll_to(y=sheet.scroll_offset.y + rows, animate=False)
