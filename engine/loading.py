"""Loads a model with its drafter into memory."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from engine.cache import Cache
from engine.chat_format import Marker
from engine.context import Context, ContextOptions, KvType
from engine.dflash import Dflash, DflashShape
from engine.drafter_file import DrafterMetadata, read_drafter_file
from engine.errors import EngineError, ModelError
from engine.features import missing_symbols
from engine.generator import Generator, GeneratorOptions
from engine.llama import Model, Weights
from engine.model_file import ModelMetadata, read_model_file
from engine.protocol import Capabilities
from engine.template_check import template_mismatch

DEFAULT_CONTEXT = 65536
"""Tokens reserved where the person names no size: room for long work at about 0.9 GB of cache."""

SMALLEST_CONTEXT = 256

_MOST_THREADS = 512
_MOST_LAYERS = 512
_DRAFTERS = "dflash*.gguf"


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
    drafter: Path | None = None
    """The drafter's file; None looks for a `dflash*.gguf` beside the model."""
    drafts: int | None = None
    """Tokens drafted a step; None is as many as pay, 0 is plain decoding."""
    log_file: Path | None = None


@dataclass(frozen=True, slots=True)
class Loaded:
    """What is in memory, to be closed as a whole."""

    model: Model
    drafter: Weights | None
    cache: Cache
    generator: Generator
    capabilities: Capabilities

    def close(self) -> None:
        """Free everything."""
        self.cache.close()
        if self.drafter is not None:
            self.drafter.close()
        self.model.close()


def load(path: Path, options: EngineOptions) -> Loaded:
    """Load a model and, where one fits, its drafter. Raises ModelError or EngineError."""
    _check(options)
    metadata = read_model_file(path)
    model = Model(metadata, options.gpu_layers, options.log_file)
    wanted = options.context_size or DEFAULT_CONTEXT
    size = max(SMALLEST_CONTEXT, min(wanted, metadata.context_length))
    threads = options.threads or _default_threads()
    context_options = ContextOptions(size, min(options.batch, size), threads, options.kv_type)
    try:
        context = Context(model, context_options, options.log_file)
    except EngineError:
        model.close()
        raise
    notices = list(_notices(metadata, options))
    weights, drafter = None, None
    try:
        if found := _find_drafter(metadata, options):
            weights, drafter = _load_drafter(found, context, context_options, options)
    except EngineError as error:
        notices.append(f"Drafting is off, so replies are slower. {error}")
    cache = Cache(context, model.vocabulary.size, drafter)
    capabilities = Capabilities(
        model_name=metadata.name,
        model_path=path,
        context_size=context.size,
        is_demo=metadata.is_demo,
        drafts=drafter is not None,
        notices=tuple(notices),
    )
    generator = Generator(cache, model.vocabulary, metadata.sampling, GeneratorOptions(options.drafts))
    return Loaded(model, weights, cache, generator, capabilities)


def _find_drafter(metadata: ModelMetadata, options: EngineOptions) -> DrafterMetadata | None:
    """The drafter that was named, or the first beside the model that fits it. Raises ModelError."""
    if options.drafts == 0:
        return None
    if options.drafter is not None:
        return read_drafter_file(options.drafter, metadata)
    refused: ModelError | None = None
    for path in sorted(metadata.path.parent.glob(_DRAFTERS)):
        try:
            return read_drafter_file(path, metadata)
        except ModelError as error:
            refused = refused or error
    if refused is not None:
        raise refused
    return None


def _load_drafter(
    metadata: DrafterMetadata, target: Context, context_options: ContextOptions, options: EngineOptions
) -> tuple[Weights, Dflash]:
    """Raises EngineError; nothing is left in memory then."""
    if missing := missing_symbols():
        raise EngineError(
            "This build of llama.cpp cannot hand out what the drafter needs.",
            f"It lacks {', '.join(missing)}.",
            "Install llama-cpp-python 0.3.36.",
        )
    weights = Weights(
        metadata.path, metadata.shape.window or context_options.size, options.gpu_layers, options.log_file
    )
    try:
        context = Context(weights, context_options, options.log_file, target)
    except EngineError:
        weights.close()
        raise
    shape = DflashShape(
        metadata.block,
        metadata.mask_id,
        metadata.target_layers,
        metadata.shape.width,
        metadata.vocabulary_size,
    )
    return weights, Dflash(context, target, shape)


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
    if options.drafts is not None and options.drafts < 0:
        raise EngineError(f"{options.drafts} drafts are impossible.", "", "Use 0 or more.")


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
