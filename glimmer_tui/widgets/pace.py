"""When buffered text may be drawn again."""

FLUSHES_A_SECOND = 30


class Pace:
    """At most 30 draws a second, and fewer when one is dear: drawing takes a quarter of the time at most."""

    def __init__(self) -> None:
        self._cost = 0.0

    def spent(self, seconds: float) -> None:
        """A draw took this long."""
        self._cost = seconds

    @property
    def wait(self) -> float:
        """Seconds to wait before the next draw."""
        return max(1 / FLUSHES_A_SECOND, 3 * self._cost)
