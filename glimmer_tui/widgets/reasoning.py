"""What the model wrote to itself: one dim line that opens."""

import asyncio
from collections.abc import Callable, Sequence

from textual.content import Content

from glimmer_tui.widgets.block import Fold
from glimmer_tui.widgets.lines import Line, plain_lines
from glimmer_tui.widgets.pace import Pace


class ReasoningBlock(Fold):
    """`Thinking…` while it grows, `Thought for 3 s` afterwards. `clock` counts seconds."""

    def __init__(self, clock: Callable[[], float], *, is_open: bool = False) -> None:
        super().__init__(is_open=is_open, classes="reasoning-block")
        self._clock = clock
        self._started = clock()
        self._seconds: float | None = None
        self._pieces: list[str] = []
        self._drawing: asyncio.Task[None] | None = None
        self._pace = Pace()

    @property
    def live(self) -> bool:
        return self._seconds is None

    def copy(self) -> "ReasoningBlock":
        block = ReasoningBlock(self._clock, is_open=self.is_open)
        block._pieces, block._seconds = list(self._pieces), self._seconds
        return block

    def feed(self, text: str) -> None:
        """Take a piece. Nothing is drawn while the block is closed."""
        self._pieces.append(text)
        if self.is_open and (self._drawing is None or self._drawing.done()):
            self._drawing = asyncio.create_task(self._draw_soon())

    def finish(self) -> None:
        """The reasoning is over."""
        if self._seconds is None:
            self._seconds = self._clock() - self._started
            self.redraw()

    def title(self) -> Content:
        mark = "▾" if self.is_open else "▸"
        if self._seconds is None:
            return Content(f"{mark} Thinking…")
        seconds = round(self._seconds)
        return Content(f"{mark} Thought for {seconds} s" if seconds else f"{mark} Thought briefly")

    def body(self) -> Sequence[Line]:
        return plain_lines("".join(self._pieces).strip())

    async def _draw_soon(self) -> None:
        await asyncio.sleep(self._pace.wait)
        started = self._clock()
        self.redraw()
        self._pace.spent(self._clock() - started)
