"""The engine that runs a GGUF model in this process."""

import os
import threading
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path

from engine.chat_format import Marker
from engine.errors import EngineError
from engine.generator import Generator
from engine.host import Host
from engine.llama import Context, ContextOptions, KvType, Model
from engine.model_file import ModelMetadata, read_model_file
from engine.protocol import Capabilities, Delta, Request
from engine.template_check import template_mismatch

DEFAULT_CONTEXT = 65536
"""Tokens reserved where the person names no size: room for long work at about 0.9 GB of cache."""

SMALLEST_CONTEXT = 256

_MOST_THREADS = 512
_MOST_LAYERS = 512


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """How the model is loaded. None means "choose for me"."""

    context_size: int | None = None
    threads: int | None = None
    batch: int = 512
    """The most tokens read in one decode step; a cancel is seen between two of them."""
    gpu_layers: int = -1
    """How many layers go to the GPU; -1 is all of them. Without a GPU it has no effect."""
    kv_type: KvType = "f16"
    log_file: Path | None = None


@dataclass(frozen=True, slots=True)
class _Loaded:
    model: Model
    context: Context
    generator: Generator
    capabilities: Capabilities


class EmbeddedEngine:
    """An `engine.protocol.Engine` over one model file. Loading happens on the first use."""

    def __init__(self, model: Path, options: EngineOptions | None = None) -> None:
        self._path = model
        self._options = options or EngineOptions()
        self._host = Host()
        self._loaded: _Loaded | None = None

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

    def _load(self) -> _Loaded:
        if self._loaded is None:
            self._loaded = _load(self._path, self._options)
        return self._loaded

    def _reset(self) -> None:
        if self._loaded is not None:
            self._loaded.generator.reset()

    def _release(self) -> None:
        if self._loaded is not None:
            self._loaded.context.close()
            self._loaded.model.close()
            self._loaded = None


def _load(path: Path, options: EngineOptions) -> _Loaded:
    _check(options)
    metadata = read_model_file(path)
    model = Model(metadata, options.gpu_layers, options.log_file)
    wanted = options.context_size or DEFAULT_CONTEXT
    size = max(SMALLEST_CONTEXT, min(wanted, metadata.context_length))
    threads = options.threads or _default_threads()
    try:
        context = Context(
            model, ContextOptions(size, min(options.batch, size), threads, options.kv_type), options.log_file
        )
    except EngineError:
        model.close()
        raise
    generator = Generator(context, model.vocabulary, metadata.sampling)
    capabilities = Capabilities(
        model_name=metadata.name,
        model_path=path,
        context_size=context.size,
        is_demo=metadata.is_demo,
        notices=tuple(_notices(metadata, options)),
    )
    return _Loaded(model, context, generator, capabilities)


def _check(options: EngineOptions) -> None:
    if options.context_size is not None and options.context_size < SMALLEST_CONTEXT:
        raise EngineError(
            f"A context of {options.context_size} tokens is too small.",
            "",
            f"Use {SMALLEST_CONTEXT} or more.",
        )
    if options.threads is not None and not 1 <= options.threads <= _MOST_THREADS:
        raise EngineError(f"{options.threads} threads cannot run a model.", "", f"Use 1 to {_MOST_THREADS}.")
    if not -1 <= options.gpu_layers <= _MOST_LAYERS:
        raise EngineError(f"{options.gpu_layers} layers cannot go to the GPU.", "", "Use -1 for all of them.")
    if not 1 <= options.batch <= 8192:
        raise EngineError(f"A batch of {options.batch} tokens is impossible.", "", "Use 1 to 8192.")


def _default_threads() -> int:
    """All of a few cores; half of many, which are mostly two threads of one core."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores if cores <= 4 else cores // 2


def _notices(metadata: ModelMetadata, options: EngineOptions) -> Iterator[str]:
    if options.context_size is not None and options.context_size > metadata.context_length:
        yield (
            f"The context is {metadata.context_length} tokens: the model was made for no more, "
            f"so the {options.context_size} asked for were not reserved."
        )
    if not metadata.chat_template:
        return
    if mismatch := template_mismatch(metadata.chat_template, Marker.BOS.value):
        yield mismatch
