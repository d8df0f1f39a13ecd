"""Write model files of any shape, fast: `python -m benchmarks.shape_gguf shape.gguf`.

The weights say nothing; sizes, names and keys are those of the real architecture. With 52 layers, 32 heads
over 2 key-value heads of 128 and a window of 2,048, but a width of 64, a file of 46 MB has the whole cache
of the 30B model: so memory and cache behaviour can be measured on a machine without a GPU.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import gguf
import numpy as np
import numpy.typing as npt

TARGET = "muse-glimmer"
DRAFTER = "dflash"
PROJECTOR = "clip"
SPECIALS = (
    "<|begin_of_text|>",
    "<|end_of_text|>",
    "<|start|>",
    "<|message|>",
    "<|eom|>",
    "<|eot|>",
    "<|image_start|>",
    "<|image_end|>",
    "<|patch|>",
    "<|pad|>",
    "<|mask|>",
)
MERGED = "Ġt"
"""A token of two bytes: there must be a merge, and what it makes must be a token."""
SMALLEST_VOCABULARY = 256 + len(SPECIALS) + 1

Kind = Literal["F32", "F16", "Q8_0", "Q4_0"]
Size = tuple[int, ...]

SHARPNESS = 4.0
"""Gain of the query norm of random models: their attention singles out tokens, so that a lost one is seen."""

_POOL_BYTES = 1 << 20
_SCALE = np.float16(0.002)


@dataclass(frozen=True, slots=True)
class ModelShape:
    """The sizes of a target model; the defaults have the cache of the 30B at 1/104 of its width."""

    layers: int = 52
    width: int = 64
    ffn: int = 192
    vocabulary: int = SMALLEST_VOCABULARY
    heads: int = 32
    kv_heads: int = 2
    head: int = 128
    window: int = 2048
    context: int = 131072


@dataclass(frozen=True, slots=True)
class DrafterShape:
    """The sizes of a drafter beside a `ModelShape`, whose width and vocabulary it shares."""

    layers: int = 5
    ffn: int = 192
    heads: int = 32
    kv_heads: int = 8
    head: int = 128
    window: int = 2048
    block: int = 16
    target_layers: tuple[int, ...] = (2, 14, 26, 38, 50)


@dataclass(frozen=True, slots=True)
class ProjectorShape:
    """The sizes of a vision projector for a model of `out` numbers a token; `side` positions a side."""

    out: int
    width: int = 64
    ffn: int = 128
    blocks: int = 4
    heads: int = 4
    side: int = 8
    adapter: int = 96


def write_projector(path: Path, shape: ProjectorShape, kind: Kind = "F32", seed: int | None = None) -> Path:
    """Write a vision projector."""
    writer = gguf.GGUFWriter(path, PROJECTOR)
    writer.add_type("mmproj")
    writer.add_bool("clip.has_vision_encoder", True)
    writer.add_string("clip.projector_type", TARGET)
    sizes = {
        "embedding_length": shape.width,
        "feed_forward_length": shape.ffn,
        "block_count": shape.blocks,
        "projection_dim": shape.out,
        "image_size": shape.side * 28,
        "patch_size": 14,
        "spatial_merge_size": 2,
        "attention.head_count": shape.heads,
    }
    for name, size in sizes.items():
        writer.add_uint32(f"clip.vision.{name}", size)
    writer.add_float32("clip.vision.attention.layer_norm_epsilon", 1e-5)
    writer.add_array("clip.vision.image_mean", [0.5] * 3)
    writer.add_array("clip.vision.image_std", [0.5] * 3)
    writer.add_bool("clip.use_gelu", True)
    patches = np.random.default_rng(seed).normal(0.0, 0.05, (shape.width, 3, 14, 14))
    writer.add_tensor("v.patch_embd.weight", (patches * (seed is not None)).astype(np.float32))
    rows = np.random.default_rng(seed).normal(0.0, 0.5, (shape.side**2, shape.width))
    writer.add_tensor("v.position_embd.weight", (rows * (seed is not None)).astype(np.float32))
    _add_tensors(writer, projector_tensors(shape), kind, seed)
    return finish(writer, path)


def projector_tensors(shape: ProjectorShape) -> Iterator[tuple[str, Size]]:
    """The tensors of a projector but those of its patches and positions, rows first."""
    width = shape.width
    for name in ("v.pre_ln", "v.post_ln"):
        yield f"{name}.weight", (width,)
        yield f"{name}.bias", (width,)
    for block in range(shape.blocks):
        for name in ("attn_q", "attn_k", "attn_v", "attn_out"):
            yield f"v.blk.{block}.{name}.weight", (width, width)
            yield f"v.blk.{block}.{name}.bias", (width,)
        for name in ("ln1", "ln2"):
            yield f"v.blk.{block}.{name}.weight", (width,)
            yield f"v.blk.{block}.{name}.bias", (width,)
        yield f"v.blk.{block}.ffn_up.weight", (shape.ffn, width)
        yield f"v.blk.{block}.ffn_up.bias", (shape.ffn,)
        yield f"v.blk.{block}.ffn_down.weight", (width, shape.ffn)
        yield f"v.blk.{block}.ffn_down.bias", (width,)
    yield "mm.0.weight", (shape.adapter, 4 * width)
    yield "mm.1.weight", (shape.adapter, shape.adapter)
    yield "mm.2.weight", (shape.out, shape.adapter)


def write_model(path: Path, shape: ModelShape, kind: Kind = "Q8_0", seed: int | None = None) -> Path:
    """Write a target model. Matrices are zero, or random where a seed is given; gains are one."""
    writer = gguf.GGUFWriter(path, TARGET)
    _add_common(writer, shape, shape)
    writer.add_sliding_window(shape.window)
    writer.add_sliding_window_pattern([(layer + 1) % 4 != 0 for layer in range(shape.layers)])
    writer.add_final_logit_softcapping(20.0)
    writer.add_logit_scale(0.2)
    _add_vocabulary(writer, shape.vocabulary)
    _add_tensors(writer, model_tensors(shape), kind, seed)
    return finish(writer, path)


def write_drafter(
    path: Path, target: ModelShape, shape: DrafterShape, kind: Kind = "Q8_0", seed: int | None = None
) -> Path:
    """Write a drafter for `target`; it has no embedding and no head of its own."""
    writer = gguf.GGUFWriter(path, DRAFTER)
    add_drafter_keys(writer, target, shape)
    _add_tensors(writer, drafter_tensors(target, shape), kind, seed)
    return finish(writer, path)


def add_drafter_keys(writer: gguf.GGUFWriter, target: ModelShape, shape: DrafterShape) -> None:
    """Everything of a drafter but its tensors."""
    _add_common(writer, target, shape)
    writer.add_sliding_window(shape.window)
    writer.add_sliding_window_pattern([True] * shape.layers)
    writer.add_uint32(f"{DRAFTER}.block_size", shape.block)
    writer.add_array(f"{DRAFTER}.target_layers", list(shape.target_layers))
    _add_vocabulary(writer, target.vocabulary)
    writer.add_mask_token_id(256 + SPECIALS.index("<|mask|>"))


def model_tensors(shape: ModelShape) -> Iterator[tuple[str, Size]]:
    """The tensors of a target model, rows first."""
    width, queries, keys = shape.width, shape.heads * shape.head, shape.kv_heads * shape.head
    yield "token_embd.weight", (shape.vocabulary, width)
    yield "output_norm.weight", (width,)
    yield "output.weight", (shape.vocabulary, width)
    for layer in range(shape.layers):
        yield f"blk.{layer}.post_attention_norm.weight", (width,)
        yield f"blk.{layer}.post_ffw_norm.weight", (width,)
        yield f"blk.{layer}.attn_gate.weight", (queries, width)
        yield from _layer(layer, width, shape.ffn, (queries, keys, shape.head))


def drafter_tensors(target: ModelShape, shape: DrafterShape) -> Iterator[tuple[str, Size]]:
    """The tensors of a drafter, rows first."""
    width, queries, keys = target.width, shape.heads * shape.head, shape.kv_heads * shape.head
    yield "fc.weight", (width, len(shape.target_layers) * width)
    yield "enc.output_norm.weight", (width,)
    yield "output_norm.weight", (width,)
    for layer in range(shape.layers):
        yield from _layer(layer, width, shape.ffn, (queries, keys, shape.head))


def _layer(layer: int, width: int, ffn: int, attention: Size) -> Iterator[tuple[str, Size]]:
    queries, keys, head = attention
    sizes: dict[str, Size] = {
        "attn_norm": (width,),
        "ffn_norm": (width,),
        "attn_q_norm": (head,),
        "attn_k_norm": (head,),
        "attn_q": (queries, width),
        "attn_k": (keys, width),
        "attn_v": (keys, width),
        "attn_output": (width, queries),
        "ffn_up": (ffn, width),
        "ffn_gate": (ffn, width),
        "ffn_down": (width, ffn),
    }
    for name, size in sizes.items():
        yield f"blk.{layer}.{name}.weight", size


def _add_common(writer: gguf.GGUFWriter, target: ModelShape, shape: ModelShape | DrafterShape) -> None:
    writer.add_name("Shape without content")
    writer.add_bool("glimmer.demo", True)
    writer.add_context_length(target.context)
    writer.add_embedding_length(target.width)
    writer.add_vocab_size(target.vocabulary)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.ffn)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_key_length(shape.head)
    writer.add_value_length(shape.head)
    writer.add_rope_dimension_count(shape.head)
    writer.add_rope_freq_base(500000.0)
    writer.add_layer_norm_rms_eps(1e-5)


def _add_vocabulary(writer: gguf.GGUFWriter, size: int) -> None:
    if size < SMALLEST_VOCABULARY:
        raise ValueError(f"a vocabulary has {SMALLEST_VOCABULARY} tokens or more")
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    spare = iter(range(256, 512))
    alphabet = [chr(byte) if byte in plain else chr(next(spare)) for byte in range(256)]
    filler = [f"filler{number}" for number in range(size - SMALLEST_VOCABULARY)]
    tokens = [*alphabet, *SPECIALS, MERGED, *filler]
    types = [int(gguf.TokenType.NORMAL)] * size
    types[256 : 256 + len(SPECIALS)] = [int(gguf.TokenType.CONTROL)] * len(SPECIALS)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges(["Ġ t"])
    writer.add_bos_token_id(tokens.index("<|begin_of_text|>"))
    writer.add_eos_token_id(tokens.index("<|end_of_text|>"))
    writer.add_eot_token_id(tokens.index("<|eot|>"))
    writer.add_pad_token_id(tokens.index("<|pad|>"))
    writer.add_add_bos_token(False)


def _add_tensors(
    writer: gguf.GGUFWriter, tensors: Iterator[tuple[str, Size]], kind: Kind, seed: int | None
) -> None:
    pool = None if seed is None else _pool(kind, np.random.default_rng(seed))
    for name, size in tensors:
        if len(size) == 1:
            gain = SHARPNESS if seed is not None and "attn_q_norm" in name else 1.0
            gain = 0.0 if name.endswith(".bias") else gain
            writer.add_tensor(name, np.full(size, gain, np.float32))
        else:
            writer.add_tensor(name, _matrix(size, kind, pool), raw_dtype=gguf.GGMLQuantizationType[kind])


def _pool(kind: Kind, rng: np.random.Generator) -> npt.NDArray[np.uint8]:
    """About a megabyte of finite random weights, which all matrices are cut from."""
    block, nbytes = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind]]
    count = _POOL_BYTES // nbytes
    match kind:
        case "F32":
            return rng.normal(0.0, 0.5, count).astype(np.float32).view(np.uint8)
        case "F16":
            return rng.normal(0.0, 0.5, count).astype(np.float16).view(np.uint8)
        case "Q8_0" | "Q4_0":
            numbers = rng.integers(0, 256, (count, block * (nbytes - 2) // block), dtype=np.uint8)
            scales = np.full((count, 1), _SCALE).view(np.uint8)
            return np.concatenate([scales, numbers], axis=1).reshape(-1)


def _matrix(size: Size, kind: Kind, pool: npt.NDArray[np.uint8] | None) -> npt.NDArray[Any]:
    """The stored bytes of a matrix of `size`, rows first."""
    rows, columns = size
    block, nbytes = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind]]
    if columns % block:
        raise ValueError(f"{kind} stores rows of a multiple of {block} numbers, not {columns}")
    row_bytes = columns // block * nbytes
    if pool is None:
        return _typed(np.zeros((rows, row_bytes), np.uint8), kind)
    return _typed(np.resize(pool, (rows, row_bytes)), kind)


def _typed(raw: npt.NDArray[np.uint8], kind: Kind) -> npt.NDArray[Any]:
    """Plain kinds are handed to the writer as numbers, quantized ones as bytes."""
    match kind:
        case "F32":
            return raw.view(np.float32)
        case "F16":
            return raw.view(np.float16)
        case "Q8_0" | "Q4_0":
            return raw


def finish(writer: gguf.GGUFWriter, path: Path) -> Path:
    """Write out what `writer` holds."""
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def main() -> None:
    """Write one target model of the wanted sizes."""
    default = ModelShape()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    for name in ModelShape.__dataclass_fields__:
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=getattr(default, name))
    parser.add_argument("--kind", choices=("F32", "F16", "Q8_0", "Q4_0"), default="Q8_0")
    parser.add_argument("--seed", type=int, help="random weights of this seed instead of zeros")
    options = parser.parse_args()
    shape = ModelShape(**{name: getattr(options, name) for name in ModelShape.__dataclass_fields__})
    path = write_model(options.path, shape, options.kind, options.seed)
    print(f"{path}: {path.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
