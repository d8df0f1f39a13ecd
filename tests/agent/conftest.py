"""A session over a scripted engine, with the real tools, shell and snapshots in a project of its own."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from engine.messages import Message, ToolResult
from engine.scripted import ScriptedEngine, Step
from glimmer_tui.agent import events
from glimmer_tui.agent.events import Event, TurnFailed, TurnFinished
from glimmer_tui.agent.session import Session
from glimmer_tui.agent.settings import SessionSettings
from glimmer_tui.config import ModelSettings
from glimmer_tui.options import Options
from glimmer_tui.wiring import build_session
from sandbox.actions import Decision, Mode

ALLOW = Decision("allow")


@dataclass
class World:
    """A project, the session that works on it, and everything that was published so far."""

    root: Path
    state: Path
    engine: ScriptedEngine
    session: Session
    seen: list[Event] = field(default_factory=list)
    answers: Callable[[events.ApprovalRequested], Decision | None] = lambda request: ALLOW

    async def until(self, *kinds: type) -> Event:
        """Read events, answering approvals, until one of these kinds; that one is returned."""
        async for event in self._stream:
            self.seen.append(event)
            if isinstance(event, events.ApprovalRequested):
                decision = self.answers(event)
                if decision is not None:
                    self.session.reply(event.id, decision)
            if isinstance(event, kinds):
                return event
        raise AssertionError(f"the events ended before {kinds}")

    async def say(self, text: str) -> TurnFinished | TurnFailed:
        """Send a message and wait for the end of its turn."""
        self.session.submit(text)
        return await self.end()

    async def end(self) -> TurnFinished | TurnFailed:
        end = await asyncio.wait_for(self.until(TurnFinished, TurnFailed), 30)
        assert isinstance(end, TurnFinished | TurnFailed)
        return end

    async def until_closed(self) -> None:
        """Read what is left after the session was closed."""
        self.seen.extend([event async for event in self._stream])

    def names(self, *skipped: type) -> list[str]:
        """The kinds of what was published, deltas and status apart."""
        quiet = (events.TextDelta, events.ReasoningDelta, events.StatusChanged, events.StepFinished, *skipped)
        return [type(event).__name__ for event in self.seen if not isinstance(event, quiet)]

    def of(self, kind: type) -> list:
        return [event for event in self.seen if isinstance(event, kind)]

    @property
    def history(self) -> tuple[Message, ...]:
        return self.session.history.messages

    @property
    def results(self) -> list[str]:
        """What the model read of its calls, in order."""
        parts = [part for message in self.history for part in message.parts]
        return [part.text for part in parts if isinstance(part, ToolResult)]

    def __post_init__(self) -> None:
        self._stream: AsyncIterator[Event] = self.session.events()


MakeWorld = Callable[..., World]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[MakeWorld]:
    """Makes worlds: `world([reply, ...], mode="ask", max_steps=...)`."""
    made: list[World] = []
    root, state = tmp_path / "project", tmp_path / "state"
    root.mkdir()
    (root / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    (root / "notes.txt").write_text("one\ntwo\n")

    def make(replies: Sequence[Sequence[Step]], mode: Mode = "ask", **settings) -> World:
        engine = ScriptedEngine(replies)
        options = Options(root, state, None, mode, ModelSettings(), SessionSettings(**settings))
        made.append(World(root, state, engine, build_session(options, engine)))
        return made[-1]

    yield make
    for one in made:
        await one.session.close()
