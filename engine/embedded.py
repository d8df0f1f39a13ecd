"""The engine that runs a GGUF model in this process."""

import threading
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from pathlib import Path

from engine.host import Host
from engine.loading import EngineOptions, Loaded, load
from engine.protocol import Capabilities, Delta, Request


class EmbeddedEngine:
    """An `engine.protocol.Engine` over one model file. Loading happens on the first use."""

    def __init__(self, model: Path, options: EngineOptions | None = None) -> None:
        self._path = model
        self._options = options or EngineOptions()
        self._host = Host()
        self._loaded: Loaded | None = None

    async def load(self) -> Capabilities:
        """Load the model once; later calls return the same value. Raises ModelError."""
        return (await self._host.call(self._load)).capabilities

    async def generate(self, request: Request) -> AsyncGenerator[Delta, None]:
        """Stream one reply. Ends with `Done`. Raises ModelError, ContextFull or EngineBusy."""

        def work(cancelled: threading.Event) -> Iterator[Delta]:
            return self._load().generator.generate(request, cancelled)

        async with aclosing(self._host.stream(work)) as deltas:
            async for delta in deltas:
                yield delta

    def cancel(self) -> None:
        """Ask the running generation to stop; it ends with `Done("cancelled")` within one decode step."""
        self._host.cancel()

    async def reset(self) -> None:
        """Forget the conversation."""
        await self._host.call(self._reset)

    async def close(self) -> None:
        """Free the model. The engine cannot be used afterwards."""
        await self._host.close(self._release)

    def _load(self) -> Loaded:
        if self._loaded is None:
            self._loaded = load(self._path, self._options)
        return self._loaded

    def _reset(self) -> None:
        if self._loaded is not None:
            self._loaded.generator.reset()

    def _release(self) -> None:
        if self._loaded is not None:
            self._loaded.close()
            self._loaded = None
