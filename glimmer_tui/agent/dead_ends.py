"""A way out of dead ends: what failed twice in the same way leaves the model's sight, and it tries again.

A model that reads its own mistake is likely to write it once more. So when a call fails as it failed before,
the model forgets the steps since then (the record and the screen keep them), as long as they changed nothing
and hold no word of the person's, and the next step is drawn more freely. After a few such tries the turn is
left to the guard against loops. Pure.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine.protocol import SamplingWish
from glimmer_tui.agent.outcome import Outcome

MOST_TRIES = 4
"""How often a turn may go back."""
_WARM = 1.0
"""The model's own distribution; a colder one led here."""
_PERSONS_WORDS = frozenset({"declined", "not_allowed", "cancelled"})
_LASTING = frozenset({"run"})
"""Tools whose calls may have done something that no result shows."""


@dataclass(frozen=True, slots=True)
class _Step:
    """A reply and its results: ids of the messages, calls with results, and whether it may be forgotten."""

    messages: tuple[str, ...]
    calls: tuple[tuple[str, str], ...]
    failed_again: frozenset[tuple[str, str]]
    is_harmless: bool


class DeadEnds:
    """Remembers the steps of a turn."""

    def __init__(self) -> None:
        self._steps: list[_Step] = []
        self._failed: set[tuple[str, str]] = set()
        self.tries = 0
        """How often the model went back."""

    def add(self, messages: Sequence[str], outcomes: Sequence[tuple[str, Outcome]]) -> None:
        """A step was taken: the ids of its messages, and each outcome with its call as text."""
        calls = [(call, outcome.result.for_model) for call, outcome in outcomes]
        failed = {(call, outcome.result.for_model) for call, outcome in outcomes if outcome.result.is_error}
        harmless = all(_is_harmless(outcome) for _, outcome in outcomes)
        self._steps.append(_Step(tuple(messages), tuple(calls), frozenset(failed & self._failed), harmless))
        self._failed |= failed

    def leave(self) -> tuple[str, ...]:
        """Ids of the messages to forget, in order; none where this is no dead end, or no way leads out."""
        if self.tries == MOST_TRIES or not self._steps:
            return ()
        again = self._steps[-1].failed_again
        first = next((at for at, step in enumerate(self._steps) if not again.isdisjoint(step.calls)), None)
        if first is None or not all(step.is_harmless for step in self._steps[first:]):
            return ()
        forgotten = tuple(name for step in self._steps[first:] for name in step.messages)
        del self._steps[first:]
        self.tries += 1
        return forgotten

    def warmer(self, wish: SamplingWish | None) -> SamplingWish:
        """How the step after going back is drawn: another way each time, and the same from run to run where
        the person asked for that."""
        wish = wish or SamplingWish()
        is_fixed = wish.seed is not None or wish.temperature == 0
        seed = (wish.seed or 0) + self.tries if is_fixed else None
        temperature = None if wish.temperature is None else max(wish.temperature, _WARM)
        return replace(wish, temperature=temperature, seed=seed)


def _is_harmless(outcome: Outcome) -> bool:
    has_words = outcome.result.error in _PERSONS_WORDS
    return not (outcome.changed or has_words or outcome.call.name in _LASTING)
