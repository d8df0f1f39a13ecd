"""Conversations on disk: one file of JSON lines each, readable by their owner alone."""

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from engine.messages import Message, new_id
from glimmer_tui.agent.codec import message_from_json, message_to_json

SUFFIX = ".jsonl"


def project_key(root: Path) -> str:
    """A folder name for a project: its own name, readable, and a digest of where it lies."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", root.name).strip("-.")[:40] or "project"
    return f"{name}-{hashlib.sha256(os.fsencode(root)).hexdigest()[:12]}"


@dataclass(frozen=True, slots=True)
class Loaded:
    """A conversation read back. `skipped` counts the lines that could not be read."""

    messages: tuple[Message, ...]
    skipped: int = 0


class ConversationFile:
    """One conversation. The file appears with its first message and is only ever appended to."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, message: Message) -> None:
        """Write a message as one line. Raises OSError."""
        self._write([message])

    def load(self) -> Loaded:
        """Read every message, and mend an end that was torn when the machine or the program stopped.

        A line that cannot be read is left out and counted. Raises OSError.
        """
        lines = self.path.read_bytes().split(b"\n")
        torn = lines.pop()
        messages: list[Message] = []
        skipped = 0
        for line in lines:
            message = _message(line)
            if message is not None:
                messages.append(message)
            elif line.strip():
                skipped += 1
        if torn:
            skipped += self._mend(torn, messages)
        return Loaded(tuple(messages), skipped)

    def _mend(self, torn: bytes, messages: list[Message]) -> int:
        """Finish a last line that only lacks its newline, cut off one that is broken."""
        message = _message(torn)
        with self.path.open("r+b") as file:
            if message is None:
                file.truncate(self.path.stat().st_size - len(torn))
                return 1
            file.seek(0, os.SEEK_END)
            file.write(b"\n")
        messages.append(message)
        return 0

    def _write(self, messages: Sequence[Message]) -> None:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        text = "".join(json.dumps(message_to_json(message)) + "\n" for message in messages)
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "ab") as file:
            file.write(text.encode("ascii"))


class Store:
    """The conversations of one project, in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def create(self) -> ConversationFile:
        """A place for a new conversation. Names sort by the time they were made."""
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
        return ConversationFile(self.folder / f"{stamp}-{new_id()[:8]}{SUFFIX}")

    def latest(self) -> ConversationFile | None:
        """The conversation begun last, if there is one."""
        with contextlib.suppress(OSError):
            names = sorted(path.name for path in self.folder.glob(f"*{SUFFIX}"))
            if names:
                return ConversationFile(self.folder / names[-1])
        return None


def _message(line: bytes) -> Message | None:
    try:
        return message_from_json(json.loads(line))
    except (ValueError, RecursionError):
        return None
