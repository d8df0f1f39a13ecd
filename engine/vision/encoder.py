"""The vision encoder, through llama.cpp's mtmd: pixels become vectors that stand in place of tokens."""

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import llama_cpp.llama_cpp as native
import numpy as np
import numpy.typing as npt
from llama_cpp import mtmd_cpp as mtmd

from engine.batch import floats
from engine.errors import EngineError, ModelError
from engine.llama import Weights
from engine.native_log import Library, see_log
from engine.vision.grid import grid_of
from engine.vision.pixels import Pixels

_IMAGE_CHUNK = 1
_BLOCK_DONE = b"layer_out"


@dataclass(frozen=True, slots=True)
class EncoderOptions:
    """`width` is the model's, `blocks` the encoder's, `cap` the most tokens a picture."""

    width: int
    blocks: int
    cap: int
    threads: int
    on_gpu: bool


class Encoder:
    """A projector file in memory. `encode` blocks, and may run in any one thread at a time."""

    def __init__(self, path: Path, model: Weights, options: EncoderOptions, log_file: Path | None) -> None:
        """Load a file that was checked before. Raises ModelError."""
        Library.prepare(log_file)
        set_log: Any = vars(mtmd)["mtmd_log_set"]
        Library.start().join_in(set_log)
        self.options = options
        self._log_file = log_file
        self._step: Callable[[], bool] | None = None
        self._asked = native.ggml_backend_sched_eval_callback(self._evaluate)
        params = mtmd.mtmd_context_params_default()
        params.use_gpu = options.on_gpu
        params.n_threads = options.threads
        params.print_timings = False
        params.warmup = False
        params.image_max_tokens = options.cap
        params.cb_eval = self._asked
        handle = mtmd.mtmd_init_from_file(str(path).encode(), model.handle, params)
        if not handle:
            Library.leave(log_file)
            raise ModelError(
                f"{path.name} could not be loaded.",
                "llama.cpp refused it, or there was not enough memory.",
                see_log(log_file),
            )
        self._handle: Any = handle

    def encode(
        self, pixels: Pixels, block_done: Callable[[int], None], goes_on: Callable[[], bool]
    ) -> npt.NDArray[np.float32] | None:
        """The vectors [tokens, width] of a picture; None where `goes_on` said no.

        `block_done` is told how many of the encoder's blocks are done. Raises EngineError.
        """
        done = 0

        def step() -> bool:
            nonlocal done
            done += 1
            block_done(min(done, self.options.blocks))
            return goes_on()

        chunks = mtmd.mtmd_input_chunks_init()
        if not chunks:
            raise EngineError("There was no memory to read a picture.")
        try:
            chunk = self._prepare(pixels, chunks)
            if not goes_on():
                return None
            self._step = step
            failed = mtmd.mtmd_encode_chunk(self._handle, chunk)
            if not goes_on():
                return None
            tokens = mtmd.mtmd_input_chunk_get_n_tokens(chunk)
            vectors = None if failed else mtmd.mtmd_get_output_embd(self._handle)
            if not vectors:
                raise EngineError(
                    "The picture could not be read.",
                    f"The vision encoder returned {failed}.",
                    "Try a smaller picture; the vision encoder may lack memory.",
                )
            width = self.options.width
            return floats(vectors, tokens * width).reshape(tokens, width).copy()
        finally:
            self._step = None
            mtmd.mtmd_input_chunks_free(chunks)

    def close(self) -> None:
        """Free it."""
        if self._handle is not None:
            mtmd.mtmd_free(self._handle)
            self._handle = None
            Library.leave(self._log_file)

    def _prepare(self, pixels: Pixels, chunks: Any) -> Any:
        """Scale the picture; returns its chunk, which belongs to `chunks`."""
        if self._handle is None:
            raise EngineError("The vision encoder is closed.")
        data = (ctypes.c_uint8 * len(pixels.rgb)).from_buffer_copy(pixels.rgb)
        bitmap = mtmd.mtmd_bitmap_init(pixels.width, pixels.height, data)
        if not bitmap:
            raise EngineError("There was no memory to read a picture.")
        try:
            marker = mtmd.mtmd_default_marker()
            text = mtmd.mtmd_input_text()
            text.text, text.text_len = marker, len(marker)
            text.add_special, text.parse_special = False, True
            bitmaps = (ctypes.c_void_p * 1)(bitmap)
            if code := mtmd.mtmd_tokenize(self._handle, chunks, ctypes.pointer(text), bitmaps, 1):
                raise EngineError("The picture could not be read.", f"llama.cpp returned {code}.")
        finally:
            mtmd.mtmd_bitmap_free(bitmap)
        for number in range(mtmd.mtmd_input_chunks_size(chunks)):
            chunk = mtmd.mtmd_input_chunks_get(chunks, number)
            if chunk and mtmd.mtmd_input_chunk_get_type(chunk) == _IMAGE_CHUNK:
                return self._checked(chunk, pixels)
        raise EngineError("The picture could not be read.", "llama.cpp saw no picture in it.")

    def _checked(self, chunk: Any, pixels: Pixels) -> Any:
        """The conversation reserved places for the picture before it was read, so the count must hold."""
        expected = grid_of(pixels.width, pixels.height, self.options.cap).tokens
        found = mtmd.mtmd_input_chunk_get_n_tokens(chunk)
        if found != expected or mtmd.mtmd_decode_use_non_causal(self._handle, chunk):
            raise EngineError(
                "The picture could not be read.",
                f"This build of llama.cpp makes {found} tokens of it where {expected} are expected.",
                "Install llama-cpp-python 0.3.36.",
            )
        return chunk

    def _evaluate(self, tensor: Any, is_question: bool, _data: Any) -> bool:
        """Asked before each tensor is computed whether it is to be seen, then shown it; False stops."""
        if self._step is None:
            return not is_question
        if is_question:
            return _name(tensor).startswith(_BLOCK_DONE)
        return self._step()


def _name(tensor: Any) -> bytes:
    """A tensor's name; empty where the library does not tell."""
    library: Any = vars(native)["_lib"]
    if not hasattr(library, "ggml_get_name"):
        return b""
    library.ggml_get_name.argtypes, library.ggml_get_name.restype = (ctypes.c_void_p,), ctypes.c_char_p
    return library.ggml_get_name(tensor) or b""
