"""The one ordered queue between a session and whoever watches it."""

import asyncio
from collections.abc import AsyncIterator, Callable

from glimmer_tui.agent.events import Event

Emit = Callable[[Event], None]
"""Publish an event. Called on the event loop's thread only."""


class Outbox:
    """Events in the order they happened. One consumer reads them; `close` ends its iteration."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Event | None] = asyncio.Queue()
        self._closed = False

    def put(self, event: Event) -> None:
        if not self._closed:
            self._queue.put_nowait(event)

    def close(self) -> None:
        """No event comes after those already put."""
        if not self._closed:
            self._closed = True
            self._queue.put_nowait(None)

    async def events(self) -> AsyncIterator[Event]:
        while (event := await self._queue.get()) is not None:
            yield event
