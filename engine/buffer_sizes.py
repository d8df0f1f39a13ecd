"""How many bytes llama.cpp will reserve, and on which device, before it is asked to.

The rules follow its own: a global layer caches every token, a local one its window and one batch, both in
steps of 256 cells; a layer's weights and cache lie where the layer is computed; the input embedding stays in
main memory. The compute buffer is the largest set of activations alive at once, with flash attention. Cache
and weights come out exact, compute buffers a little too large.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from engine.gguf.drafter import DrafterMetadata
from engine.gguf.model import ModelMetadata, Shape, WeightSizes
from engine.gguf.projector import ProjectorMetadata
from engine.placement import Device, Machine

KvType = Literal["f16", "q8_0"]
BufferKind = Literal[
    "weights",
    "global cache",
    "local cache",
    "compute",
    "output",
    "checkpoints",
    "drafter weights",
    "drafter cache",
    "drafter compute",
    "vision weights",
    "vision compute",
]
VisionPlace = Literal["gpu", "cpu", "off"]

DRAFTER_BATCH = 128
"""Rows the drafter takes in one decode. llama.cpp reserves scores for all of them, so it is kept small."""

CELL_STEP = 256
"""Cache cells come in steps of this many."""

CHECKPOINTS = 13
"""Copies of the local layers' window that a long conversation keeps in main memory to go back to."""

Q8_BLOCK = 32
"""Numbers of a head that q8_0 stores together; it stores no head that is not a multiple."""

_PATCHES_PER_IMAGE_TOKEN = 4
_ROTATED_HEAD = 64
_INPUT_COPIES = 4
"""Over several GPUs the inputs are kept this often, so that batches can overlap."""

_BLOCK: Mapping[KvType, tuple[int, int]] = {"f16": (1, 2), "q8_0": (Q8_BLOCK, 34)}
"""Numbers in a block of the cache and its bytes."""


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """What is to be loaded."""

    model: ModelMetadata
    drafter: DrafterMetadata | None = None
    projector: ProjectorMetadata | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """How it is to be loaded. `outputs` is the most rows of scores of one decode.

    `gpu_layers` counts from the last layer, with the head as one more. A drafter lies wholly on the GPUs
    when any layer does, and its cache has the same `kv_type`. Layers in main memory still send the larger
    part of their weights to the GPU, one after the other, while a prompt is read.
    """

    context: int
    kv_type: KvType
    ubatch: int
    outputs: int
    gpu_layers: int
    drafter: bool
    vision: VisionPlace
    image_tokens: int


@dataclass(frozen=True, slots=True)
class Buffer:
    """One reservation."""

    kind: BufferKind
    device: str
    nbytes: int


def predict(files: ModelFiles, settings: Settings, devices: Sequence[Device]) -> tuple[Buffer, ...]:
    """All buffers, at most one of a kind on a device. One of the devices is the CPU."""
    found: dict[tuple[BufferKind, str], int] = {}
    for buffer in _all(files, settings, Machine.of(devices, settings.gpu_layers)):
        key = (buffer.kind, buffer.device)
        found[key] = found.get(key, 0) + buffer.nbytes
    return tuple(Buffer(kind, device, nbytes) for (kind, device), nbytes in found.items() if nbytes)


def cell_bytes(shape: Shape, kv_type: KvType) -> int:
    """Bytes of one token's keys and values in one layer."""
    numbers, nbytes = _BLOCK[kv_type]
    return 2 * shape.kv_heads * shape.head // numbers * nbytes


def local_cells(window: int, context: int, ubatch: int) -> int:
    """Cells of a local layer's cache, for one sequence."""
    cells = padded(context)
    return padded(min(cells, window + min(ubatch, cells)))


