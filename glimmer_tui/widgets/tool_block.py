"""A tool call as one line with its state; opening it shows what the tool shows."""

import asyncio
import re
from collections.abc import Sequence
from typing import Literal

from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from glimmer_tui.widgets.block import Fold
from glimmer_tui.widgets.lines import Line, display_lines
from glimmer_tui.widgets.pace import FLUSHES_A_SECOND
from glimmer_tui.widgets.safe_text import one_line, terminal_text
from tools.base import Display

State = Literal["running", "waiting", "ok", "failed", "denied"]
GLYPHS: dict[State, tuple[str, str]] = {
    "running": ("◌", "$accent"),
    "waiting": ("◆", "$accent"),
    "ok": ("✓", "$success"),
    "failed": ("✗", "$error"),
    "denied": ("⊘", "$muted"),
}
REFUSED = ("declined", "cancelled", "not_allowed")
"""Errors that mean the call was not allowed to run."""
_RED = re.compile(r"\b[1-9]\d* (?:failed|errors?)\b|^Tests (?:failed|stopped)|\bexit code [1-9]\d*\W*$")
"""A test or a command whose own result is bad, although the call itself went well."""
TAIL_LINES = 4
KEPT_OUTPUT = 20_000


class ToolBlock(Fold):
    """One call. While it runs, the last lines of its output stand under it."""

    def __init__(self, name: str, summary: str, *, is_open: bool = False) -> None:
        super().__init__(is_open=is_open, classes="tool-block")
        self._name = one_line(name, 40)
        self._summary = one_line(summary)
        self._state: State = "running"
        self._display: Display | None = None
        self._error = ""
        self._output = ""
        self._drawing: asyncio.Task[None] | None = None
        self._tail = Static(classes="tool-block--tail", markup=False)

    def compose(self) -> ComposeResult:
        yield from super().compose()
        yield self._tail

    def on_mount(self) -> None:
        super().on_mount()
        self._draw_tail()

    @property
    def live(self) -> bool:
        return self._state in ("running", "waiting")

    @property
    def tool(self) -> str:
        """The tool's name."""
        return self._name

    @property
    def state(self) -> State:
        return self._state

    def copy(self) -> "ToolBlock":
        block = ToolBlock(self._name, self._summary, is_open=self.is_open)
        block._state, block._display, block._error = self._state, self._display, self._error
        return block

    def set_state(self, state: State) -> None:
        """The call waits for the person, or runs on."""
        if self._display is None:
            self._state = state
            self.redraw()

    def write(self, chunk: str) -> None:
        """Take a piece of live output."""
        self._output = (self._output + chunk)[-KEPT_OUTPUT:]
        if self._drawing is None or self._drawing.done():
            self._drawing = asyncio.create_task(self._draw_soon())

    def finish(self, display: Display, error: str) -> None:
        """The call has its result."""
        self._display, self._error = display, error
        if error in REFUSED:
            self._state = "denied"
        else:
            self._state = (
                "failed" if error or (self._name in ("run", "test") and _RED.search(display.title)) else "ok"
            )
        self._output = ""
        self._draw_tail()
        self.redraw()

    def title(self) -> Content:
        glyph, color = GLYPHS[self._state]
        mark = ""
        if self._display is not None and self._display.body:
            mark = " ▾" if self.is_open else " ▸"
        return Content.assemble(
            (glyph, color),
            " ",
            (self._name, "bold"),
            (self._words(), "$error" if self._state == "failed" else "$foreground"),
            (f"  {self._note()}" if self._note() else "", "$muted"),
            (mark, "$muted"),
        )

    def body(self) -> Sequence[Line]:
        return display_lines(self._display) if self._display is not None else ()

    def _words(self) -> str:
        """What follows the tool's name: what came of the call, or what it is about."""
        words = self._summary
        if self._display is not None and self._state in ("ok", "failed"):
            words = one_line(self._display.title) or words
        if words.lower() == self._name.lower():
            return ""
        return " " + words.removeprefix(f"{self._name} ").removesuffix(" [exit code 0]")

    def _note(self) -> str:
        if self._state == "waiting":
            return "waits for you"
        if self._state == "denied" and self._display is not None:
            return one_line(self._display.title, 60).lower()
        return ""

    async def _draw_soon(self) -> None:
        await asyncio.sleep(1 / FLUSHES_A_SECOND)
        self._draw_tail()

    def _draw_tail(self) -> None:
        if not self.is_attached:
            return
        lines = [one_line(line, 200) for line in terminal_text(self._output[-4_000:]).rstrip().split("\n")]
        text = "\n".join([line for line in lines if line][-TAIL_LINES:])
        self._tail.display = bool(text)
        self._tail.update(Content(text))
