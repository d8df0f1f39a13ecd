"""llama.cpp, typed: a model, its vocabulary and a context. The only file that calls into it for these.

Every native return value is checked. The library's log goes to a file, never to the terminal. Positions
are never shifted (`llama_memory_seq_add`): on this architecture that corrupts the global layers' keys.
"""

import ctypes
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

import llama_cpp.llama_cpp as native
import numpy as np
import numpy.typing as npt

from engine.errors import EngineError, ModelError
from engine.model_file import ModelMetadata

KvType = Literal["f16", "q8_0"]

_KV_TYPES: Mapping[KvType, int] = {"f16": native.GGML_TYPE_F16, "q8_0": native.GGML_TYPE_Q8_0}
_SEQUENCE = 0
_READ_AS_MARKERS = ("<|start|>", "<|message|>", "<|channel|>", "<|constrain|>")
"""Texts that llama.cpp takes for special tokens even where special tokens are not to be parsed."""


@dataclass(frozen=True, slots=True)
class ContextOptions:
    """How a context is made. `batch` is the most tokens a decode takes."""

    size: int
    batch: int
    threads: int
    kv_type: KvType = "f16"


class _NativeLog:
    """Where the library's log goes. One for the process: the library has one log."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._path: Path | None = None
        self._callback = native.llama_log_callback(self._write)
        native.llama_log_set(self._callback, ctypes.c_void_p(0))

    def redirect(self, path: Path | None) -> None:
        """Append to `path` from now on; None, or a path that cannot be written, discards the log."""
        self._path = path
        native.llama_log_set(self._callback, ctypes.c_void_p(0))
        before, self._file = self._file, None
        if before is not None:
            before.close()
        if path is None:
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("ab", buffering=0)
        except OSError:
            self._file = None

    def leave(self, path: Path | None) -> None:
        """Close the log if it still goes to `path`."""
        if self._path == path:
            self.redirect(None)

    def _write(self, _level: int, text: bytes, _data: ctypes.c_void_p) -> None:
        file = self._file
        if file is None:
            return
        try:
            file.write(text)
        except (OSError, ValueError):
            self._file = None


class _Library:
    """The library, made ready once a process, on first use."""

    log: _NativeLog | None = None

    @classmethod
    def prepare(cls, log_file: Path | None) -> None:
        first = cls.log is None
        if cls.log is None:
            cls.log = _NativeLog()
        cls.log.redirect(log_file)
        if first:
            native.llama_backend_init()

    @classmethod
    def leave(cls, log_file: Path | None) -> None:
        if cls.log is not None:
            cls.log.leave(log_file)


class Vocabulary:
    """Text to token ids and back. Special tokens are known by their text, `<|eot|>` and the like."""

    def __init__(self, handle: native.llama_vocab_p, size: int, special_ids: Mapping[str, int]) -> None:
        self._vocabulary: native.llama_vocab_p | None = handle
        self.size = size
        self.special_ids = special_ids
        self._specials = frozenset(special_ids.values())
        self._pieces: dict[int, bytes] = {}
        user_defined = native.LLAMA_TOKEN_ATTR_USER_DEFINED
        taken = {
            text
            for text, token in special_ids.items()
            if native.llama_vocab_get_attr(handle, token) & user_defined
        }
        cut = sorted({*taken, *_READ_AS_MARKERS}, key=len, reverse=True)
        self._cut = re.compile(f"(?={'|'.join(map(re.escape, cut))})")

    def special(self, text: str) -> int | None:
        """The id of a special token, or None where the vocabulary lacks it."""
        return self.special_ids.get(text)

    def is_special(self, token: int) -> bool:
        return token in self._specials

    def tokenize(self, text: str) -> list[int]:
        """Ordinary text as ids. Never a special token, whatever the text spells.

        The library takes a few special tokens for special even when told to parse none, so a text that
        spells one of those is handed over in two parts. Raises EngineError if one came through anyway.
        """
        tokens: list[int] = []
        for part in self._parts(text):
            tokens += self._tokenize(part.encode("utf-8", "replace"), parse_special=False)
        if not self._specials.isdisjoint(tokens):
            raise EngineError(
                "Some text could not be handed to the model safely.",
                "The tokenizer read a control token out of ordinary text.",
                "Report this together with the text.",
            )
        return tokens

    def piece(self, token: int) -> bytes:
        """The bytes a token stands for; they may be part of a character. Empty for a special token."""
        if token in self._specials:
            return b""
        if (known := self._pieces.get(token)) is not None:
            return known
        length = 64
        while True:
            buffer = ctypes.create_string_buffer(length)
            written = native.llama_token_to_piece(self._handle(), token, buffer, length, 0, True)
            if written >= 0:
                self._pieces[token] = buffer.raw[:written]
                return self._pieces[token]
            length = -written

    def close(self) -> None:
        """Its model is being freed, and the native vocabulary with it."""
        self._vocabulary = None

    def _handle(self) -> native.llama_vocab_p:
        if self._vocabulary is None:
            raise EngineError("The model is closed.")
        return self._vocabulary

    def _parts(self, text: str) -> list[str]:
        if "<|" not in text:
            return [text]
        parts: list[str] = []
        start = 0
        for match in self._cut.finditer(text):
            end = match.start() + len("<|")
            parts.append(text[start:end])
            start = end
        parts.append(text[start:])
        return parts

    def _tokenize(self, raw: bytes, *, parse_special: bool) -> list[int]:
        room = len(raw) + 8
        while True:
            tokens = (native.llama_token * room)()
            count = native.llama_tokenize(self._handle(), raw, len(raw), tokens, room, False, parse_special)
            if count >= 0:
                return tokens[:count]
            if count == -(1 << 31):
                raise EngineError("The text is too long to be read.", "", "Shorten it.")
            room = -count


class Model:
    """Weights in memory, loaded from a file that `engine.model_file` has checked."""

    def __init__(self, metadata: ModelMetadata, gpu_layers: int, log_file: Path | None) -> None:
        """Load it. `gpu_layers` -1 puts all layers on the GPU where there is one. Raises ModelError."""
        _Library.prepare(log_file)
        params = native.llama_model_default_params()
        params.n_gpu_layers = gpu_layers
        handle = native.llama_model_load_from_file(os.fsencode(metadata.path), params)
        vocabulary = native.llama_model_get_vocab(handle) if handle else None
        if not handle or not vocabulary:
            _Library.leave(log_file)
            raise ModelError(
                f"{metadata.path.name} could not be loaded.",
                "llama.cpp refused it, or there was not enough memory.",
                _see(log_file),
            )
        self._handle: native.llama_model_p | None = handle
        self._log_file = log_file
        self.metadata = metadata
        size = native.llama_vocab_n_tokens(vocabulary)
        self.vocabulary = Vocabulary(vocabulary, size, metadata.special_ids)
        if size != metadata.vocabulary_size:
            self.close()
            raise ModelError(
                f"{metadata.path.name} could not be loaded.",
                f"Its vocabulary has {size} tokens where its file lists {metadata.vocabulary_size}.",
                "Download it again.",
            )

    @property
    def handle(self) -> native.llama_model_p:
        """The native model. Raises EngineError once it is closed."""
        if self._handle is None:
            raise EngineError("The model is closed.")
        return self._handle

    def close(self) -> None:
        """Free the weights. Contexts must be closed first."""
        if self._handle is None:
            return
        self.vocabulary.close()
        native.llama_model_free(self._handle)
        self._handle = None
        _Library.leave(self._log_file)


class Context:
    """The cache of one conversation and the decode step."""

    def __init__(self, model: Model, options: ContextOptions, log_file: Path | None) -> None:
        """Reserve the cache. Raises ModelError where there is not enough memory for it."""
        params = native.llama_context_default_params()
        params.n_ctx = options.size
        params.n_batch = params.n_ubatch = options.batch
        params.n_seq_max = 1
        params.n_threads = params.n_threads_batch = options.threads
        params.type_k = params.type_v = _KV_TYPES[options.kv_type]
        params.swa_full = False
        params.no_perf = True
        if options.kv_type != "f16":
            params.flash_attn_type = native.LLAMA_FLASH_ATTN_TYPE_ENABLED
        handle = native.llama_init_from_model(model.handle, params)
        memory = native.llama_get_memory(handle) if handle else None
        if not handle or not memory:
            if handle:
                native.llama_free(handle)
            raise ModelError(
                f"There is no room for a context of {options.size} tokens.",
                f"The cache ({options.kv_type}) could not be set up.",
                f"Ask for a smaller context. {_see(log_file)}",
            )
        self._handle: native.llama_context_p | None = handle
        self._cache = memory
        self._window = model.metadata.shape.window
        self._vocabulary_size = model.vocabulary.size
        self.batch_size = native.llama_n_batch(handle)
        self._batch = native.llama_batch_init(self.batch_size, 0, 1)
        self.size = native.llama_n_ctx(handle)
        """Tokens the cache can hold."""

    @property
    def handle(self) -> native.llama_context_p:
        """The native context. Raises EngineError once it is closed."""
        if self._handle is None:
            raise EngineError("The context is closed.")
        return self._handle

    def decode(self, tokens: Sequence[int], position: int) -> None:
        """Read 1 to `batch_size` tokens at `position` onwards; the last one's logits can be sampled then.

        Raises EngineError. What the cache holds after that is unknown: `clear` it.
        """
        count = len(tokens)
        if not 0 < count <= self.batch_size:
            raise ValueError(f"{count} tokens do not fit a batch of {self.batch_size}")
        handle, batch = self.handle, self._batch
        batch.n_tokens = count
        for row, token in enumerate(tokens):
            batch.token[row] = token
            batch.pos[row] = position + row
            batch.n_seq_id[row] = 1
            batch.seq_id[row][0] = _SEQUENCE
            batch.logits[row] = row == count - 1
        if (code := native.llama_decode(handle, batch)) != 0:
            raise EngineError(
                "The model failed while it was reading or writing.",
                f"llama.cpp's decode step returned {code}.",
                "Try again; a smaller context or batch needs less memory.",
            )

    def logits(self) -> npt.NDArray[np.float32]:
        """The last decoded token's scores, one a vocabulary entry: a view that the next decode overwrites."""
        pointer: Any = native.llama_get_logits_ith(self.handle, -1)
        if not pointer:
            raise EngineError("The model gave no scores to draw a token from.")
        return np.ctypeslib.as_array(pointer, (self._vocabulary_size,))

    def can_rewind(self, position: int) -> bool:
        """Whether all tokens from `position` on can be dropped and the rest is still exact.

        The local layers keep a window only, and the library drops tokens without a word when that window
        is already gone. It is still there when the oldest local token is the first of all, or old enough
        to fill the window of the token that comes next.
        """
        oldest = native.llama_memory_seq_pos_min(self._memory(), _SEQUENCE)
        return oldest == 0 or 0 <= oldest <= position - self._window

    def rewind(self, position: int) -> None:
        """Drop all tokens from `position` on. Ask `can_rewind` first. Raises EngineError."""
        if not native.llama_memory_seq_rm(self._memory(), _SEQUENCE, position, -1):
            raise EngineError("The cache could not be rewound.")

    def clear(self) -> None:
        """Empty the cache."""
        native.llama_memory_clear(self._memory(), False)

    def close(self) -> None:
        """Free the cache."""
        if self._handle is None:
            return
        native.llama_batch_free(self._batch)
        native.llama_free(self._handle)
        self._handle = None

    def _memory(self) -> native.llama_memory_t:
        """The native cache. Raises EngineError once it is closed."""
        if self._handle is None:
            raise EngineError("The context is closed.")
        return self._cache


def _see(log_file: Path | None) -> str:
    return f"The details are in {log_file}." if log_file else "A log file shows the details."
