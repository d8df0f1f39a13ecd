"""What the history marks as expired: the places of old pictures and old tool results in the log. Pure.

A mark changes no message. So what was read stays as it is, and what came after it is not read again: the
cells are freed once the window has passed them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from engine.eviction import HEAD, SMALLEST, TAIL, Removal
from engine.messages import Image, Message, ToolResult
from engine.token_log import Span

Places = Callable[[Image], tuple[int, ...]]


def marked(messages: Iterable[Message]) -> dict[str, Message]:
    """The messages in which something is expired, by their ids."""
    return {
        message.id: message
        for message in messages
        if any(isinstance(part, Image | ToolResult) and part.expired for part in message.parts)
    }


def expired(
    spans: Sequence[Span], ids: Sequence[int], messages: Mapping[str, Message], places: Places
) -> Iterator[Removal]:
    """What of `ids` belongs to expired parts of `marked` messages; `places` gives the ids of a picture."""
    for span in spans:
        if (message := messages.get(span.message_id)) is None:
            continue
        for image in message.parts:
            if isinstance(image, Image) and image.expired:
                yield from _found(span, ids, places(image))
        results = [part for part in message.parts if isinstance(part, ToolResult)]
        start, end = span.start + HEAD, span.end - TAIL
        if results and all(result.expired for result in results) and end - start >= SMALLEST:
            yield Removal(span.message_id, start, end)


def _found(span: Span, ids: Sequence[int], places: tuple[int, ...]) -> Iterator[Removal]:
    """Every place where a picture stands in a span; nowhere if it had expired before it was read."""
    at = span.start
    while places and at <= span.end - len(places):
        if ids[at] == places[0] and tuple(ids[at : at + len(places)]) == places:
            yield Removal(span.message_id, at, at + len(places))
            at += len(places)
        else:
            at += 1
