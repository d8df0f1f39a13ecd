"""Keeps conversations and the system block on disk: nothing is read twice, not even after a restart."""

import hashlib
from array import array
from collections.abc import Sequence

from engine.state_file import ConversationState
from engine.state_folder import StateFolder

SHORTEST_PREFIX = 256
"""Tokens; a shorter system block is read faster than a file is found."""


class Keeper:
    """Stored conversations of one model with one way of loading it."""

    def __init__(self, folder: StateFolder, key: str) -> None:
        self._folder = folder
        self._key = key

    def save(self, name: str, state: ConversationState) -> None:
        """Store a conversation. Raises OSError."""
        self._folder.save(f"session-{name}", self._key, state)

    def load(self, name: str) -> ConversationState | None:
        """A stored conversation, or None. Raises StateUnusable."""
        return self._folder.load(f"session-{name}", self._key)

    def save_prefix(self, ids: Sequence[int], state: ConversationState) -> None:
        """Store what the model holds after a system block. Raises OSError."""
        self._folder.save(self._prefix(ids), self._key, state)

    def load_prefix(self, ids: Sequence[int]) -> ConversationState | None:
        """What the model held after this system block, or None. Raises StateUnusable."""
        return self._folder.load(self._prefix(ids), self._key)

    def _prefix(self, ids: Sequence[int]) -> str:
        digest = hashlib.sha256(self._key.encode() + array("i", ids).tobytes())
        return f"prefix-{digest.hexdigest()[:32]}"
