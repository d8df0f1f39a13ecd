"""A conversation's cache on disk: its ids, what was removed of it, its checkpoints and all keys and values.

One file holds everything, written beside its place and moved there whole. It opens only for the model file
and the settings it was made with, and only when every byte is as it was written.

    magic · length of the header (8 bytes, little-endian) · header (JSON) · sections · CRC-32 (4 bytes)
"""

import json
import os
import struct
import zlib
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from engine.cache import Snapshot
from engine.checkpoints import Checkpoint
from engine.errors import EngineError
from engine.holes import Hole
from engine.memory import MemoryState
from engine.token_log import LogState, Span

MAGIC = b"GLIMMER-STATE-1\n"
_LENGTH = struct.Struct("<Q")
_CHECK = struct.Struct("<I")
_MOST_HEADER = 64 << 20


class StateUnusable(EngineError):
    """A stored conversation cannot be taken over; the conversation itself is not lost, only read again."""


@dataclass(frozen=True, slots=True)
class ConversationState:
    """A token log and the memory of it."""

    log: LogState
    memory: MemoryState


def write_state(path: Path, key: str, state: ConversationState) -> int:
    """Write it for the model and settings that `key` names; returns the bytes written. Raises OSError."""
    sections = list(_sections(state))
    header = json.dumps(_header(key, state, [len(section) for section in sections])).encode()
    fresh = path.with_name(f".{path.name}.{os.getpid()}.new")
    check = size = 0
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            for part in (MAGIC, _LENGTH.pack(len(header)), header, *sections):
                check = zlib.crc32(part, check)
                size += file.write(part)
            size += file.write(_CHECK.pack(check))
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, path)
    finally:
        fresh.unlink(missing_ok=True)
    return size


def read_state(path: Path, key: str) -> ConversationState:
    """What `write_state` wrote under the same key. Raises StateUnusable, also where there is no file."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise _unusable(path, f"It cannot be read: {error.strerror or error}.") from error
    start = len(MAGIC) + _LENGTH.size
    if not raw.startswith(MAGIC) or len(raw) < start + _CHECK.size:
        raise _unusable(path, "It is not a stored conversation of this version of Glimmer.")
    (length,) = _LENGTH.unpack_from(raw, len(MAGIC))
    if length > min(_MOST_HEADER, len(raw) - start - _CHECK.size):
        raise _unusable(path, "It is cut short.")
    view = memoryview(raw)
    if zlib.crc32(view[: -_CHECK.size]) != _CHECK.unpack(view[-_CHECK.size :])[0]:
        raise _unusable(path, "It is cut short or damaged.")
    try:
        header = cast("dict[str, Any]", json.loads(raw[start : start + length]))
        if header["key"] != key:
            raise _unusable(path, "It belongs to another model, or to other settings.")
        return _state(header, view[start + length : -_CHECK.size])
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise _unusable(path, "Its content makes no sense.") from error


def _unusable(path: Path, why: str) -> StateUnusable:
    return StateUnusable(
        f"The stored cache {path.name} was not used.", why, "The conversation is read again instead."
    )


def _sections(state: ConversationState) -> Iterator[bytes]:
    yield array("i", state.log.ids).tobytes()
    yield state.memory.whole.target
    yield state.memory.whole.drafter
    for checkpoint in state.memory.checkpoints:
        yield checkpoint.snapshot.target
        yield checkpoint.snapshot.drafter


def _header(key: str, state: ConversationState, lengths: list[int]) -> dict[str, Any]:
    log, memory = state.log, state.memory
    return {
        "key": key,
        "lengths": lengths,
        "cached": log.cached,
        "read": log.read,
        "spans": [(span.kind, span.message_id, span.start, span.end) for span in log.spans],
        "replies": {name: list(ids) for name, ids in log.replies.items()},
        "position": memory.whole.position,
        "holes": [(hole.start, hole.end, hole.is_open) for hole in memory.holes],
        "checkpoints": [(kept.position, kept.pinned) for kept in memory.checkpoints],
    }


def _state(header: dict[str, Any], body: memoryview) -> ConversationState:
    parts: list[bytes] = []
    for length in header["lengths"]:
        parts.append(bytes(body[:length]))
        body = body[length:]
    ids = array("i")
    ids.frombytes(parts[0])
    snapshots = iter(parts[1:])
    whole = Snapshot(header["position"], next(snapshots), next(snapshots))
    checkpoints = tuple(
        Checkpoint(Snapshot(position, next(snapshots), next(snapshots)), pinned)
        for position, pinned in header["checkpoints"]
    )
    log = LogState(
        ids=tuple(ids),
        spans=tuple(Span(kind, name, None, start, end) for kind, name, start, end in header["spans"]),
        replies={name: tuple(reply) for name, reply in header["replies"].items()},
        cached=header["cached"],
        read=header["read"],
    )
    holes = tuple(Hole(start, end, is_open) for start, end, is_open in header["holes"])
    return ConversationState(log, MemoryState(whole, holes, checkpoints))
