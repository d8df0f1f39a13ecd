"""A cache and the decode step over it, through llama.cpp.

Positions are never shifted (`llama_memory_seq_add`): on this architecture that corrupts the global layers'
keys.
"""

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import llama_cpp.llama_cpp as native
import numpy as np
import numpy.typing as npt

from engine.batch import SEQUENCE, Batch, floats
from engine.errors import EngineError, ModelError
from engine.llama import Weights
from engine.native_log import see_log

KvType = Literal["f16", "q8_0"]
Part = Literal["whole", "window"]
"""What of a cache is stored: all of it, or the local layers' window alone."""

_KV_TYPES: Mapping[KvType, int] = {"f16": native.GGML_TYPE_F16, "q8_0": native.GGML_TYPE_Q8_0}
_FLAGS: Mapping[Part, ctypes.c_uint32] = {
    "whole": ctypes.c_uint32(0),
    "window": ctypes.c_uint32(native.LLAMA_STATE_SEQ_FLAGS_SWA_ONLY),
}
_SEQUENCE = ctypes.c_int32(SEQUENCE)


@dataclass(frozen=True, slots=True)
class ContextOptions:
    """How a context is made. `batch` is the most tokens a decode takes."""

    size: int
    batch: int
    threads: int
    kv_type: KvType = "f16"
    outputs: int = 32
    """The most rows of one batch that are scored; it bounds the memory for scores."""


class Context:
    """The keys and values of one sequence, and the decode step that adds to them."""

    def __init__(
        self,
        weights: Weights,
        options: ContextOptions,
        log_file: Path | None,
        target: "Context | None" = None,
    ) -> None:
        """Reserve the cache. Raises ModelError where there is not enough memory for it.

        `target` is given for a drafter: it borrows that context's embeddings and head, and the rows of one
        of its batches see each other both ways.
        """
        params = native.llama_context_default_params()
        params.n_ctx = options.size
        params.n_batch = params.n_ubatch = options.batch
        params.n_seq_max = 1
        params.n_outputs_max = min(options.outputs, options.batch)
        params.n_threads = params.n_threads_batch = options.threads
        params.type_k = params.type_v = _KV_TYPES[options.kv_type]
        params.swa_full = False
        params.no_perf = True
        if target is not None:
            params.ctx_other = target.handle
        if options.kv_type != "f16":
            params.flash_attn_type = native.LLAMA_FLASH_ATTN_TYPE_ENABLED
        handle = native.llama_init_from_model(weights.handle, params)
        memory = native.llama_get_memory(handle) if handle else None
        if not handle or not memory:
            if handle:
                native.llama_free(handle)
            raise ModelError(
                f"There is no room for a context of {options.size} tokens.",
                f"The cache ({options.kv_type}) could not be set up.",
                f"Ask for a smaller context. {see_log(log_file)}",
            )
        if target is not None:
            native.llama_set_causal_attn(handle, False)
        self._handle: native.llama_context_p | None = handle
        self._cache = memory
        self.window = weights.window
        self.batch_size = native.llama_n_batch(handle)
        self.most_scored = min(options.outputs, options.batch)
        self.size = native.llama_n_ctx(handle)
        """Tokens the cache can hold."""
        self._batch = Batch(self.batch_size)

    @property
    def handle(self) -> native.llama_context_p:
        """The native context. Raises EngineError once it is closed."""
        if self._handle is None:
            raise EngineError("The context is closed.")
        return self._handle

    def decode(self, tokens: Sequence[int], position: int, first_scored: int | None = None) -> None:
        """Read 1 to `batch_size` tokens at `position` onwards.

        The rows from `first_scored` on can be scored then, by default the last one alone. Raises
        EngineError; what the cache holds after that is unknown: `clear` it.
        """
        first = len(tokens) - 1 if first_scored is None else first_scored
        self.step(self._batch.tokens(tokens, position, first))

    def step(self, batch: native.llama_batch) -> None:
        """One native decode. Raises EngineError as `decode` does."""
        if (code := native.llama_decode(self.handle, batch)) != 0:
            raise EngineError(
                "The model failed while it was reading or writing.",
                f"llama.cpp's decode step returned {code}.",
                "Try again; a smaller context or batch needs less memory.",
            )

    def scores(self, row: int, size: int) -> npt.NDArray[np.float32]:
        """The `size` scores of a row of the last batch, -1 for its last: a view, good until the next step."""
        pointer: Any = native.llama_get_logits_ith(self.handle, row)
        if not pointer:
            raise EngineError("The model gave no scores to draw a token from.")
        return floats(pointer, size)

    @property
    def is_empty(self) -> bool:
        """Whether the cache holds no token."""
        return native.llama_memory_seq_pos_max(self._memory(), SEQUENCE) < 0

    def can_rewind(self, position: int) -> bool:
        """Whether all tokens from `position` on can be dropped and the rest is still exact.

        The local layers keep a window only, and the library drops tokens without a word when that window
        is already gone. It is still there when the oldest local token is the first of all, or is no younger
        than the oldest that the next token sees (the window counts the token itself).
        """
        oldest = native.llama_memory_seq_pos_min(self._memory(), SEQUENCE)
        return oldest == 0 or 0 <= oldest <= position - self.window + 1

    def rewind(self, position: int) -> None:
        """Drop all tokens from `position` on. Ask `can_rewind` first. Raises EngineError."""
        self.drop(position, -1)

    def drop(self, start: int, end: int) -> None:
        """Drop the tokens at positions `start` to `end` - 1. Raises EngineError."""
        if not native.llama_memory_seq_rm(self._memory(), SEQUENCE, start, end):
            raise EngineError("The cache could not be rewound.")

    def clear(self) -> None:
        """Empty the cache."""
        native.llama_memory_clear(self._memory(), False)

    def store(self, part: Part) -> bytes:
        """The cache, or its window, as bytes that `restore` takes. Raises EngineError."""
        flags = _FLAGS[part]
        size = native.llama_state_seq_get_size_ext(self.handle, _SEQUENCE, flags)
        buffer = (ctypes.c_uint8 * size)()
        written = native.llama_state_seq_get_data_ext(self.handle, buffer, size, _SEQUENCE, flags)
        if not 0 < written <= size:
            raise EngineError("The cache could not be stored.")
        return bytes(memoryview(buffer)[:written])

    def restore(self, part: Part, state: bytes) -> None:
        """Take over what `store` gave. Raises EngineError; the cache is unknown then: `clear` it."""
        buffer = (ctypes.c_uint8 * len(state)).from_buffer_copy(state)
        taken = native.llama_state_seq_set_data_ext(self.handle, buffer, len(state), _SEQUENCE, _FLAGS[part])
        if taken != len(state):
            raise EngineError("The stored cache does not fit this model.")

    def close(self) -> None:
        """Free the cache."""
        if self._handle is None:
            return
        self._batch.close()
        native.llama_free(self._handle)
        self._handle = None

    def _memory(self) -> native.llama_memory_t:
        """The native cache. Raises EngineError once it is closed."""
        if self._handle is None:
            raise EngineError("The context is closed.")
        return self._cache