def padded(cells: int) -> int:
    """`cells` in whole steps."""
    return -(-cells // CELL_STEP) * CELL_STEP


def _all(files: ModelFiles, settings: Settings, machine: Machine) -> Iterator[Buffer]:
    model = files.model
    drafter = files.drafter if settings.drafter else None
    places = machine.places(model.shape.layers)
    yield from _weights("weights", model.weights, places, machine.host)
    yield from _cache(model.shape, settings, places)
    graph = _Graph(model.shape, settings, model.vocabulary_size)
    yield from _compute("compute", graph, places, machine)
    if machine.gpus and machine.host in places:
        yield Buffer("compute", machine.gpus[0].name, max(model.weights.layers) // 2)
    rows = settings.outputs * model.vocabulary_size
    if drafter is not None:
        rows += len(drafter.target_layers) * model.shape.width * settings.ubatch
    yield Buffer("output", machine.host, 4 * rows)
    yield Buffer("checkpoints", machine.host, CHECKPOINTS * _window_bytes(model.shape, settings))
    if drafter is not None:
        yield from _drafter(drafter, settings, machine.whole())
    if files.projector is not None and settings.vision != "off":
        gpu = machine.gpus[0].name if machine.gpus and settings.vision == "gpu" else None
        yield from _vision(files.projector, settings.image_tokens, gpu, machine.host)


def _weights(kind: BufferKind, sizes: WeightSizes, places: list[str], host: str) -> Iterator[Buffer]:
    yield Buffer(kind, host, sizes.embedding)
    for place, nbytes in zip(places, (*sizes.layers, sizes.output), strict=True):
        yield Buffer(kind, place, nbytes)


def _cache(shape: Shape, settings: Settings, places: list[str]) -> Iterator[Buffer]:
    cell = cell_bytes(shape, settings.kv_type)
    local = cell * local_cells(shape.window, settings.context, settings.ubatch)
    for place, is_local in zip(places, shape.local, strict=False):
        if is_local:
            yield Buffer("local cache", place, local)
        else:
            yield Buffer("global cache", place, cell * padded(settings.context))


def _window_bytes(shape: Shape, settings: Settings) -> int:
    cells = min(shape.window, padded(settings.context))
    return sum(shape.local) * cells * cell_bytes(shape, settings.kv_type)


@dataclass(frozen=True, slots=True)
class _Graph:
    """The activations of one decode of a full batch."""

    shape: Shape
    settings: Settings
    vocabulary: int

    @property
    def rows(self) -> int:
        return min(self.settings.ubatch, padded(self.settings.context))

    @property
    def masks(self) -> int:
        """Which token sees which cell, in two bytes, for the two kinds of layers."""
        cells = 0
        if any(self.shape.local):
            cells += local_cells(self.shape.window, self.settings.context, self.settings.ubatch)
        if not all(self.shape.local):
            cells += padded(self.settings.context)
        return 2 * cells * self.rows

    @property
    def embedded(self) -> int:
        return 4 * self.rows * self.shape.width

    @property
    def layer(self) -> int:
        """The most that is alive within a layer: its feed-forward part, or its attention."""
        shape = self.shape
        queries, keys = shape.heads * shape.head, shape.kv_heads * shape.head
        is_rotated = self.settings.kv_type != "f16" and shape.head % _ROTATED_HEAD == 0
        attention = 3 * shape.width + 2 * queries + (2 * keys if is_rotated else keys)
        numbers = max(3 * (shape.width + shape.feed_forward), 4 * shape.width, attention)
        return 4 * (self.rows * numbers + (4 * shape.head**2 if is_rotated else 0))

    @property
    def head(self) -> int:
        """The scores, once the layers' activations are gone."""
        return 4 * min(self.settings.outputs, self.rows) * (self.vocabulary + 3 * self.shape.width)

    @property
    def most(self) -> int:
        return max(self.masks + self.layer, self.head)


def _compute(kind: BufferKind, graph: _Graph, places: list[str], machine: Machine) -> Iterator[Buffer]:
    if not machine.gpus:
        yield Buffer(kind, machine.host, graph.most)
        return
    has_host_layers = machine.host in places
    yield Buffer(kind, machine.host, graph.masks + (graph.layer if has_host_layers else graph.embedded))
    copies = _INPUT_COPIES - 1 if len(machine.gpus) > 1 else 0
    for gpu in machine.gpus:
        yield Buffer(kind, gpu.name, graph.most + copies * graph.masks)


def _drafter(drafter: DrafterMetadata, settings: Settings, machine: Machine) -> Iterator[Buffer]:
    batch = min(DRAFTER_BATCH, settings.ubatch)
    own = Settings(
        settings.context,
        settings.kv_type,
        batch,
        batch,
        machine.gpu_layers,
        drafter=False,
        vision="off",
        image_tokens=0,
    )
    places = machine.places(drafter.shape.layers)
    yield from _weights("drafter weights", drafter.weights, places, machine.host)
    for buffer in _cache(drafter.shape, own, places):
        yield Buffer("drafter cache", buffer.device, buffer.nbytes)
    graph = _Graph(drafter.shape, own, drafter.vocabulary_size)
    yield from _compute("drafter compute", graph, places, machine)
    yield Buffer("output", machine.host, 4 * drafter.block * drafter.vocabulary_size)


def _vision(projector: ProjectorMetadata, tokens: int, gpu: str | None, host: str) -> Iterator[Buffer]:
    """The largest image: a mask of four bytes a pair of patches is made in main memory and copied twice."""
    patches = _PATCHES_PER_IMAGE_TOKEN * tokens
    pairs = patches**2
    wide = max(2 * (projector.width + projector.feed_forward), 6 * projector.width)
    activations = 4 * patches * wide
    yield Buffer("vision weights", gpu or host, projector.nbytes)
    yield Buffer("vision compute", host, 8 * pairs if gpu else 4 * pairs)
    yield Buffer("vision compute", gpu or host, 6 * pairs + activations)
