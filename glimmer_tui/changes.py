"""What the conversation changed, as texts that a diff can be made of."""

from collections.abc import Iterable

from sandbox.snapshots import FileDelta
from tools.base import FileChange


def as_texts(deltas: Iterable[FileDelta]) -> list[FileChange]:
    """Each delta as text before and after. A deleted file is "" after; what is no text shows as one line."""
    return [
        FileChange(delta.path.as_posix(), _text(delta.before), _text(delta.after) or _absent(delta))
        for delta in deltas
    ]


def _text(data: bytes | None) -> str | None:
    if data is None:
        return None
    if b"\0" in data:
        return f"(binary, {len(data)} bytes)\n"
    return data.decode("utf-8", "replace")


def _absent(delta: FileDelta) -> str:
    return f"({delta.note})\n" if delta.note else ""
