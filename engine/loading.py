"""Loads a model with its drafter into memory."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from engine.buffer_sizes import DRAFTER_BATCH, KvType, ModelFiles, Settings
from engine.cache import Cache
from engine.chat_format import Marker
from engine.context import Context, ContextOptions
from engine.devices import devices
from engine.dflash import Dflash, DflashShape
from engine.errors import EngineError, ModelError
from engine.features import missing_symbols
from engine.generator import Generator, GeneratorOptions
from engine.gguf.drafter import DrafterMetadata, read_drafter_file
from engine.gguf.model import ModelMetadata, read_model_file
from engine.gguf.projector import ProjectorMetadata, read_projector_file
from engine.identity import cache_key, file_identity
from engine.keeper import Keeper
from engine.kv_planner import Plan, Wishes, plan
from engine.llama import Model, Weights
from engine.protocol import Capabilities
from engine.state_folder import StateFolder
from engine.template_check import template_mismatch
from engine.vision.embedding_store import EmbeddingStore
from engine.vision.encoder import Encoder, EncoderOptions
from engine.vision.grid import DEFAULT_CAP, MOST
from engine.vision.pictures import Pictures

SMALLEST_CONTEXT = 256

_MOST_THREADS = 512
_MOST_LAYERS = 512
_DRAFTERS = "dflash*.gguf"
_PROJECTORS = "mmproj*.gguf"


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """How the model is loaded. None means "choose for me"."""

    context_size: int | None = None
    threads: int | None = None
    batch: int | None = None
    """The most tokens read in one decode step; a cancel is seen between two of them."""
    gpu_layers: int | None = None
    """How many layers go to the GPU; -1 is all of them. Without a GPU it has no effect."""
    kv_type: KvType | None = None
    drafter: Path | None = None
    """The drafter's file; None looks for a `dflash*.gguf` beside the model."""
    projector: Path | None = None
    """The vision projector's file; None looks for a `mmproj*.gguf` beside the model."""
    sees: bool = True
    """Whether the vision projector is used."""
    picture_tokens: int = DEFAULT_CAP
    """The most tokens of one picture."""
    picture_folder: Path | None = None
    """Where encoded pictures are kept; None keeps none."""
    drafts: int | None = None
    """Tokens drafted a step; None is as many as pay, 0 is plain decoding."""
    state_folder: Path | None = None
    """Where caches are kept between runs; None keeps none."""
    constrains: bool = True
    """Whether tool calls are kept well formed while they are drawn."""
    log_file: Path | None = None


@dataclass(frozen=True, slots=True)
class Loaded:
    """What is in memory, to be closed as a whole, and how it was planned."""

    files: ModelFiles
    plan: Plan
    model: Model
    drafter: Weights | None
    cache: Cache
    pictures: Pictures | None
    generator: Generator
    keeper: Keeper | None
    capabilities: Capabilities

    def close(self) -> None:
        """Free everything."""
        self.generator.close()
        if self.pictures is not None:
            self.pictures.close()
        self.cache.close()
        if self.drafter is not None:
            self.drafter.close()
        self.model.close()


def load(path: Path, options: EngineOptions, goes_on: Callable[[], bool] = lambda: True) -> Loaded:
    """Load a model and, where one fits, its drafter, as planned. Raises ModelError or EngineError.

    `goes_on` is asked while the weights are read; where it says no, loading is broken off.
    """
    _check(options)
    files, told = find_files(path, options)
    metadata, found, notices = files.model, files.drafter, list(told)
    chosen = plan_loading(files, options)
    notices += chosen.given_up
    settings = chosen.settings
    threads = options.threads or default_threads()
    context_options = ContextOptions(
        settings.context,
        min(settings.ubatch, settings.context),
        threads,
        settings.kv_type,
        settings.outputs,
    )
    model = Model(metadata, settings.gpu_layers, options.log_file, goes_on)
    try:
        context = Context(model, context_options, options.log_file)
    except EngineError:
        model.close()
        raise
    weights, drafter = None, None
    try:
        if found is not None and settings.drafter:
            gpu_layers = -1 if settings.gpu_layers else 0
            weights, drafter = _load_drafter(
                (metadata, found), context, context_options, gpu_layers, options.log_file
            )
    except EngineError as error:
        notices.append(_no_drafts(error))
    pictures = None
    try:
        if files.projector is not None and settings.vision != "off":
            pictures = _load_pictures(files.projector, model, metadata, settings, options)
    except EngineError as error:
        notices.append(_no_pictures(error))
    cache = Cache(context, model.vocabulary.size, drafter)
    capabilities = Capabilities(
        model_name=metadata.name,
        model_path=path,
        context_size=context.size,
        is_demo=metadata.is_demo,
        vision=pictures is not None,
        picture_tokens=options.picture_tokens if pictures is not None else 0,
        drafts=drafter is not None,
        notices=tuple(notices),
    )
    keeper = _keeper(metadata, found if drafter else None, context, settings, options)
    generator_options = GeneratorOptions(options.drafts, options.constrains, keeper, pictures)
    generator = Generator(cache, model.vocabulary, metadata.sampling, generator_options)
    return Loaded(files, chosen, model, weights, cache, pictures, generator, keeper, capabilities)


