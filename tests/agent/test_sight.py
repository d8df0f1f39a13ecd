"""What the model keeps in view of a history with pictures and long results."""

from hypothesis import given
from hypothesis import strategies as st

from engine.messages import Image, Message, Text, ToolCall, ToolResult
from glimmer_tui.agent.sight import Sight

LONG = "a line\n" * 60


def shown(number: int) -> Message:
    return Message("user", (Text(f"look {number}"), Image(bytes([number]), 10, 10)), f"u{number}")


def shot(number: int, command: str) -> tuple[Message, Message]:
    call = ToolCall(f"c{number}", "screenshot", {"command": command})
    result = ToolResult(call.id, "screenshot", "done")
    return (
        Message("assistant", (call,), f"a{number}"),
        Message("tool", (result, Image(bytes([number]), 10, 10)), f"t{number}"),
    )


def in_view(messages: tuple[Message, ...]) -> list[str]:
    return [m.id for m in messages if any(isinstance(p, Image) and not p.expired for p in m.parts)]


def words(messages: tuple[Message, ...], name: str) -> list[str]:
    (message,) = (m for m in messages if m.id == name)
    return [p.expired for p in message.parts if isinstance(p, Image | ToolResult)]


@given(st.integers(0, 9), st.integers(1, 4))
def test_the_newest_pictures_stay_and_no_message_becomes_another(count: int, kept: int) -> None:
    messages = [shown(number) for number in range(count)]
    seen = Sight(kept).of(messages)
    assert in_view(seen) == [f"u{number}" for number in range(max(0, count - kept), count)]
    assert list(seen) == messages


def test_a_picture_is_out_of_view_with_the_time_it_was_said(monkeypatch) -> None:
    sight, old = Sight(1), shown(1)
    sight.note(old)
    (said,) = words(sight.of([old, shown(2)]), "u1")
    assert said.startswith("picture of ") and said.endswith(", removed")


def test_a_newer_picture_of_the_same_thing_supersedes_the_older_one() -> None:
    messages = [*shot(1, "top"), *shot(2, "ls"), *shot(3, "top")]
    seen = Sight(3).of(messages)
    assert in_view(seen) == ["t2", "t3"]
    assert words(seen, "t1") == ["", "picture, superseded by a newer one"]


def test_by_hand_all_but_the_newest_picture_and_long_results_of_earlier_turns_go() -> None:
    long = Message("tool", (ToolResult("x", "read", LONG),), "long")
    short = Message("tool", (ToolResult("y", "read", "ok"),), "short")
    now = Message("tool", (ToolResult("z", "read", LONG),), "now")
    messages = [shown(1), long, short, shown(2), now]
    sight = Sight(3)
    expired = sight.expire(messages)
    assert (expired.pictures, expired.results) == (1, 1)
    seen = sight.of(messages)
    assert in_view(seen) == ["u2"]
    assert words(seen, "long") == ["the result of read, removed"]
    assert words(seen, "short") == words(seen, "now") == [""]
    again = sight.expire(messages)
    assert (again.pictures, again.results) == (0, 0)
