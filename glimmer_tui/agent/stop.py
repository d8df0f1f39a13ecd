"""The stop sign of a turn: one flag that both the event loop and worker threads can see."""

import asyncio
import threading
from collections.abc import Awaitable


class Stop:
    """Set once, when the person cancels. A turn that sees it ends at the next safe point."""

    def __init__(self) -> None:
        self.flag = threading.Event()
        """For threads."""
        self._seen = asyncio.Event()

    def set(self) -> None:
        self.flag.set()
        self._seen.set()

    @property
    def is_set(self) -> bool:
        return self.flag.is_set()

    async def race(self, task: Awaitable[object]) -> bool:
        """Wait for `task`, which goes on if it loses; True when it ended before the stop sign was set."""
        future = asyncio.ensure_future(task)
        stopped = asyncio.ensure_future(self._seen.wait())
        try:
            await asyncio.wait({future, stopped}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopped.cancel()
        return future.done()
