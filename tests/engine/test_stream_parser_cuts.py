"""Properties of the parser: no cut matters, nothing makes it raise, calls come back as written."""

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.chat_format import Marker, Piece, message_pieces
from engine.messages import Message, Part, Reasoning, Text, ToolCall, ToolSchema
from engine.protocol import (
    Delta,
    ReasoningDelta,
    StopReason,
    TextDelta,
    ToolCallFailed,
    ToolCallReady,
    ToolCallStarted,
)
from engine.stream_parser import StreamParser

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "cases" / "stream_parser.json").read_text("utf-8")
)
TOOLS = (
    ToolSchema(
        "write",
        "",
        {
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "content": {"type": "string"},
                "n": {"type": "integer"},
                "list": {"type": "array"},
            },
        },
    ),
    ToolSchema("git.log", "", {"type": "object", "properties": {}, "additionalProperties": True}),
)
STOPS: list[StopReason] = ["end", "length", "context_full", "cancelled"]


def summary(deltas: Sequence[Delta]) -> list[tuple[Any, ...]]:
    """The deltas without their identifiers, neighbouring texts of one kind made one."""
    told: list[tuple[Any, ...]] = []
    for delta in deltas:
        match delta:
            case ReasoningDelta(text) | TextDelta(text):
                kind = type(delta).__name__
                if told and told[-1][0] == kind:
                    text = told.pop()[1] + text
                told.append((kind, text))
            case ToolCallStarted(name):
                told.append(("started", name))
            case ToolCallReady(call):
                told.append(("ready", call.name, dict(call.arguments)))
            case ToolCallFailed(call, problem, message):
                told.append((problem, call.name, dict(call.arguments), message))
            case _:
                raise AssertionError(delta)
    return told


def read(pieces: Sequence[Marker | str], stop: StopReason = "end") -> list[tuple[Any, ...]]:
    parser = StreamParser(TOOLS)
    deltas = [delta for piece in pieces for delta in parser.feed(piece)]
    return summary(deltas + parser.finish(stop))


def joined(pieces: Sequence[Marker | str]) -> list[Marker | str]:
    """The pieces with neighbouring texts made one."""
    whole: list[Marker | str] = []
    for piece in pieces:
        if whole and not isinstance(piece, Marker) and not isinstance(whole[-1], Marker):
            whole[-1] += piece
        else:
            whole.append(piece)
    return whole


def cut(pieces: Sequence[Marker | str], data: st.DataObject) -> list[Marker | str]:
    """The same stream with every text cut in places of hypothesis' choice."""
    small: list[Marker | str] = []
    for piece in pieces:
        if isinstance(piece, Marker):
            small.append(piece)
            continue
        places = data.draw(st.sets(st.integers(0, len(piece)), max_size=8))
        small += [piece[a:b] for a, b in pairwise(sorted({0, len(piece), *places}))]
    return small


def characters(pieces: Sequence[Marker | str]) -> list[Marker | str]:
    return [part for piece in pieces for part in ([piece] if isinstance(piece, Marker) else piece)]


FRAGMENTS = [
    " to=self", " to=user", " to=write", " to=git.*", "to=", " to", "assistant", "user", "tool write", " ",
    "\n", "Hello.", "x", "é漢", "<|eot|>", "<|message|>", "<atem:function_calls>",
    '\n<atem:invoke name="write">',
    '<atem:invoke name="write.path">', '<atem:invoke name="git.log">', '\n<atem:parameter name="path">',
    '<atem:parameter name="n">', '<atem:parameter name="list">', "12", "[1]", "null", "</atem:parameter>",
    "\n</atem:invoke>", "</atem:function_calls>", "\n", "<atem:", "</atem:function", "_calls>", '">',
]  # fmt: skip
GARBAGE = st.lists(
    st.one_of(st.sampled_from(FRAGMENTS), st.sampled_from(list(Marker)), st.text(max_size=4)), max_size=40
)
TAGS = st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.text(max_size=6)), max_size=8).map("".join)


def is_ambiguous(value: str) -> bool:
    """The one family of values that cannot be told apart: a closing tag and what may follow it, spelt out."""
    rest = value
    while "</atem:parameter>" in rest:
        rest = rest.partition("</atem:parameter>")[2]
        after = rest.lstrip()
        for tag in ("</atem:invoke>", "</atem:function_calls>", "<atem:function_calls>"):
            after = after.removeprefix(tag).lstrip()
        if after.startswith(("<atem:parameter", "<atem:invoke")):
            return True
    return False


VALUES = TAGS.filter(lambda value: not is_ambiguous(value))
CALLS = st.builds(
    ToolCall,
    st.just("c"),
    st.just("write"),
    st.fixed_dictionaries(
        {}, optional={"path": VALUES, "content": VALUES, "n": st.integers(), "list": st.lists(st.integers())}
    ),
)


