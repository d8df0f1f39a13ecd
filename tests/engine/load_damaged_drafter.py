"""Run in a child process: damage a drafter file in many ways and draft with each. A crash ends the child.

Usage: load_damaged_drafter.py bytes|keys FOLDER FIRST LAST, with the output of load_damaged.py.
"""

import ctypes
import math
import random
import sys
from functools import cache
from pathlib import Path
from typing import Any

import gguf
import llama_cpp.llama_cpp as native
import numpy as np

from benchmarks.shape_gguf import (
    DrafterShape,
    ModelShape,
    add_drafter_keys,
    drafter_tensors,
    finish,
    write_drafter,
    write_model,
)
from engine.errors import EngineError
from engine.gguf.drafter import read_drafter_file
from engine.gguf.model import ModelMetadata, read_model_file
from tests.engine.load_damaged import EXTREMES, HEADER, READ_BY_THE_LIBRARY
from tests.engine.tiny_gguf import add_key

TARGET = ModelShape(layers=4, width=64, ffn=64, heads=2, kv_heads=1, head=32, window=64, context=4096)
SHAPE = DrafterShape(layers=2, ffn=64, heads=2, kv_heads=1, head=32, window=64, target_layers=(1, 2, 3))
READ_OF_DRAFTERS = (
    "attention.sliding_window",
    "attention.sliding_window_pattern",
    "block_size",
    "target_layers",
    "embedding_scale",
    "attention.scale",
    "attention.value_scale",
    "hidden_activation",
    "logit_scale",
    "final_logit_softcapping",
    "rope.dimension_sections",
    "conv_kernel_size",
    "conv_group_size",
    "selector_rank",
    "selector_top_k",
    "hyper_connection.count",
)
EXTRA_TENSORS = (
    "d2t",
    "markov_w1.weight",
    "selector_hidden.weight",
    "rope_freqs.weight",
    "blk.0.attn_sinks.weight",
    "blk.0.attn_q.bias",
    "blk.9.attn_q.weight",
    "token_embd.weight",
    "output.weight",
    "fc.scale",
)


@cache
def whole(folder: Path) -> bytes:
    return write_drafter(folder / "whole.gguf", TARGET, SHAPE, "F32").read_bytes()


def damage_bytes(seed: int, path: Path) -> None:
    rng = random.Random(seed)
    data = bytearray(whole(path.parent))
    for _ in range(rng.choice([1, 1, 2, 4])):
        at = rng.randrange(HEADER if rng.random() < 0.85 else len(data))
        match rng.randrange(3):
            case 0:
                data[at] ^= 1 << rng.randrange(8)
            case 1:
                data[at : at + 4] = rng.choice([b"\0\0\0\0", b"\xff\xff\xff\xff", b"\0\0\x80\x7f"])
            case _:
                data[at : at + 8] = rng.randbytes(8)
    path.write_bytes(data)


def damage_keys(seed: int, path: Path) -> None:
    rng = random.Random(seed)
    writer = gguf.GGUFWriter(path, "dflash")
    add_drafter_keys(writer, TARGET, SHAPE)
    stored = writer.kv_data[0]
    weights = {name: np.ones(size, np.float32) for name, size in drafter_tensors(TARGET, SHAPE)}
    for _ in range(rng.choice([1, 1, 2])):
        tensor = rng.choice(list(weights))
        match rng.randrange(6):
            case 0:
                stored.pop(rng.choice([key for key in stored if key != "general.architecture"]))
            case 1 | 2 | 3:
                short = rng.choice((*READ_BY_THE_LIBRARY, *READ_OF_DRAFTERS, *READ_OF_DRAFTERS))
                add(writer, f"dflash.{short}", rng.choice(EXTREMES))
            case 4:
                given = weights.pop(tensor)
                changed = [given.astype(np.float16), given[:-1], given.reshape(-1), given * math.nan]
                weights[tensor] = rng.choice(changed)
            case _:
                weights[rng.choice(EXTRA_TENSORS)] = weights[tensor]
    for name, value in weights.items():
        writer.add_tensor(name, value)
    finish(writer, path)


def add(writer: gguf.GGUFWriter, key: str, value: Any) -> None:
    writer.kv_data[0].pop(key, None)
    add_key(writer, key, value)


def use(path: Path, target: ModelMetadata, context: native.llama_context_p) -> str:
    """Load the drafter beside `context`, give it two rows of features and draft two tokens."""
    try:
        found = read_drafter_file(path, target)
    except EngineError as error:
        return f"refused: {error}"
    model = native.llama_model_load_from_file(str(path).encode(), native.llama_model_default_params())
    if not model:
        return "refused by the library"
    params = native.llama_context_default_params()
    params.n_ctx, params.n_batch, params.n_ubatch, params.n_seq_max = 256, 32, 32, 1
    params.n_threads = params.n_threads_batch = 1
    params.ctx_other = context
    drafting = native.llama_init_from_model(model, params)
    if not drafting:
        native.llama_model_free(model)
        return "refused by the library"
    native.llama_set_causal_attn(drafting, False)
    width = len(found.target_layers) * found.shape.width
    codes = [decode(drafting, 2, 0, width, 0), decode(drafting, 3, 2, 0, found.mask_id)]
    native.llama_free(drafting)
    native.llama_model_free(model)
    return "used" if codes == [0, 0] else f"failed: {codes}"


def decode(drafting: native.llama_context_p, count: int, position: int, width: int, token: int) -> int:
    batch = native.llama_batch_init(count, width, 1)
    batch.n_tokens = count
    for row in range(count):
        if not width:
            batch.token[row] = token
        batch.pos[row] = position + row
        batch.n_seq_id[row] = 1
        batch.seq_id[row][0] = 0
        batch.logits[row] = not width
    for number in range(count * width):
        batch.embd[number] = 1.0
    code = native.llama_decode(drafting, batch)
    native.llama_batch_free(batch)
    return code


def main() -> None:
    damage = {"bytes": damage_bytes, "keys": damage_keys}[sys.argv[1]]
    folder = Path(sys.argv[2])
    quiet = native.llama_log_callback(lambda *_: None)
    native.llama_log_set(quiet, ctypes.c_void_p(0))
    native.llama_backend_init()
    target = read_model_file(write_model(folder / "target.gguf", TARGET, seed=1))
    model = native.llama_model_load_from_file(str(target.path).encode(), native.llama_model_default_params())
    params = native.llama_context_default_params()
    params.n_ctx, params.n_batch, params.n_ubatch, params.n_seq_max = 256, 32, 32, 1
    context = native.llama_init_from_model(model, params)
    assert context
    for seed in range(int(sys.argv[3]), int(sys.argv[4])):
        print(seed, end=" ", flush=True)
        path = folder / "damaged.gguf"
        damage(seed, path)
        print(use(path, target, context), flush=True)


if __name__ == "__main__":
    main()
