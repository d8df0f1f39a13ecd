"""A writer who picks among the tokens that may come next, by chance or towards a phrase."""

import random
from collections.abc import Callable, Sequence
from typing import Protocol

from engine.vocabulary import Vocabulary

TAGS = (
    "</atem:parameter>",
    "</atem:parameter>\n",
    "</atem:parameter>\n</atem:invoke>\n</atem:function_calls>",
    "</atem:parameter></atem:invoke>",
    '</atem:parameter>\n\n</atem:invoke>\n<atem:invoke name="x">',
    '</atem:parameter>\n<atem:parameter name="',
    '</atem:parameter>\u2028 <atem:parameter name="x">',
    "</atem:invoke>\n</atem:function_calls>",
    '<atem:function_calls>\n<atem:invoke name="',
    '<atem:parameter name="x">',
    '">',
    '"',
    "\\",
    "\\u0041",
    "\\ud800",
    ", ",
    ": ",
    "[",
    "]",
    "{",
    "}",
    "1",
    "-0.5e",
    "true",
    "null",
    "é→",
)


class Follower(Protocol):
    """What says which tokens may come next, and is told which did."""

    def allows(self, token: int) -> bool: ...

    def accept(self, token: int) -> None: ...


class Writer:
    """Writes at random with a seed; `names` are words it likes to write besides tags and brackets."""

    def __init__(self, vocabulary: Vocabulary, seed: int, names: Sequence[str] = ()) -> None:
        self._vocabulary = vocabulary
        self._random = random.Random(seed)
        self._phrases = [*TAGS, *TAGS[:3], *names]

    def chance(self, of: float) -> bool:
        return self._random.random() < of

    def write(self, follower: Follower, allowed: Callable[[], Sequence[int]]) -> list[int]:
        """One token drawn evenly from all that are allowed, or a phrase as far as it is; [] where none is."""
        wanted: list[int] = []
        if self.chance(0.6):
            wanted = self._vocabulary.tokenize(self._random.choice(self._phrases))
        if not wanted or not follower.allows(wanted[0]):
            wanted = [self._random.choice(choices)] if (choices := allowed()) else []
        written: list[int] = []
        for token in wanted:
            if not follower.allows(token):
                break
            follower.accept(token)
            written.append(token)
        return written
