"""Run in a child process: load a model as told and print llama.cpp's own words about its buffers.

Usage: measure_buffers.py JSON: a list of loads, each with the keys model, drafter, context, kv_type, ubatch,
outputs and drafter_batch. The answer is a list of logs; the drafter's lines follow the model's.
"""

import ctypes
import json
import sys
from typing import Any

import llama_cpp.llama_cpp as native

TYPES = {"f16": native.GGML_TYPE_F16, "q8_0": native.GGML_TYPE_Q8_0}


def main() -> None:
    lines: list[str] = []
    callback = native.llama_log_callback(lambda _level, text, _data: lines.append(text.decode("utf-8")))
    native.llama_log_set(callback, ctypes.c_void_p(0))
    native.llama_backend_init()
    logs: list[str] = []
    for told in json.loads(sys.argv[1]):
        lines.clear()
        load(told)
        logs.append("".join(lines))
    print(json.dumps(logs))


def load(told: dict[str, Any]) -> None:
    model = native.llama_model_load_from_file(told["model"].encode(), native.llama_model_default_params())
    params = native.llama_context_default_params()
    params.n_ctx = told["context"]
    params.n_batch = params.n_ubatch = told["ubatch"]
    params.n_seq_max = 1
    params.n_outputs_max = told["outputs"]
    params.type_k = params.type_v = TYPES[told["kv_type"]]
    params.flash_attn_type = native.LLAMA_FLASH_ATTN_TYPE_ENABLED
    params.swa_full = False
    context = native.llama_init_from_model(model, params)
    assert context
    if told["drafter"]:
        drafter = native.llama_model_load_from_file(
            told["drafter"].encode(), native.llama_model_default_params()
        )
        params.ctx_other = context
        params.n_batch = params.n_ubatch = told["drafter_batch"]
        params.n_outputs_max = 0
        drafting = native.llama_init_from_model(drafter, params)
        assert drafting
        native.llama_free(drafting)
        native.llama_model_free(drafter)
    native.llama_free(context)
    native.llama_model_free(model)


if __name__ == "__main__":
    main()
