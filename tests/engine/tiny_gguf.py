"""Write a tiny random muse-glimmer model: the real architecture at width 64, nearly one token a byte."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gguf
import numpy as np

SPECIALS = (
    "<|begin_of_text|>",
    "<|end_of_text|>",
    "<|start|>",
    "<|message|>",
    "<|eom|>",
    "<|eot|>",
    "<|patch|>",
    "<|image_start|>",
    "<|image_end|>",
    "<|pad|>",
)
MERGED = "Ġt"
"""A token of two bytes, a space and a t: there must be a merge, and what it makes must be a token."""
ARCHITECTURE = "muse-glimmer"


def byte_alphabet() -> list[str]:
    """The printable character that stands for each byte in a byte-level vocabulary, by byte value."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    spare = iter(range(256, 512))
    return [chr(byte) if byte in plain else chr(next(spare)) for byte in range(256)]


def default_tokens() -> list[str]:
    return [*byte_alphabet(), *SPECIALS, MERGED]


@dataclass(frozen=True)
class Shape:
    """The sizes of a test model. `layers` repeat local, local, local, global."""

    layers: int = 4
    width: int = 64
    heads: int = 2
    kv_heads: int = 1
    head: int = 32
    ffn: int = 64
    window: int = 64
    context: int = 4096

    @property
    def local_layers(self) -> list[bool]:
        return [(layer + 1) % 4 != 0 for layer in range(self.layers)]


def tensors(shape: Shape, vocab: int, seed: int = 0) -> dict[str, np.ndarray[Any, np.dtype[np.float32]]]:
    """Random weights under the names llama.cpp looks up, rows first as numpy has them."""
    rng = np.random.default_rng(seed)

    def weight(*size: int) -> np.ndarray[Any, np.dtype[np.float32]]:
        return rng.normal(0.0, 0.2, size).astype(np.float32)

    def ones(size: int) -> np.ndarray[Any, np.dtype[np.float32]]:
        return np.ones(size, np.float32)

    q, kv = shape.heads * shape.head, shape.kv_heads * shape.head
    named = {
        "token_embd.weight": weight(vocab, shape.width),
        "output_norm.weight": ones(shape.width),
        "output.weight": weight(vocab, shape.width),
    }
    for layer in range(shape.layers):
        block = {
            "attn_norm": ones(shape.width),
            "post_attention_norm": ones(shape.width),
            "ffn_norm": ones(shape.width),
            "post_ffw_norm": ones(shape.width),
            "attn_q_norm": ones(shape.head),
            "attn_k_norm": ones(shape.head),
            "attn_q": weight(q, shape.width),
            "attn_k": weight(kv, shape.width),
            "attn_v": weight(kv, shape.width),
            "attn_gate": weight(q, shape.width),
            "attn_output": weight(shape.width, q),
            "ffn_up": weight(shape.ffn, shape.width),
            "ffn_gate": weight(shape.ffn, shape.width),
            "ffn_down": weight(shape.width, shape.ffn),
        }
        named |= {f"blk.{layer}.{name}.weight": value for name, value in block.items()}
    return named


def metadata(shape: Shape, tokens: list[str]) -> dict[str, Any]:
    """The keys of the model; a test replaces or drops single ones."""
    a = ARCHITECTURE
    types = [int(gguf.TokenType.NORMAL)] * len(tokens)
    for position, token in enumerate(tokens):
        if token.startswith("<|"):
            types[position] = int(gguf.TokenType.CONTROL)
    return {
        "general.architecture": a,
        "general.name": "Tiny Glimmer",
        "glimmer.demo": True,
        f"{a}.block_count": np.uint32(shape.layers),
        f"{a}.context_length": np.uint32(shape.context),
        f"{a}.embedding_length": np.uint32(shape.width),
        f"{a}.feed_forward_length": np.uint32(shape.ffn),
        f"{a}.attention.head_count": np.uint32(shape.heads),
        f"{a}.attention.head_count_kv": np.uint32(shape.kv_heads),
        f"{a}.attention.key_length": np.uint32(shape.head),
        f"{a}.attention.value_length": np.uint32(shape.head),
        f"{a}.attention.layer_norm_rms_epsilon": 1e-5,
        f"{a}.attention.sliding_window": np.uint32(shape.window),
        f"{a}.attention.sliding_window_pattern": shape.local_layers,
        f"{a}.rope.freq_base": 500000.0,
        f"{a}.rope.dimension_count": np.uint32(shape.head),
        f"{a}.vocab_size": np.uint32(len(tokens)),
        f"{a}.final_logit_softcapping": 20.0,
        f"{a}.logit_scale": 1.0,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": types,
        "tokenizer.ggml.merges": ["Ġ t"],
        "tokenizer.ggml.bos_token_id": np.uint32(tokens.index("<|begin_of_text|>")),
        "tokenizer.ggml.eos_token_id": np.uint32(tokens.index("<|end_of_text|>")),
        "tokenizer.ggml.eot_token_id": np.uint32(tokens.index("<|eot|>")),
        "tokenizer.ggml.add_bos_token": False,
    }


def add_key(writer: gguf.GGUFWriter, key: str, value: Any) -> None:
    """Store a key. Floats are float32, integers uint32, lists arrays."""
    match value:
        case bool():
            writer.add_bool(key, value)
        case str():
            writer.add_string(key, value)
        case float():
            writer.add_float32(key, value)
        case list():
            writer.add_array(key, value)
        case _:
            writer.add_uint32(key, int(value))


def write(
    path: Path, keys: dict[str, Any], weights: dict[str, np.ndarray[Any, Any]], alignment: int = 32
) -> Path:
    """Write a GGUF file of these keys and tensors. Floats are float32, lists are arrays."""
    writer = gguf.GGUFWriter(path, keys["general.architecture"])
    if alignment != 32:
        writer.add_custom_alignment(alignment)
    for key, value in keys.items():
        if key == "general.architecture":
            continue
        add_key(writer, key, value)
    for name, value in weights.items():
        writer.add_tensor(name, value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def write_tiny(path: Path, shape: Shape | None = None, seed: int = 0, **replaced: Any) -> Path:
    """A whole, loadable model. `replaced` keys are given with `__` for each dot; None drops the key."""
    shape = shape or Shape()
    tokens = default_tokens()
    keys = metadata(shape, tokens)
    for name, value in replaced.items():
        key = name.replace("__", ".")
        if value is None:
            keys.pop(key)
        else:
            keys[key] = value
    return write(path, keys, tensors(shape, len(tokens), seed))
