"""What a DFlash drafter file must hold, and whether it belongs to the model beside it.

As with a model file, everything llama.cpp would assert on is checked before it sees the file. Variants with
a head, a vocabulary or a selector of another kind are refused: Glimmer drafts with the plain one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from engine.gguf.file import GgufFile, TensorType, ValueType, read_gguf
from engine.gguf.keys import Keys, printable
from engine.gguf.model import ModelMetadata, Shape, WeightSizes, weight_sizes
from engine.gguf.network import check_network
from engine.gguf.vocabulary import read_vocabulary

ARCHITECTURE = "dflash"
MAX_BLOCK = 256
"""The most tokens of one draft and the token before them."""

_MAX_LAYERS = 512
_MAX_SIZE = 1 << 17
_MAX_WINDOW = 1 << 24
_CHOOSE_DRAFTER = "Choose the drafter that was made for this model."
_ACTIVATIONS = ("silu", "gelu", "gelu_pytorch_tanh")
_MASK_KEY = "tokenizer.ggml.mask_token_id"


@dataclass(frozen=True, slots=True)
class DrafterMetadata:
    """A checked drafter file.

    `block` counts the known token and the drafted ones after it. The drafter reads what goes into each of
    the target's `target_layers`. `shape.window` is 0 where it has no local layers. Without an embedding or
    a head of its own it borrows the target's.
    """

    path: Path
    name: str
    shape: Shape
    block: int
    target_layers: tuple[int, ...]
    mask_id: int
    vocabulary_size: int
    weights: WeightSizes
    has_embedding: bool
    has_head: bool


def read_drafter_file(path: Path, target: ModelMetadata) -> DrafterMetadata:
    """Check that `path` is a plain DFlash drafter for `target` that llama.cpp can load. Raises ModelError."""
    file = read_gguf(path)
    keys = Keys(file, ARCHITECTURE, "drafter")
    _check_kind(keys)
    shape = _shape(keys)
    _check_width(keys, shape, target)
    check_network(keys, shape.width, shape.head)
    _check_variant(keys)
    layers = _target_layers(keys, target)
    vocabulary = len(read_vocabulary(keys))
    if vocabulary != target.vocabulary_size:
        keys.fail(
            f"Its vocabulary has {vocabulary} tokens and that of {target.name} {target.vocabulary_size}.",
            _CHOOSE_DRAFTER,
        )
    _check_tensors(file, keys, _Tensors(shape, len(layers), vocabulary))
    return DrafterMetadata(
        path=path,
        name=printable(keys.optional("general.name", ValueType.STRING, path.stem)) or path.stem,
        shape=shape,
        block=keys.size("block_size", 2, MAX_BLOCK),
        target_layers=layers,
        mask_id=_mask_id(keys, vocabulary),
        vocabulary_size=vocabulary,
        weights=weight_sizes(file, shape.layers),
        has_embedding="token_embd.weight" in file.tensors,
        has_head="output.weight" in file.tensors or "token_embd.weight" in file.tensors,
    )


def _check_kind(keys: Keys) -> None:
    architecture = keys.optional("general.architecture", ValueType.STRING, "")
    if architecture == "muse-glimmer":
        keys.fail("It is a whole model, not a drafter.", "Give it as the model.")
    if architecture == "clip":
        keys.fail("It is a vision projector (mmproj), not a drafter.", "Give it as the projector.")
    if architecture != ARCHITECTURE:
        family = repr(printable(architecture)) if architecture else "not named"
        keys.fail(f"Its kind is {family}; a drafter's is {ARCHITECTURE!r}.", _CHOOSE_DRAFTER)
    split = keys.get("split.count")
    if split is not None and split.value not in (0, 1):
        keys.fail("It is one part of a split file.", "Join the parts with `llama-gguf-split --merge`.")


def _shape(keys: Keys) -> Shape:
    layers = keys.size("block_count", 1, _MAX_LAYERS)
    window = 0
    if keys.get(keys.full("attention.sliding_window")):
        window = keys.size("attention.sliding_window", 0, _MAX_WINDOW)
    shape = Shape(
        layers=layers,
        width=keys.size("embedding_length", 1, _MAX_SIZE),
        feed_forward=keys.size("feed_forward_length", 1, _MAX_SIZE),
        heads=keys.size("attention.head_count", 1, 1024),
        kv_heads=keys.size("attention.head_count_kv", 1, 1024),
        head=keys.size("attention.key_length", 2, 1024),
        window=window,
        local=_local_layers(keys, layers) if window else (False,) * layers,
    )
    if shape.heads % shape.kv_heads:
        keys.fail(f"Its {shape.heads} attention heads cannot share {shape.kv_heads} key-value heads.")
    return shape


def _local_layers(keys: Keys, layers: int) -> tuple[bool, ...]:
    """A flag a layer, at least one of them set: a window without a local layer ends the library."""
    name = keys.full("attention.sliding_window_pattern")
    flags = keys.array(name, ValueType.BOOL)
    if len(flags) != layers or not any(flags):
        keys.fail(f"Its key {name} does not name the local layers.")
    return tuple(map(bool, flags))


def _check_width(keys: Keys, shape: Shape, target: ModelMetadata) -> None:
    if shape.width != target.shape.width:
        keys.fail(
            f"It was made for a model of width {shape.width}; that of {target.name} is {target.shape.width}.",
            _CHOOSE_DRAFTER,
        )


def _check_variant(keys: Keys) -> None:
    for short in ("hyper_connection.count", "selector_rank"):
        keys.equal(short, 0)
    if keys.get(keys.full("rope.dimension_sections")):
        keys.fail("Its positions have several dimensions, and Muse Glimmer's have one.", _CHOOSE_DRAFTER)
    activation = keys.optional(keys.full("hidden_activation"), ValueType.STRING, "silu")
    if activation not in _ACTIVATIONS:
        keys.fail(f"Its activation {printable(activation)!r} is not supported.")


def _target_layers(keys: Keys, target: ModelMetadata) -> tuple[int, ...]:
    name = keys.full("target_layers")
    found = keys.get(name)
    kind = ValueType.INT32 if found and found.items is ValueType.INT32 else ValueType.UINT32
    layers = tuple(int(layer) for layer in keys.array(name, kind))
    if not layers or len(set(layers)) != len(layers):
        keys.fail(f"Its key {name} does not name the layers it reads.")
    for layer in layers:
        if not 0 <= layer < target.shape.layers:
            keys.fail(
                f"It reads layer {layer}, and {target.name} has the layers 0 to {target.shape.layers - 1}.",
                _CHOOSE_DRAFTER,
            )
    return layers


def _mask_id(keys: Keys, vocabulary: int) -> int:
    mask = keys.required(_MASK_KEY, ValueType.UINT32)
    if not isinstance(mask, int) or not mask < vocabulary:
        keys.fail(f"Its mask is token {mask}, which its vocabulary of {vocabulary} lacks.")
    return mask


@dataclass(frozen=True, slots=True)
class _Tensors:
    """The tensors of a plain drafter, with their shapes from the fastest dimension."""

    shape: Shape
    inputs: int
    vocabulary: int

    def needed(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        width, wide, head = self.shape.width, self.shape.feed_forward, self.shape.head
        queries, keys = self.shape.heads * head, self.shape.kv_heads * head
        yield "fc.weight", (self.inputs * width, width)
        yield "enc.output_norm.weight", (width,)
        yield "output_norm.weight", (width,)
        layer: dict[str, tuple[int, ...]] = {
            "attn_norm": (width,),
            "ffn_norm": (width,),
            "attn_q_norm": (head,),
            "attn_k_norm": (head,),
            "attn_q": (width, queries),
            "attn_k": (width, keys),
            "attn_v": (width, keys),
            "attn_output": (queries, width),
            "ffn_up": (width, wide),
            "ffn_gate": (width, wide),
            "ffn_down": (wide, width),
        }
        for number in range(self.shape.layers):
            for name, size in layer.items():
                yield f"blk.{number}.{name}.weight", size

    def possible(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        yield "token_embd.weight", (self.shape.width, self.vocabulary)
        yield "output.weight", (self.shape.width, self.vocabulary)
        for number in range(self.shape.layers):
            yield f"blk.{number}.post_attention_norm.weight", (self.shape.width,)
            yield f"blk.{number}.post_ffw_norm.weight", (self.shape.width,)


def _check_tensors(file: GgufFile, keys: Keys, tensors: _Tensors) -> None:
    needed = dict(tensors.needed())
    known = needed | dict(tensors.possible())
    for name in needed:
        if name not in file.tensors:
            keys.fail(f"It lacks the tensor {name}.")
    for tensor in file.tensors.values():
        size = known.get(tensor.name)
        if size is None:
            keys.fail(
                f"It holds the tensor {printable(tensor.name)!r}, and a plain DFlash drafter does not.",
                _CHOOSE_DRAFTER,
            )
        if tensor.shape != size:
            keys.fail(f"Its tensor {tensor.name} has the shape {tensor.shape} where {size} is needed.")
        if len(size) == 1 and tensor.type is not TensorType.F32:
            keys.fail(f"Its tensor {tensor.name} is stored as {tensor.type.name} where F32 is needed.")
