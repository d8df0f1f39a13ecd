"""Where stored conversations lie, and how many bytes they may take."""

import re
from pathlib import Path

from engine.state_file import ConversationState, StateUnusable, read_state, write_state

DEFAULT_BUDGET = 20 << 30
"""Bytes. A full conversation of the 30B model takes 1.8 GB."""

_SUFFIX = ".state"


class StateFolder:
    """Stored conversations by name. What was used longest ago goes first when there are too many bytes."""

    def __init__(self, folder: Path, budget: int = DEFAULT_BUDGET) -> None:
        self._folder = folder
        self._budget = budget

    def save(self, name: str, key: str, state: ConversationState) -> None:
        """Store it under `name`, over what was there. Raises OSError."""
        path = self._path(name)
        write_state(path, key, state)
        self._clean(path)

    def load(self, name: str, key: str) -> ConversationState | None:
        """What is stored under `name`, or None. Raises StateUnusable for a file of no use, and deletes it."""
        path = self._path(name)
        if not path.exists():
            return None
        try:
            state = read_state(path, key)
        except StateUnusable:
            path.unlink(missing_ok=True)
            raise
        path.touch()
        return state

    def _path(self, name: str) -> Path:
        return self._folder / f"{re.sub(r'[^A-Za-z0-9_-]', '_', name)[:120]}{_SUFFIX}"

    def _clean(self, newest: Path) -> None:
        kept = [(path.stat(), path) for path in self._folder.glob(f"*{_SUFFIX}")]
        total = sum(stat.st_size for stat, _ in kept)
        for stat, path in sorted(kept, key=lambda item: item[0].st_mtime_ns):
            if total <= self._budget:
                return
            if path != newest:
                path.unlink(missing_ok=True)
                total -= stat.st_size
