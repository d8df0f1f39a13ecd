"""What to remove from a cache that is full. Pure.

Old tool results go first, since they can be had again; then what the model wrote, then what the person said.
The system block and the person's last message stay.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from engine.holes import Holes
from engine.token_log import Span

HEAD, TAIL = 16, 8
"""Tokens of a tool result that stay, so that the model still sees a result, only an empty one."""
SMALLEST = 16
"""Tokens; a smaller hole is not worth a place in the books."""

_ORDER = {"tool": 0, "reply": 1, "assistant": 1, "user": 2}
_REST = 3


@dataclass(frozen=True, slots=True)
class Removal:
    """Positions `start` to `end` - 1 of a message."""

    message_id: str
    start: int
    end: int


def removable(spans: Sequence[Span], holes: Holes) -> list[Removal]:
    """All that may be removed, in the order in which it should go.

    Last come the remains: what was left of tool results, and messages too short to be worth a hole each.
    """
    last_user = max((span.start for span in spans if span.kind == "user"), default=-1)
    found: list[tuple[int, Removal]] = []
    for span in spans:
        order = _ORDER.get(span.kind)
        if order is None or span.start == last_user:
            continue
        start, end = (span.start + HEAD, span.end - TAIL) if span.kind == "tool" else (span.start, span.end)
        if end - start < SMALLEST:
            start = end = span.start
        elif not holes.covers(start, end):
            found.append((order, Removal(span.message_id, start, end)))
        for first, last in ((span.start, start), (end, span.end)):
            if first < last and not holes.covers(first, last):
                found.append((_REST, Removal(span.message_id, first, last)))
    return [removal for _, removal in sorted(found, key=lambda item: (item[0], item[1].start))]