def _keeper(
    metadata: ModelMetadata,
    drafter: DrafterMetadata | None,
    context: Context,
    settings: Settings,
    options: EngineOptions,
) -> Keeper | None:
    if options.state_folder is None:
        return None
    try:
        key = cache_key(metadata.path, drafter.path if drafter else None, context, settings.kv_type)
    except OSError:
        return None
    return Keeper(StateFolder(options.state_folder), key)


def plan_loading(files: ModelFiles, options: EngineOptions) -> Plan:
    """How these files are loaded on this machine. Raises ModelError where they do not fit."""
    wishes = Wishes(
        context=options.context_size,
        kv_type=options.kv_type,
        ubatch=options.batch,
        gpu_layers=options.gpu_layers,
        drafter=True if options.drafter is not None else None,
        vision=True if options.projector is not None else None,
    )
    return plan(files, devices(), wishes, options.picture_tokens)


def _no_pictures(error: EngineError) -> str:
    return f"The model cannot look at pictures. {error}"


def _no_drafts(error: EngineError) -> str:
    return f"Drafting is off, so replies are slower. {error}"


def find_files(path: Path, options: EngineOptions) -> tuple[ModelFiles, tuple[str, ...]]:
    """The model's file and its drafter's, checked, and what the person should know. Raises ModelError."""
    metadata = read_model_file(path)
    notices = list(_notices(metadata, options))
    drafter = _find_drafter(metadata, options, notices)
    return ModelFiles(metadata, drafter, _find_projector(metadata, options, notices)), tuple(notices)


def _find_projector(
    metadata: ModelMetadata, options: EngineOptions, notices: list[str]
) -> ProjectorMetadata | None:
    """The projector that was named, or the first beside the model that fits it."""
    if not options.sees:
        return None
    beside = sorted(metadata.path.parent.glob(_PROJECTORS))
    refused: list[ModelError] = []
    for path in [options.projector] if options.projector is not None else beside:
        try:
            return read_projector_file(path, metadata)
        except ModelError as error:
            refused.append(error)
    notices += [_no_pictures(error) for error in refused[:1]]
    return None


def _find_drafter(
    metadata: ModelMetadata, options: EngineOptions, notices: list[str]
) -> DrafterMetadata | None:
    """The drafter that was named, or the first beside the model that fits it."""
    if options.drafts == 0:
        return None
    beside = sorted(metadata.path.parent.glob(_DRAFTERS))
    candidates = [options.drafter] if options.drafter is not None else beside
    refused: list[ModelError] = []
    for path in candidates:
        try:
            found = read_drafter_file(path, metadata)
        except ModelError as error:
            refused.append(error)
            continue
        if missing := missing_symbols():
            why = f"It lacks {', '.join(missing)}."
            notices.append(
                _no_drafts(EngineError("This build of llama.cpp cannot draft.", why, "Install 0.3.36."))
            )
            return None
        return found
    notices += [_no_drafts(error) for error in refused[:1]]
    return None


def _load_pictures(
    projector: ProjectorMetadata,
    model: Model,
    metadata: ModelMetadata,
    settings: Settings,
    options: EngineOptions,
) -> Pictures:
    """Raises EngineError; nothing is left in memory then."""
    threads = options.threads or default_threads()
    encoder_options = EncoderOptions(
        metadata.shape.width, projector.blocks, options.picture_tokens, threads, settings.vision == "gpu"
    )
    try:
        identity = file_identity(projector.path)
    except OSError as error:
        why = error.strerror or str(error)
        raise ModelError(f"{projector.path.name} could not be read.", why, "Check the file.") from error
    store = EmbeddingStore(options.picture_folder) if options.picture_folder is not None else None
    return Pictures(Encoder(projector.path, model, encoder_options, options.log_file), identity, store)


def _load_drafter(
    pair: tuple[ModelMetadata, DrafterMetadata],
    target: Context,
    context_options: ContextOptions,
    gpu_layers: int,
    log_file: Path | None,
) -> tuple[Weights, Dflash]:
    """Raises EngineError; nothing is left in memory then."""
    model, metadata = pair
    window = metadata.shape.window or context_options.size
    weights = Weights(metadata.path, window, gpu_layers, log_file)
    try:
        own = replace(context_options, batch=min(DRAFTER_BATCH, context_options.batch))
        context = Context(weights, own, log_file, target)
    except EngineError:
        weights.close()
        raise
    shape = DflashShape(
        metadata.block,
        metadata.mask_id,
        metadata.target_layers,
        metadata.shape.width,
        metadata.vocabulary_size,
        model.head.scale,
        model.head.cap,
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
    if options.gpu_layers is not None and not -1 <= options.gpu_layers <= _MOST_LAYERS:
        raise EngineError(f"{options.gpu_layers} layers cannot go to the GPU.", "", "Use -1 for all of them.")
    if options.batch is not None and not 1 <= options.batch <= 8192:
        raise EngineError(f"A batch of {options.batch} tokens is impossible.", "", "Use 1 to 8192.")
    if options.drafts is not None and options.drafts < 0:
        raise EngineError(f"{options.drafts} drafts are impossible.", "", "Use 0 or more.")
    if not 1 <= options.picture_tokens <= MOST:
        raise EngineError(
            f"{options.picture_tokens} tokens a picture are impossible.", "", f"Use 1 to {MOST}."
        )


def default_threads() -> int:
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
