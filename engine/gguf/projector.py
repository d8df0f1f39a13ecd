"""What a vision projector file must hold, and whether it belongs to the model beside it.

As with a model file, everything llama.cpp would assert on is checked before it sees the file.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from engine.gguf.file import GgufFile, TensorType, ValueType, read_gguf
from engine.gguf.keys import Keys, printable
from engine.gguf.model import ModelMetadata

ARCHITECTURE = "clip"
PROJECTOR = "muse-glimmer"
PATCH, MERGE = 14, 2

_MAX_WIDTH = 1 << 17
_MAX_BLOCKS = 512
_CHOOSE = "Choose the projector (mmproj) of Muse Glimmer."


@dataclass(frozen=True, slots=True)
class ProjectorMetadata:
    """A checked projector file: `nbytes` of weights, `width`, `feed_forward` and `blocks` of its encoder."""

    path: Path
    nbytes: int
    width: int
    feed_forward: int
    blocks: int


def read_projector_file(path: Path, target: ModelMetadata) -> ProjectorMetadata:
    """Check that `path` is a projector for `target` that llama.cpp can load. Raises ModelError."""
    file = read_gguf(path)
    keys = Keys(file, ARCHITECTURE, "projector")
    _check_kind(keys)
    shape = _shape(keys, file)
    if shape.out != target.shape.width:
        keys.fail(
            f"It was made for a model of width {shape.out}; that of {target.name} is {target.shape.width}.",
            _CHOOSE,
        )
    _check_tensors(file, keys, shape)
    return ProjectorMetadata(
        path=path,
        nbytes=sum(tensor.nbytes for tensor in file.tensors.values()),
        width=shape.width,
        feed_forward=shape.feed_forward,
        blocks=shape.blocks,
    )


@dataclass(frozen=True, slots=True)
class _Shape:
    """Sizes: of the encoder, of its grid of learned positions, and of the three layers after it."""

    width: int
    feed_forward: int
    blocks: int
    positions: int
    adapter: tuple[int, int]
    out: int

    def tensors(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """All tensors with their shapes from the fastest dimension; biases may be absent."""
        width, wide = self.width, self.feed_forward
        first, second = self.adapter
        yield "v.patch_embd.weight", (PATCH, PATCH, 3, width)
        yield "v.patch_embd.bias", (width,)
        yield "v.position_embd.weight", (width, self.positions)
        for name in ("v.pre_ln", "v.post_ln"):
            yield f"{name}.weight", (width,)
            yield f"{name}.bias", (width,)
        for block in range(self.blocks):
            for name in ("attn_q", "attn_k", "attn_v", "attn_out"):
                yield f"v.blk.{block}.{name}.weight", (width, width)
                yield f"v.blk.{block}.{name}.bias", (width,)
            for name in ("ln1", "ln2"):
                yield f"v.blk.{block}.{name}.weight", (width,)
                yield f"v.blk.{block}.{name}.bias", (width,)
            yield f"v.blk.{block}.ffn_up.weight", (width, wide)
            yield f"v.blk.{block}.ffn_up.bias", (wide,)
            yield f"v.blk.{block}.ffn_down.weight", (wide, width)
            yield f"v.blk.{block}.ffn_down.bias", (width,)
        yield "mm.0.weight", (width * MERGE * MERGE, first)
        yield "mm.1.weight", (first, second)
        yield "mm.2.weight", (second, self.out)


def _check_kind(keys: Keys) -> None:
    architecture = keys.optional("general.architecture", ValueType.STRING, "")
    if architecture != ARCHITECTURE:
        keys.fail(f"Its kind is {printable(architecture)!r}; a projector's is {ARCHITECTURE!r}.", _CHOOSE)
    kind = keys.optional("clip.projector_type", ValueType.STRING, "")
    kind = keys.optional("clip.vision.projector_type", ValueType.STRING, kind)
    if kind != PROJECTOR:
        keys.fail(f"It is for models of the kind {printable(kind)!r}.", _CHOOSE)
    if not keys.optional("clip.has_vision_encoder", ValueType.BOOL, False):
        keys.fail("It has no vision encoder.", _CHOOSE)
    for other in ("clip.has_audio_encoder", "clip.has_gen_audio_encoder"):
        if keys.optional(other, ValueType.BOOL, False):
            keys.fail("It holds an audio encoder too, and Muse Glimmer has none.", _CHOOSE)


def _shape(keys: Keys, file: GgufFile) -> _Shape:
    width = keys.size("vision.embedding_length", 4, _MAX_WIDTH)
    heads = keys.size("vision.attention.head_count", 1, 1024)
    if width % (4 * heads):
        keys.fail(f"Its width of {width} cannot be shared by {heads} heads with positions in two directions.")
    keys.equal("vision.attention.head_count_kv", heads)
    keys.equal("vision.attention.key_length", width // heads)
    keys.equal("vision.patch_size", PATCH)
    keys.equal("vision.spatial_merge_size", MERGE)
    keys.real("vision.attention.layer_norm_epsilon", 0.0, 0.1)
    side = keys.size("vision.image_size", PATCH * MERGE, 1 << 14)
    for name in ("clip.vision.image_mean", "clip.vision.image_std"):
        values = keys.array(name, ValueType.FLOAT32)
        if len(values) != 3 or not all(isinstance(v, float) and math.isfinite(v) for v in values):
            keys.fail(f"Its key {name} is not three numbers.")
        if name.endswith("std") and any(not value for value in values):
            keys.fail(f"Its key {name} holds a zero.")
    if side % PATCH:
        keys.fail(f"Its pictures of {side} pixels do not part into patches of {PATCH}.")
    return _Shape(
        width=width,
        feed_forward=keys.size("vision.feed_forward_length", 1, _MAX_WIDTH),
        blocks=keys.size("vision.block_count", 1, _MAX_BLOCKS),
        positions=_positions(keys, file),
        adapter=(_rows(keys, file, "mm.0.weight"), _rows(keys, file, "mm.1.weight")),
        out=keys.size("vision.projection_dim", 1, _MAX_WIDTH),
    )


def _positions(keys: Keys, file: GgufFile) -> int:
    """Learned positions: a square grid, whose side is also that of the windows."""
    count = _rows(keys, file, "v.position_embd.weight")
    if math.isqrt(count) ** 2 != count:
        keys.fail(f"Its {count} learned positions are no square.")
    return count


def _rows(keys: Keys, file: GgufFile, name: str) -> int:
    tensor = file.tensors.get(name)
    if tensor is None or len(tensor.shape) != 2 or not 0 < tensor.shape[1] <= 1 << 20:
        keys.fail(f"It lacks the tensor {name}, or its shape is wrong.")
    return tensor.shape[1]


def _check_tensors(file: GgufFile, keys: Keys, shape: _Shape) -> None:
    needed = dict(shape.tensors())
    for name, size in needed.items():
        tensor = file.tensors.get(name)
        if tensor is None:
            if name.endswith(".bias"):
                continue
            keys.fail(f"It lacks the tensor {name}.")
        if tensor.shape != size:
            keys.fail(f"Its tensor {name} has the shape {tensor.shape} where {size} is needed.")
        must_be_plain = len(size) == 1 or name == "v.position_embd.weight"
        if must_be_plain and tensor.type is not TensorType.F32:
            keys.fail(f"Its tensor {name} is stored as {tensor.type.name} where F32 is needed.")
        if name == "v.patch_embd.weight" and tensor.type not in (TensorType.F32, TensorType.F16):
            keys.fail(f"Its tensor {name} is stored as {tensor.type.name}; F32 or F16 is needed.")
    for name in file.tensors:
        if name not in needed:
            keys.fail(f"It holds the tensor {printable(name)!r}, and Muse Glimmer's does not.", _CHOOSE)
