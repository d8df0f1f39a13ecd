"""The engine that runs a GGUF model in this process."""

import threading
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from pathlib import Path

from engine.errors import EngineError
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
        self._is_closing = threading.Event()

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

    async def save(self, name: str) -> None:
        """Store what the model holds of the conversation. Raises EngineError where that cannot be written."""
        await self._host.call(lambda: self._save(name))

    async def restore(self, name: str) -> bool:
        """Hold what was stored under `name`; False where there is nothing. Raises EngineError."""
        return await self._host.call(lambda: self._restore(name))

    async def close(self) -> None:
        """Free the model, or break its loading off. The engine cannot be used afterwards."""
        self._is_closing.set()
        await self._host.close(self._release)

    def _load(self) -> Loaded:
        if self._loaded is None:
            self._loaded = load(self._path, self._options, lambda: not self._is_closing.is_set())
        return self._loaded

    def _reset(self) -> None:
        if self._loaded is not None:
            self._loaded.generator.conversation.reset()

    def _save(self, name: str) -> None:
        if self._loaded is None or self._loaded.keeper is None:
            return
        try:
            self._loaded.keeper.save(name, self._loaded.generator.conversation.store())
        except OSError as error:
            why = error.strerror or str(error)
            todo = "The conversation itself is saved; it will be read again when it is resumed."
            raise EngineError("The model's memory could not be stored.", why, todo) from error

    def _restore(self, name: str) -> bool:
        loaded = self._load()
        state = loaded.keeper.load(name) if loaded.keeper is not None else None
        if state is None:
            return False
        loaded.generator.conversation.restore(state)
        return True

    def _release(self) -> None:
        if self._loaded is not None:
            self._loaded.close()
            self._loaded = None
