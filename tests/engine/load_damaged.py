"""Run in a child process: damage a model file in many ways and try to use each. A crash ends the child.

Usage: load_damaged.py bytes|keys FOLDER FIRST LAST. For each number in [FIRST, LAST) one file is made by
that seed and used; the outcome is printed after the number, so that the last line of a crash names it.
"""

import math
import random
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from engine.cache import Cache
from engine.context import Context, ContextOptions
from engine.errors import EngineError
from engine.gguf.model import read_model_file
from engine.llama import Model
from engine.protocol import Sampling
from engine.sampler import Sampler
from tests.engine.tiny_gguf import ARCHITECTURE, Shape, default_tokens, metadata, tensors, write, write_tiny

HEADER = 12000
"""Most damage to bytes goes where the keys and the tensor infos are."""

READ_BY_THE_LIBRARY = (
    "embedding_length_out",
    "attention.causal",
    "pooling_type",
    "nextn_predict_layers",
    "expert_count",
    "expert_used_count",
    "expert_group_count",
    "expert_group_used_count",
    "rope.scaling.type",
    "rope.scaling.factor",
    "rope.scaling.original_context_length",
    "rope.scaling.attn_factor",
    "rope.freq_base_swa",
    "rope.dimension_count_swa",
    "attention.key_length_swa",
    "attention.value_length_swa",
    "classifier.output_labels",
)
EXTREMES: tuple[Any, ...] = (
    *map(np.uint32, (0, 1, 2, 3, 7, 255, 513, 1 << 20, (1 << 31) - 1, 1 << 31, (1 << 32) - 1)),
    *(0.0, -1.0, 1e-30, 1e30, math.inf, -math.inf, math.nan),
    *("", "yarn", "longrope", "none", "llama", "gpt2", "llama-bpe", "bert", "\U0001f600" * 100),
    *(True, False),
    *([True], [False] * 4, [True] * 4, [1, 2, 3, 4], [0.5] * 4, ["a", "b"], [""] * 300),
)


@cache
def whole(folder: Path) -> bytes:
    return write_tiny(folder / "whole.gguf").read_bytes()


def damage_bytes(seed: int, path: Path) -> None:
    rng = random.Random(seed)
    data = bytearray(whole(path.parent))
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        at = rng.randrange(min(HEADER, len(data)) if rng.random() < 0.85 else len(data))
        match rng.randrange(6):
            case 0:
                data[at] ^= 1 << rng.randrange(8)
            case 1:
                data[at] = rng.randrange(256)
            case 2:
                data[at : at + 4] = rng.choice(
                    [b"\0\0\0\0", b"\xff\xff\xff\xff", b"\0\0\x80\x7f", b"\1\0\0\0"]
                )
            case 3:
                data[at : at + 8] = rng.randbytes(8)
            case 4:
                del data[at : at + rng.randrange(1, 9)]
            case _:
                data[at:at] = rng.randbytes(rng.randrange(1, 9))
    path.write_bytes(data)


def damage_keys(seed: int, path: Path) -> None:
    rng = random.Random(seed)
    keys = metadata(Shape(), default_tokens())
    weights = tensors(Shape(), len(default_tokens()))
    for _ in range(rng.choice([1, 1, 2])):
        name = rng.choice([key for key in keys if key != "general.architecture"])
        tensor = rng.choice(list(weights))
        match rng.randrange(8):
            case 0:
                del keys[name]
            case 1 | 2 | 3:
                alike = [value for value in EXTREMES if type(value) is type(keys[name])]
                keys[name] = rng.choice(alike if rng.random() < 0.8 else EXTREMES)
            case 4 | 5:
                keys[f"{ARCHITECTURE}.{rng.choice(READ_BY_THE_LIBRARY)}"] = rng.choice(EXTREMES[:16])
            case 6:
                given = weights.pop(tensor)
                changed = [given.astype(np.float16), given[:-1], given.reshape(-1), given * math.nan]
                weights[tensor] = rng.choice(changed)
            case _:
                extra = [tensor.replace("weight", "bias"), "rope_freqs.weight", "blk.9.attn_q.weight"]
                weights[rng.choice(extra)] = weights[tensor]
    write(path, keys, weights)


def use(path: Path) -> str:
    try:
        metadata = read_model_file(path)
        model = Model(metadata, 0, None)
        context = Context(model, ContextOptions(256, 32, threads=1), None)
        sampler = Sampler(Sampling(seed=1))
        for turn in range(2):
            context.decode(model.vocabulary.tokenize("a file"), 6 * turn)
            model.vocabulary.piece(sampler.sample(Cache(context, model.vocabulary.size), -1))
        sampler.close()
        context.close()
        model.close()
    except EngineError as error:
        return f"refused: {error}"
    return "used"


def main() -> None:
    damage = {"bytes": damage_bytes, "keys": damage_keys}[sys.argv[1]]
    for seed in range(int(sys.argv[3]), int(sys.argv[4])):
        print(seed, end=" ", flush=True)
        path = Path(sys.argv[2]) / "damaged.gguf"
        damage(seed, path)
        print(use(path), flush=True)


if __name__ == "__main__":
    main()
