"""The application: its theme, its one screen, and the task that feeds the screen with events."""

import logging
import time
from collections.abc import Callable
from pathlib import Path, PurePath
from typing import ClassVar

from textual.app import App
from textual.binding import Binding, BindingType

from glimmer_tui.screens.main import MainScreen
from glimmer_tui.screens.port import Conversation
from glimmer_tui.widgets import palette
from glimmer_tui.widgets.terminal_keys import teach_alt_enter

_log = logging.getLogger(__name__)

STYLES = (
    "screen",
    "transcript",
    "blocks",
    "pictures",
    "markdown",
    "sheet",
    "prompt",
    "composer",
    "status",
    "help",
)
DEFAULT_THEME = "glimmer-dark"
_WIDTHS = [(0, "-narrow"), (60, "-normal")]
_HEIGHTS = [(0, "-short"), (18, "-tall")]
_STYLE_FILES: list[str | PurePath] = [Path(__file__).parent / "styles" / f"{name}.tcss" for name in STYLES]


class GlimmerApp(App[None]):
    """Glimmer's screen over one session. The first paint waits for nothing; the model loads after it."""

    TITLE = "Glimmer"
    ENABLE_COMMAND_PALETTE = False
    CSS_PATH = _STYLE_FILES
    HORIZONTAL_BREAKPOINTS = _WIDTHS
    VERTICAL_BREAKPOINTS = _HEIGHTS
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+q", "ignore", show=False, priority=True)]

    def __init__(
        self,
        session: Conversation,
        theme: str = DEFAULT_THEME,
        initial_prompt: str = "",
        clock: Callable[[], float] = time.monotonic,
        root: Path | None = None,
    ) -> None:
        """`root` is the project's folder, by default the working folder."""
        super().__init__()
        teach_alt_enter()
        self._session = session
        self._initial_prompt = initial_prompt
        self._problem = ""
        self._main = MainScreen(session, clock, root or Path.cwd())
        for name in palette.names():
            self.register_theme(palette.textual_theme(palette.load(name)))
        if theme in palette.names():
            self.theme = theme
        else:
            self.theme = DEFAULT_THEME
            self._problem = f"There is no theme {theme!r}. Choose one of: {', '.join(palette.names())}."

    @property
    def main(self) -> MainScreen:
        """The one screen; others lie over it."""
        return self._main

    def get_default_screen(self) -> MainScreen:
        return self._main

    def on_ready(self) -> None:
        self.run_worker(self._work(), group="session")

    async def on_unmount(self) -> None:
        await self._session.close()
        self._main.viewer.close()

    def action_ignore(self) -> None:
        """Ctrl+Q quits nothing: leaving takes Ctrl+C twice, or /quit."""

    async def _work(self) -> None:
        # What draws Markdown is loaded here, behind the first paint.
        from glimmer_tui.bridge import LOADING, Bridge

        bridge = Bridge(self._main)
        self._main.status.show(activity=LOADING)
        if self._problem:
            await self._main.say(self._problem, "warning")
        await self._session.start()
        if self._initial_prompt:
            self._session.submit(self._initial_prompt)
        async for event in self._session.events():
            try:
                await bridge.handle(event)
            except Exception:
                # One event that cannot be shown must not take the rest of the conversation with it.
                _log.exception("%s could not be shown", type(event).__name__)
                await self._main.say("Something could not be shown here. The log has the details.", "error")
