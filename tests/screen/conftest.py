import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from engine.protocol import Capabilities
from glimmer_tui.agent.events import Event, ModelLoaded
from glimmer_tui.app import GlimmerApp
from glimmer_tui.screens.main import MainScreen
from glimmer_tui.screens.scripted import Script, ScriptedSession
from sandbox.recorded_files import Restored

MODEL = Capabilities("muse-glimmer", None, 8192)


@dataclass
class Clock:
    """Seconds that pass only when a test says so."""

    now: float = 100.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Stage:
    """A running application with its scripted session."""

    app: GlimmerApp
    pilot: Pilot[None]
    session: ScriptedSession
    clock: Clock

    @property
    def screen(self) -> MainScreen:
        assert isinstance(self.app.screen_stack[0], MainScreen)
        return self.app.screen_stack[0]

    async def until(self, holds: Callable[[], object]) -> None:
        """Wait until something holds."""
        async with asyncio.timeout(120):
            while not holds():
                await self.pilot.pause(0.01)
        await self.pilot.pause()

    async def play(self, *events: Event) -> None:
        """Publish events and wait until they are shown."""
        for event in events:
            self.session.emit(event)
        await self.until(self.session.drained)
        await self.pilot.pause(0.05)
        await self.pilot.pause()

    async def answer(self, *keys: str) -> None:
        """Press keys after the guard of a prompt has passed."""
        self.clock.now += 1
        for key in keys:
            await self.pilot.press(key)
        await self.pilot.pause()

    def text(self) -> str:
        """What the terminal shows, a line a row."""
        height = self.app.size.height
        strips = self.app.screen._compositor.render_strips()
        return "\n".join("".join(part.text for part in strip) for strip in strips[:height])

    def words(self, of: str) -> str:
        """The plain text of the Static widgets that a selector finds."""
        return "\n".join(str(widget.visual) for widget in self.app.screen.query(of).results(Static))


@dataclass
class Stager:
    """Builds stages."""

    clock: Clock = field(default_factory=Clock)

    def app(self, session: ScriptedSession, theme: str = "glimmer-dark") -> GlimmerApp:
        app = GlimmerApp(session, theme, clock=self.clock)
        app.animation_level = "none"
        return app

    @asynccontextmanager
    async def __call__(
        self,
        script: Script = lambda _: (),
        opening: Sequence[Event] = (ModelLoaded(MODEL),),
        size: tuple[int, int] = (80, 24),
        undoable: Sequence[Restored] = (),
    ) -> AsyncIterator[Stage]:
        session = ScriptedSession(script, opening, undoable)
        app = self.app(session)
        async with app.run_test(size=size) as pilot:
            stage = Stage(app, pilot, session, self.clock)
            await stage.until(lambda: stage.screen.status.status.mode)
            yield stage


@pytest.fixture
def stage(caplog: pytest.LogCaptureFixture) -> Iterator[Stager]:
    yield Stager()
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
