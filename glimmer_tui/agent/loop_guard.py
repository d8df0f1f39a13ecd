"""Notices a model that goes round in circles: the same few calls, again and again, with the same results."""

import re
from collections import deque
from collections.abc import Sequence

REPEATS = 3
"""How often a pattern must come in a row before it counts as a loop."""

LONGEST_PATTERN = 6
"""Patterns of one call (A A A), of two (A B A B A B) and so on up to this length are looked for."""


_INCIDENTAL = re.compile(r"\b\d+\.\d+ ?m?s\b|\b0x[0-9a-f]+\b")
"""Measured times and memory addresses: they differ from run to run and mean no progress."""


class LoopGuard:
    """Remembers the last calls of a turn. Pure: it decides nothing but whether they repeat."""

    def __init__(self) -> None:
        self._seen: deque[tuple[str, str]] = deque(maxlen=REPEATS * LONGEST_PATTERN)

    def add(self, call: str, result: str) -> bool:
        """Take note of a call (name and arguments as text) and its result; True when that makes a loop."""
        self._seen.append((call, _INCIDENTAL.sub("", result)))
        seen = tuple(self._seen)
        return any(_repeats(seen, length) for length in range(1, LONGEST_PATTERN + 1))


def _repeats(seen: Sequence[tuple[str, str]], length: int) -> bool:
    """Whether the last `REPEATS * length` entries are one pattern of that length, again and again."""
    window = seen[-REPEATS * length :]
    if len(window) < REPEATS * length:
        return False
    return all(entry == window[index % length] for index, entry in enumerate(window))
