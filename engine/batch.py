"""What one decode step reads: tokens, or vectors in their place, at consecutive positions."""

import ctypes
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import llama_cpp.llama_cpp as native
import numpy as np
import numpy.typing as npt

from engine.errors import EngineError

SEQUENCE = 0
"""The one sequence that every cache holds."""


class Batch:
    """Native arrays for at most `capacity` rows, filled through views so that a step costs little Python.

    `width` 0 makes rows of tokens, else rows are vectors of that many numbers.
    """

    def __init__(self, capacity: int, width: int = 0) -> None:
        self.capacity = capacity
        self._is_open = True
        self._width = width
        self._batch = native.llama_batch_init(capacity, width, 1)
        batch: Any = self._batch
        self._position = _view(batch.pos, capacity, ctypes.c_int32)
        self._wanted = _view(batch.logits, capacity, ctypes.c_int8)
        self._token = None if width else _view(batch.token, capacity, ctypes.c_int32)
        self._vector = _view(batch.embd, capacity * width, ctypes.c_float) if width else None
        self._counting = np.arange(capacity, dtype=np.int32)
        for row in range(capacity):
            batch.n_seq_id[row] = 1
            batch.seq_id[row][0] = SEQUENCE

    def tokens(self, tokens: Sequence[int], position: int, first_scored: int) -> native.llama_batch:
        """Rows of tokens at `position` onwards; rows from `first_scored` on get scores."""
        count = self._place(len(tokens), position, first_scored)
        assert self._token is not None
        self._token[:count] = tokens
        return self._batch

    def vectors(self, vectors: npt.NDArray[np.float32], position: int) -> native.llama_batch:
        """Rows of vectors [n, width] at `position` onwards, without scores."""
        count = self._place(len(vectors), position, len(vectors))
        assert self._vector is not None
        self._vector[: count * self._width] = vectors.reshape(-1)
        return self._batch

    def close(self) -> None:
        """Free the arrays."""
        if self._is_open:
            self._is_open = False
            native.llama_batch_free(self._batch)

    def _place(self, count: int, position: int, first_scored: int) -> int:
        if not self._is_open:
            raise EngineError("The context is closed.")
        if not 0 < count <= self.capacity:
            raise ValueError(f"{count} rows do not fit a batch of {self.capacity}")
        self._batch.n_tokens = count
        np.add(self._counting[:count], position, out=self._position[:count])
        self._wanted[:first_scored] = 0
        self._wanted[first_scored:count] = 1
        return count


def floats(pointer: Any, count: int) -> npt.NDArray[np.float32]:
    """A view of `count` native floats at a pointer or an address; they are the library's and change with its
    next step."""
    address = pointer if isinstance(pointer, int) else ctypes.addressof(pointer.contents)
    return _floats_at(address, count)


@lru_cache(maxsize=512)
def _floats_at(address: int, count: int) -> npt.NDArray[np.float32]:
    """A view holds nothing but the address, and making one costs more than a small decode step may."""
    buffer: Any = (ctypes.c_float * count).from_address(address)
    return np.frombuffer(buffer, dtype=np.float32)


def _view(pointer: Any, count: int, kind: Any) -> npt.NDArray[Any]:
    address = ctypes.cast(pointer, ctypes.c_void_p).value
    if not address:
        raise MemoryError("the library gave no memory")
    return np.frombuffer((kind * count).from_address(address), dtype=np.dtype(kind))
