"""Encoded pictures on disk, so that one seen before is not encoded again.

A file holds the vectors as 16-bit floats behind their SHA-256; what is torn or foreign is as good as absent.
The least recently used go first when the folder grows beyond its budget.
"""

import contextlib
import hashlib
import os
import secrets
from pathlib import Path

import numpy as np
import numpy.typing as npt

DEFAULT_BUDGET = 512 * 1024 * 1024
"""Bytes; a screen of 1,196 tokens takes 16 MB of it at the 30B's width."""
_SUFFIX = ".pic"
_DIGEST = 32


class EmbeddingStore:
    """A folder of encoded pictures, one file a key. It never raises: without it they are encoded anew."""

    def __init__(self, folder: Path, budget: int = DEFAULT_BUDGET) -> None:
        self._folder = folder
        self._budget = budget

    def load(self, key: str, tokens: int, width: int) -> npt.NDArray[np.float32] | None:
        """The vectors [tokens, width] kept under `key`, a file name, if they are whole."""
        path = self._folder / f"{key}{_SUFFIX}"
        try:
            raw = path.read_bytes()
            os.utime(path)
        except OSError:
            return None
        digest, data = raw[:_DIGEST], raw[_DIGEST:]
        if len(data) != 2 * tokens * width or hashlib.sha256(data).digest() != digest:
            with contextlib.suppress(OSError):
                path.unlink()
            return None
        return np.frombuffer(data, np.float16).reshape(tokens, width).astype(np.float32)

    def save(self, key: str, vectors: npt.NDArray[np.float32]) -> None:
        """Keep vectors, whole or not at all."""
        if np.abs(vectors).max(initial=0.0) > np.finfo(np.float16).max:
            return
        data = vectors.astype(np.float16).tobytes()
        part = self._folder / f"{key}.{secrets.token_hex(4)}.part"
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with part.open("xb") as file:
                os.chmod(part, 0o600)
                file.write(hashlib.sha256(data).digest() + data)
            part.replace(self._folder / f"{key}{_SUFFIX}")
            self._clean()
        except OSError:
            with contextlib.suppress(OSError):
                part.unlink()

    def _clean(self) -> None:
        kept = [(path.stat(), path) for path in self._folder.glob(f"*{_SUFFIX}")]
        total = sum(status.st_size for status, _ in kept)
        for status, path in sorted(kept, key=lambda item: item[0].st_mtime):
            if total <= self._budget:
                return
            path.unlink(missing_ok=True)
            total -= status.st_size