def plain(pieces: Sequence[Piece]) -> list[Marker | str]:
    return [piece for piece in pieces if isinstance(piece, str)]


def reply(parts: Sequence[Part]) -> list[Marker | str]:
    """The stream of an assistant's message, from right after the generation prompt."""
    start, header, *rest = plain(message_pieces(Message("assistant", tuple(parts))))
    assert start is Marker.START
    return [header.removeprefix("assistant"), *rest]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
@pytest.mark.parametrize("stop", ["end", "length"])
def test_a_handed_stream_means_the_same_in_single_characters(case: dict[str, Any], stop: StopReason) -> None:
    markers = {marker.value: marker for marker in Marker}
    pieces: list[Marker | str] = []
    for chunk in case["stream"].replace("<|", "\0<|").replace("|>", "|>\0").split("\0"):
        pieces += [markers.get(chunk, chunk)] if chunk else []
    assert read(characters(pieces), stop) == read(pieces, stop)
    for step in (2, 3, 5, 7):
        cuts = [
            part
            for piece in pieces
            for part in (
                [piece]
                if isinstance(piece, Marker)
                else [piece[i : i + step] for i in range(0, len(piece), step)]
            )
        ]
        assert read(cuts, stop) == read(pieces, stop)


@settings(max_examples=150)
@given(GARBAGE, st.sampled_from(STOPS), st.data())
def test_no_cut_matters_and_nothing_raises(
    pieces: list[Marker | str], stop: StopReason, data: st.DataObject
) -> None:
    whole = joined(pieces)
    told = read(whole, stop)
    assert read(cut(whole, data), stop) == told
    assert read(characters(whole), stop) == told


@settings(max_examples=80)
@given(GARBAGE)
def test_what_was_said_before_a_cut_is_never_taken_back(pieces: list[Marker | str]) -> None:
    """Whatever a reply goes on with, what it told so far is how the longer one begins."""
    parser = StreamParser(TOOLS)
    told: list[Delta] = []
    for index, piece in enumerate(pieces):
        told += parser.feed(piece)
        ended = read(pieces[: index + 1], "length")
        so_far = summary(told)
        assert [entry[0] for entry in so_far] == [entry[0] for entry in ended[: len(so_far)]]
        assert all(str(b[1]).startswith(str(a[1])) for a, b in zip(so_far, ended, strict=False))


@settings(max_examples=80)
@given(GARBAGE)
def test_a_call_is_made_only_in_a_message_addressed_to_a_tool(pieces: list[Marker | str]) -> None:
    """Without a recipient that a marker token confirms there is no call, whatever the text says."""
    text_only = [piece for piece in pieces if piece is not Marker.MESSAGE]
    assert not any(entry[0] == "ready" for entry in read(text_only))


@settings(max_examples=80)
@given(st.lists(CALLS, min_size=1, max_size=3), st.booleans(), st.data())
def test_calls_come_back_as_they_were_written(
    calls: list[ToolCall], reasoned: bool, data: st.DataObject
) -> None:
    """For any text in a string but that of `is_ambiguous`."""
    parts = [Reasoning("First."), *calls] if reasoned else calls
    told = read(cut(reply(parts), data))
    ready = [entry[1:] for entry in told if entry[0] == "ready"]
    assert ready == [("write", dict(call.arguments)) for call in calls]
    assert [entry for entry in told if entry[0] not in ("ready", "started")] == (
        [("ReasoningDelta", "First.")] if reasoned else []
    )


@settings(max_examples=60)
@given(st.lists(st.one_of(TAGS.map(Text), TAGS.map(Reasoning)), min_size=1, max_size=4), st.data())
def test_speech_comes_back_as_it_was_written(parts: list[Text | Reasoning], data: st.DataObject) -> None:
    told = read(cut(reply(parts), data))
    said = "".join(entry[1] for entry in told if entry[0] == "TextDelta")
    thought = "".join(entry[1] for entry in told if entry[0] == "ReasoningDelta")
    assert said == "".join(part.text for part in parts if isinstance(part, Text))
    assert thought == "".join(part.text for part in parts if isinstance(part, Reasoning))
    assert not any(entry[0] == "ready" for entry in told)


def test_the_ambiguous_family_is_cut_at_its_own_closing_tag() -> None:
    """A value that spells a closing tag and the next opening one reads as two: refused, never merged."""
    value = 'a</atem:parameter>\n<atem:parameter name="path">b'
    assert is_ambiguous(value)
    told = read(reply([ToolCall("c", "write", {"path": "x", "content": value})]))
    assert [entry[0] for entry in told] == ["started", "invalid_arguments"]
    assert told[1][2] == {"path": "x", "content": "a"}
