"""What a stored cache belongs to: the model's bytes and every setting that shapes keys and values."""

import hashlib
from pathlib import Path

from engine.context import Context

_HEAD, _TAIL = 4 << 20, 1 << 20
_FORMAT = "1"


def file_identity(path: Path) -> str:
    """A digest of a file's size, its beginning (where a GGUF has its keys and names) and its end."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        size = file.seek(0, 2)
        digest.update(str(size).encode())
        file.seek(0)
        digest.update(file.read(_HEAD))
        file.seek(max(0, size - _TAIL))
        digest.update(file.read(_TAIL))
    return digest.hexdigest()


def cache_key(model: Path, drafter: Path | None, context: Context, kv_type: str) -> str:
    """The key of stored caches. Raises OSError where a file can no longer be read."""
    parts = (
        _FORMAT,
        file_identity(model),
        file_identity(drafter) if drafter is not None else "",
        kv_type,
        str(context.size),
        str(context.batch_size),
    )
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
