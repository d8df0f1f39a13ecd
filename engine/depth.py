"""How many tokens to draft: as many as write the most a second on this device. Pure; it is told the times.

A step reads the last token and k drafts. What it costs is measured as it goes, for each k; what it writes
is 1 + the sum over i <= k of the share of steps whose first i drafts all stood. Both change with the device,
the context's length and the text, so both are running averages.
"""

from dataclasses import dataclass

_MEMORY = 0.97
"""What is left of an observation's weight after one more."""
_PROBE_SHARE = 0.015
"""The share of the time that may be lost on steps that seem worse, to learn whether they still are."""
_JUDGED_EVERY = 4
"""Steps after which the best choice is worked out anew."""
_FIRST = 2
"""Steps of a kind that are taken before it is judged."""
_FIRST_PLAIN = 8
"""The same for plain steps, which everything else is measured by and which cost nothing to try."""
_MARGIN = 1.04
"""How much more than plain steps drafts must promise: what is as fast as plain only adds risk."""


class Average:
    """A running average in which older values count less; the first ones count alike."""

    def __init__(self, start: float = 0.0, weight: float = 0.0) -> None:
        self.value, self._weight = start, weight

    def add(self, value: float) -> None:
        self._weight = self._weight * _MEMORY + 1.0
        self.value += (value - self.value) / self._weight


class Acceptance:
    """For each position of a block, the share of blocks that stood up to there."""

    def __init__(self, most: int, hoped: float) -> None:
        """`hoped`: the chance of a draft to stand when those before it did, until some were seen."""
        self._next = [Average(hoped, 2.0) for _ in range(most)]

    def observe(self, drafted: int, stood: int) -> None:
        """Of `drafted` tokens the first `stood` stood."""
        for place in range(min(drafted, stood + 1)):
            self._next[place].add(1.0 if place < stood else 0.0)

    def expected(self, depth: int) -> float:
        """Tokens that a step with `depth` drafts writes."""
        total, chance = 1.0, 1.0
        for average in self._next[:depth]:
            chance *= average.value
            total += chance
        return total

    def shares(self) -> tuple[float, ...]:
        """The chance, for each position, that a block stands up to there."""
        chance, shares = 1.0, list[float]()
        for average in self._next:
            chance *= average.value
            shares.append(chance)
        return tuple(shares)


class Costs:
    """Seconds of a step by its number of drafts, between measured ones on a line."""

    def __init__(self) -> None:
        self._seen: dict[int, Average] = {}
        self._times: dict[int, int] = {}

    def observe(self, depth: int, seconds: float) -> None:
        """A step with `depth` drafts took so long. The first of its kind pays for what is set up once."""
        seen = self._times[depth] = self._times.get(depth, 0) + 1
        if seen == 2:
            self._seen[depth] = Average()
        self._seen.setdefault(depth, Average()).add(seconds)

    def times(self, depth: int) -> int:
        """How often a step with `depth` drafts was seen."""
        return self._times.get(depth, 0)

    def seconds(self, depth: int) -> float | None:
        """What a step costs; None while that cannot be said."""
        if depth in self._seen:
            return self._seen[depth].value
        below = max((k for k in self._seen if k < depth), default=None)
        above = min((k for k in self._seen if k > depth), default=None)
        if below is None or above is None:
            return None
        low, high = self._seen[below].value, self._seen[above].value
        return low + (high - low) * (depth - below) / (above - below)


@dataclass(frozen=True, slots=True)
class Choice:
    """A number of drafts and the tokens a second it promises; a trial is made to learn, at any price."""

    depth: int
    rate: float
    is_trial: bool = False


class Depth:
    """Chooses the number of drafts of each step, 0 included."""

    def __init__(
        self, most: int, hoped: float = 0.7, costs: Costs | None = None, *, is_cut: bool = False
    ) -> None:
        """`most` is the longest draft (a block less one); `costs` may be shared by drafts of one source.

        Where drafts are cut before they are read (`is_cut`), what steps of each kind wrote is counted itself:
        the chances of the places that were read say too much of the others.
        """
        self.most = most
        self._written = Costs() if is_cut else None
        self.acceptance = Acceptance(most, hoped)
        self.costs = costs or Costs()
        between = (most // 2,) if is_cut and most > 2 else (1, 2, 3, 5, 7, 11, 15, 23, 31)
        self._ladder = (0, *(k for k in between if k < most), most)
        self._spent = self._lost = 0.0
        self._best = Choice(0, 0.0)
        self._until_judged = 0

    def choose(self, room: int) -> Choice:
        """Drafts of the next step, at most `room`."""
        ladder = self._ladder if room >= self.most else tuple(k for k in self._ladder if k <= room)
        if len(ladder) < 2:
            return Choice(0, 0.0)
        for kind in (0, ladder[-1], ladder[len(ladder) // 2]):
            if self.costs.times(kind) < (_FIRST if kind else _FIRST_PLAIN):
                return Choice(kind, 0.0, is_trial=True)
        best = self._best if room >= self.most else self._best_of(ladder)
        if self._lost <= self._spent * _PROBE_SHARE and (probe := self._probe(best, ladder)) is not None:
            return Choice(probe, self.rate(probe), is_trial=True)
        return best

    def observe(self, drafted: int, stood: int, seconds: float, read: int | None = None) -> None:
        """A step with `drafted` drafts, of which `stood` stood, took so long; `read` of them were read, all
        if not given."""
        is_first = self.costs.times(drafted) == 0
        self.costs.observe(drafted, seconds)
        self.acceptance.observe(drafted if read is None else read, stood)
        if self._written is not None:
            self._written.observe(drafted, stood + 1)
        self._until_judged -= 1
        if self._until_judged <= 0:
            self._best, self._until_judged = self._best_of(self._ladder), _JUDGED_EVERY
        self._spent += seconds
        if drafted != self._best.depth and self._best.rate > 0 and not is_first:
            self._lost = max(0.0, self._lost + seconds - (stood + 1) / self._best.rate)

    def wait(self, seconds: float) -> None:
        """A step of another source took so long: that much later what seemed worse may be tried again."""
        self._spent += seconds

    def lose(self, seconds: float) -> None:
        """A trial cost so much more than its step: later trials must wait for it."""
        self._spent += seconds
        self._lost += seconds

    def rate(self, depth: int) -> float:
        """Tokens a second that `depth` drafts promise; 0 while their cost is not known."""
        seconds = self.costs.seconds(depth)
        written = self._written.seconds(depth) if self._written is not None else None
        return (written or self.acceptance.expected(depth)) / seconds if seconds else 0.0

    def _best_of(self, ladder: tuple[int, ...]) -> Choice:
        plain = Choice(0, self.rate(0))
        drafting = (Choice(k, self.rate(k)) for k in ladder if k)
        best = max(drafting, key=lambda choice: choice.rate, default=plain)
        return best if best.rate > _MARGIN * plain.rate else plain

    def _probe(self, best: Choice, ladder: tuple[int, ...]) -> int | None:
        """A worse choice that was not taken for long, to learn anew what it is worth."""
        wanted = min((k for k in ladder if k != best.depth), key=self.costs.times)
        return wanted if self.costs.times(wanted) * 16 < self.costs.times(best.depth) else None
