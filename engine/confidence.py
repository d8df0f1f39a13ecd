"""How much of a draft is worth reading: the drafter is surer of some tokens than of others. Pure.

A drafted token costs one row more of the step. It is read where the chance that it and all before it stand,
times one token, is worth that cost at the rate at which tokens are written now. The chances are the drafter's
own, set right by what came of such chances before.
"""

from bisect import bisect_right
from collections.abc import Sequence

from engine.depth import Average

_EDGES = (0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.96, 0.99)
"""Where one class of chances ends and the next begins."""
_TRUSTED = 6.0
"""Observations that a class's own chance counts for, until some were made."""
_MEMORY = 0.99
_FIRST = 2
"""Steps of full and of half length that are taken before a draft is cut."""


class StepCost:
    """Seconds of a step by its drafted tokens: a straight line through what was seen, newer steps first."""

    def __init__(self) -> None:
        self._sums = (0.0, 0.0, 0.0, 0.0, 0.0)

    def observe(self, drafted: int, seconds: float) -> None:
        """A step that read `drafted` tokens beside the last one took so long."""
        one, x, y, xx, xy = (part * _MEMORY for part in self._sums)
        self._sums = (one + 1, x + drafted, y + seconds, xx + drafted * drafted, xy + drafted * seconds)

    @property
    def per_token(self) -> float | None:
        """What one drafted token costs more; None while steps of one length alone were seen."""
        one, x, y, xx, xy = self._sums
        spread = one * xx - x * x
        return max(0.0, (one * xy - x * y) / spread) if spread > 1e-6 * max(1.0, xx) else None


class Confidence:
    """Cuts drafts where they are no longer worth their cost."""

    def __init__(self) -> None:
        self.cost = StepCost()
        lows, highs = (0.0, *_EDGES), (*_EDGES, 1.0)
        self._classes = [Average((low + high) / 2, _TRUSTED) for low, high in zip(lows, highs, strict=True)]
        self._tokens, self._seconds = Average(), Average()
        self._full = self._half = 0

    def cut(self, chances: Sequence[float]) -> int:
        """How many of the drafted tokens, from the first on, are to be read."""
        if self._full < _FIRST:
            return len(chances)
        per_token = self.cost.per_token
        if self._half < _FIRST or per_token is None or self._seconds.value <= 0:
            return (len(chances) + 1) // 2
        price = per_token * self._tokens.value / self._seconds.value
        stands = 1.0
        for count, chance in enumerate(chances):
            stands *= self._classes[_class(chance)].value
            if stands < price:
                return count
        return len(chances)

    def observe(
        self, chances: Sequence[float], read: int, stood: int, seconds: float, reading: float
    ) -> None:
        """Of the first `read` tokens `stood` stood; the step took `seconds`, of them `reading` to read."""
        if read == len(chances):
            self._full += 1
        elif read:
            self._half += 1
        for place in range(min(read, stood + 1)):
            self._classes[_class(chances[place])].add(1.0 if place < stood else 0.0)
        self.cost.observe(read, reading)
        self._tokens.add(stood + 1)
        self._seconds.add(seconds)


def _class(chance: float) -> int:
    return bisect_right(_EDGES, chance)
