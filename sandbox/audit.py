"""A record of what the agent did on this machine: one JSON line an event, only ever appended to.

The log must never stand in the way of work: when a line cannot be written, `record` says so in a sentence,
once, and goes on. It must not be turned against its owner either: the file is private, and a link or
anything else that is not a regular file of this person's is refused.
"""

import json
import math
import os
import stat
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from sandbox.refusals import shown

_LONGEST = 4_000
_MOST_ITEMS = 100
_DEEPEST = 6
_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class AuditUnavailable(Exception):
    """The log cannot be opened: `what` happened, `why`, and what to do (`todo`)."""

    def __init__(self, what: str, why: str = "", todo: str = "") -> None:
        self.what = what
        self.why = why
        self.todo = todo
        super().__init__(" ".join(part for part in (what, why, todo) if part))


class AuditLog:
    """An append-only log, mode 0600 in a folder of mode 0700. Any thread may record."""

    def __init__(self, path: Path) -> None:
        """Open or create the log; raises AuditUnavailable."""
        self._path = path
        self._turn = threading.Lock()
        self._told = False
        try:
            self._file = _opened(path)
        except OSError as error:
            raise self._refusal(f"The system says: {os.strerror(error.errno or 0)}.") from error
        facts = os.fstat(self._file)
        if not stat.S_ISREG(facts.st_mode) or facts.st_uid != os.geteuid() or facts.st_nlink != 1:
            os.close(self._file)
            raise self._refusal("It is not a file of yours alone.")
        os.fchmod(self._file, 0o600)
        self._torn = facts.st_size > 0 and os.pread(self._file, 1, facts.st_size - 1) != b"\n"

    def record(self, kind: str, /, **fields: object) -> str:
        """Append an event with the time (UTC) and these fields; long values are cut and say so.

        Never raises. Returns "" or, the first time a line could not be written, a sentence for the person.
        """
        event: dict[str, object] = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "kind": kind,
        }
        for name, value in fields.items():
            event[f"field_{name}" if name in event else name] = value
        line = f"{json.dumps(_plain(event, 0))}\n".encode("ascii")
        with self._turn:
            return self._append(line)

    def close(self) -> None:
        """Close the file; later events are not recorded."""
        with self._turn:
            if self._file >= 0:
                os.close(self._file)
            self._file = -1

    def _append(self, line: bytes) -> str:
        # A line that was cut short is closed first, so that only that one is lost to a reader.
        data = b"\n" + line if self._torn else line
        try:
            written = os.write(self._file, data)
        except OSError as error:
            return self._failed(os.strerror(error.errno or 0))
        if written < len(data):
            self._torn = True
            return self._failed("The disk took only a part of it")
        self._torn = self._told = False
        return ""

    def _failed(self, why: str) -> str:
        if self._told:
            return ""
        self._told = True
        return f"The audit log {shown(str(self._path))} cannot be written: {why}. Glimmer goes on without it."

    def _refusal(self, why: str) -> AuditUnavailable:
        what = f"The audit log {shown(str(self._path))} cannot be opened."
        return AuditUnavailable(what, why, "Move away what is there, or choose another place for the log.")


def _opened(path: Path) -> int:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if stat.S_IMODE(path.parent.stat().st_mode) != 0o700:
        path.parent.chmod(0o700)
    return os.open(path, _FLAGS, 0o600)


def _plain(value: object, depth: int) -> object:
    """The value in what JSON knows, bounded in length and depth."""
    match value:
        case None | bool():
            plain: object = value
        case int():
            plain = value if abs(value) < 1 << 63 else _short(hex(value))
        case float():
            plain = value if math.isfinite(value) else str(value)
        case str():
            plain = _short(value)
        case bytes():
            plain = _short(value[: 4 * _LONGEST].decode("utf-8", "surrogateescape"), len(value))
        case dict() | list() | tuple() | set() | frozenset() if depth >= _DEEPEST:
            plain = "…"
        case dict():
            plain = _plain_mapping(cast("Mapping[object, object]", value), depth)
        case list() | tuple() | set() | frozenset():
            plain = _plain_items(list(cast("list[object]", value)), depth)
        case _:
            plain = _short(_described(value))
    return plain


def _plain_items(items: list[object], depth: int) -> list[object]:
    kept = [_plain(item, depth + 1) for item in items[:_MOST_ITEMS]]
    return [*kept, f"… {len(items) - len(kept)} more"] if len(items) > len(kept) else kept


def _plain_mapping(value: Mapping[object, object], depth: int) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, item in value.items():
        if len(found) >= _MOST_ITEMS:
            found["…"] = f"{len(value) - _MOST_ITEMS} more"
            break
        found[_short(key if isinstance(key, str) else _described(key))] = _plain(item, depth + 1)
    return found


def _described(value: object) -> str:
    if isinstance(value, os.PathLike):
        return os.fsdecode(cast("os.PathLike[str]", value))
    try:
        return str(value)
    except Exception:
        return f"<{type(value).__name__}>"


def _short(text: str, length: int = 0) -> str:
    length = max(length, len(text))
    return text if length <= _LONGEST else f"{text[:_LONGEST]}… [{length - _LONGEST} more]"
