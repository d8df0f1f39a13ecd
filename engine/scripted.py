"""An engine that plays back written replies: for tests of everything above the engine, and for demos."""

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.errors import EngineBusy, EngineError
from engine.messages import ToolCall, new_id
from engine.protocol import (
    Capabilities,
    Delta,
    Done,
    ReasoningDelta,
    Request,
    StopReason,
    TextDelta,
    Timings,
    ToolCallReady,
    ToolCallStarted,
    Usage,
)


@dataclass(frozen=True, slots=True)
class Hold:
    """In a reply: stop here until `release` is called or the reply is cancelled. It sets `reached`."""

    reached: asyncio.Event = field(default_factory=asyncio.Event)
    released: asyncio.Event = field(default_factory=asyncio.Event)

    def release(self) -> None:
        self.released.set()


Step = Delta | Hold | EngineError
"""One step of a reply; an error is raised where it stands."""


def text_reply(text: str, reasoning: str = "") -> list[Step]:
    """A reply that says `text`, word by word, after some reasoning."""
    steps: list[Step] = [ReasoningDelta(piece) for piece in _words(reasoning)]
    return [*steps, *(TextDelta(piece) for piece in _words(text))]


def call_reply(name: str, arguments: Mapping[str, Any], reasoning: str = "", call_id: str = "") -> list[Step]:
    """A reply that calls one tool. Add replies up for several calls in one turn."""
    call = ToolCall(call_id or new_id(), name, arguments)
    steps: list[Step] = [ReasoningDelta(piece) for piece in _words(reasoning)]
    return [*steps, ToolCallStarted(name), ToolCallReady(call)]


class ScriptedEngine:
    """An `engine.protocol.Engine` that answers each request with the next reply of its script.

    A reply without `Done` ends with `Done("end")`. `requests` holds what was asked, in order.
    """

    def __init__(
        self, replies: Sequence[Sequence[Step]] = (), capabilities: Capabilities | None = None
    ) -> None:
        self.replies = [list(reply) for reply in replies]
        self.requests: list[Request] = []
        self.resets = 0
        self.is_closed = False
        self._capabilities = capabilities or Capabilities("Scripted", None, 131072)
        self._cancelled: asyncio.Event | None = None

    async def load(self) -> Capabilities:
        """What this engine claims to be."""
        self._check_open()
        return self._capabilities

    async def generate(self, request: Request) -> AsyncGenerator[Delta, None]:
        """Play the next reply. Raises EngineBusy, and EngineError when the script is over."""
        self._check_open()
        if self._cancelled is not None:
            raise EngineBusy("The model is already writing a reply.", "", "Wait for it, or cancel it.")
        self.requests.append(request)
        if len(self.requests) > len(self.replies):
            raise EngineError("The script has no further reply.", f"It has {len(self.replies)}.")
        reply = self.replies[len(self.requests) - 1]
        self._cancelled = cancelled = asyncio.Event()
        try:
            started = time.perf_counter()
            done: Done | None = None
            count = 0
            for step in reply:
                await asyncio.sleep(0)
                if isinstance(step, Hold):
                    await _wait(step, cancelled)
                if cancelled.is_set():
                    break
                match step:
                    case EngineError():
                        raise step
                    case Done():
                        done = step
                        break
                    case Hold():
                        continue
                    case delta:
                        count += 1
                        yield delta
            await asyncio.sleep(0)
            stop: StopReason = "cancelled" if cancelled.is_set() else "end"
            self._cancelled = None
            if done is not None and stop == "end":
                yield done
                return
            usage = Usage(generated=count, context_size=self._capabilities.context_size)
            yield Done(stop, usage, Timings(0.0, time.perf_counter() - started))
        finally:
            if self._cancelled is cancelled:
                self._cancelled = None

    def cancel(self) -> None:
        """Stop the running reply; it ends with `Done("cancelled")`."""
        if self._cancelled is not None:
            self._cancelled.set()

    async def reset(self) -> None:
        """Count the call; a script has no memory."""
        self._check_open()
        self.resets += 1

    async def save(self, name: str) -> None:
        """Nothing: a script has no memory."""
        self._check_open()

    async def restore(self, name: str) -> bool:
        """Nothing is ever there."""
        self._check_open()
        return False

    async def close(self) -> None:
        """Refuse everything from now on."""
        self.cancel()
        self.is_closed = True

    def _check_open(self) -> None:
        if self.is_closed:
            raise EngineError("The engine is closed.", "", "Start Glimmer again.")


async def _wait(hold: Hold, cancelled: asyncio.Event) -> None:
    hold.reached.set()
    waits = [asyncio.ensure_future(hold.released.wait()), asyncio.ensure_future(cancelled.wait())]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


def _words(text: str) -> list[str]:
    """The text in pieces that join to it again, cut before each space."""
    first, *rest = text.split(" ")
    return [piece for piece in (first, *(f" {word}" for word in rest)) if piece]
