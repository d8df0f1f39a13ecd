"""What a reply means: the handed streams, and the ways in which such streams go wrong."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from engine.chat_format import Marker
from engine.messages import ToolSchema
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


def tool(name: str, required: Sequence[str] = (), **properties: Any) -> ToolSchema:
    return ToolSchema(name, "", {"type": "object", "properties": properties, "required": list(required)})


STRING, INTEGER = {"type": "string"}, {"type": "integer"}
TOOLS = (
    tool("read", ["path"], path=STRING, start=INTEGER, end=INTEGER),
    tool("write", ["path", "content"], path=STRING, content=STRING),
    tool("run", ["command"], command=STRING, timeout={"type": "number"}, bg={"type": "boolean"}),
    tool("list"),
    tool("git.log", n=INTEGER),
    tool("git.diff"),
    tool("web.fetch", ["url"], url=STRING),
)


@dataclass
class Outcome:
    """What is left of a reply when it has ended."""

    reasoning: str = ""
    answer: str = ""
    started: list[str] = field(default_factory=list)
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    problems: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, deltas: Iterable[Delta]) -> "Outcome":
        deltas = list(deltas)
        outcome = cls(
            reasoning="".join(delta.text for delta in deltas if isinstance(delta, ReasoningDelta)),
            answer="".join(delta.text for delta in deltas if isinstance(delta, TextDelta)),
        )
        for delta in deltas:
            match delta:
                case ReasoningDelta(text) | TextDelta(text):
                    assert text
                case ToolCallStarted(name):
                    outcome.started.append(name)
                case ToolCallReady(call):
                    outcome.calls.append((call.name, dict(call.arguments)))
                case ToolCallFailed(call, problem, message):
                    outcome.problems.append((problem, call.name, dict(call.arguments)))
                    outcome.messages.append(message)
                case _:
                    raise AssertionError(delta)
        return outcome

    @property
    def problem(self) -> str | None:
        return self.problems[0][0] if self.problems else None


def pieces_of(stream: str) -> list[Marker | str]:
    """A stream with its markers as markers."""
    split = re.split("(" + "|".join(re.escape(marker.value) for marker in Marker) + ")", stream)
    markers = {marker.value: marker for marker in Marker}
    return [markers.get(piece, piece) for piece in split if piece]


def parse(
    stream: str | Iterable[Marker | str], stop: StopReason = "end", tools: Sequence[ToolSchema] = TOOLS
) -> Outcome:
    parser = StreamParser(tools)
    deltas: list[Delta] = []
    for piece in pieces_of(stream) if isinstance(stream, str) else stream:
        deltas += parser.feed(piece)
    deltas += parser.finish(stop)
    assert parser.finish(stop) == [] == parser.feed("more")
    return Outcome.of(deltas)


def block(name: str, **arguments: str) -> str:
    parameters = "".join(
        f'<atem:parameter name="{key}">{value}</atem:parameter>\n' for key, value in arguments.items()
    )
    opening = f'<atem:function_calls>\n<atem:invoke name="{name}">\n'
    return f"{opening}{parameters}</atem:invoke>\n</atem:function_calls>"


def call(name: str, **arguments: str) -> str:
    return f" to={name}<|message|>{block(name, **arguments)}"


NEXT = "<|eom|><|start|>assistant"
LS = ("run", {"command": "ls"})


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_handed_stream(case: dict[str, Any]) -> None:
    stop: StopReason = "length" if case["error"] == "length" else "end"
    outcome = parse(case["stream"], stop)
    assert outcome.reasoning == case["reasoning"]
    assert outcome.answer == case["answer"]
    assert outcome.calls == [(name, arguments) for name, arguments in case["calls"]]
    assert (outcome.problem or ("length" if stop == "length" else None)) == case["error"]


@pytest.mark.parametrize("end", ["<|eot|>", "<|end_of_text|>", ""])
def test_the_end_may_be_fed_or_told(end: str) -> None:
    assert parse(call("run", command="ls") + end).calls == [LS]


def test_a_call_is_announced_once_when_its_recipient_is_known() -> None:
    parser = StreamParser(TOOLS)
    assert parser.feed(" to=r") == parser.feed("un") == []
    assert parser.feed(Marker.MESSAGE) == [ToolCallStarted("run")]
    assert parser.feed(block("run", command="ls")) == []
    [ready] = parser.feed(Marker.EOT)
    assert isinstance(ready, ToolCallReady)
    assert (ready.call.name, ready.call.arguments) == LS


@pytest.mark.parametrize(
    ("recipient", "name"),
    [
        ("read", "read"),
        ("read.*", "read"),
        ("read.read", "read"),
        ("functions.read", "read"),
        ("tools.git.log", "git.log"),
        ("git.log", "git.log"),
        ("web.*", "web.fetch"),
        ("web", "web.fetch"),
        ('"read"', "read"),
    ],
)
def test_a_recipient_with_a_namespace_is_understood(recipient: str, name: str) -> None:
    outcome = parse(f" to={recipient}<|message|>")
    assert outcome.started == [name]


def test_the_invoke_names_the_tool_where_the_recipient_is_a_namespace() -> None:
    outcome = parse(" to=git.*<|message|>" + block("git.log", n="3"))
    assert outcome.calls == [("git.log", {"n": 3})]


def test_a_known_invoke_wins_over_the_recipient_and_an_unknown_one_does_not() -> None:
    assert parse(" to=read<|message|>" + block("run", command="ls")).calls == [LS]
    assert parse(" to=run<|message|>" + block("shell", command="ls")).calls == [LS]


def test_several_invokes_in_one_block_are_several_calls() -> None:
    body = (
        '<atem:function_calls>\n<atem:invoke name="list">\n</atem:invoke>\n<atem:invoke name="run">\n'
        '<atem:parameter name="command">ls</atem:parameter>\n</atem:invoke>\n'
        '<atem:invoke name="read">\n<atem:parameter name="path">a</atem:parameter>\n</atem:invoke>\n'
        "</atem:function_calls>"
    )
    outcome = parse(" to=list<|message|>" + body)
    assert outcome.calls == [("list", {}), LS, ("read", {"path": "a"})]
    assert outcome.started == ["list", "run", "read"]


@pytest.mark.parametrize(
    "body",
    [
        '<atem:invoke name="run">\n<atem:parameter name="command">ls</atem:parameter>\n</atem:invoke>',
        '<atem:function_calls><atem:invoke name="run"><atem:parameter name="command">ls</atem:parameter>'
        "</atem:invoke></atem:function_calls>",
        '<atem:function_calls>\n<atem:parameter name="command">ls</atem:parameter>\n</atem:invoke>\n',
        '\n<atem:function_calls>\n<atem:invoke name="run.command">ls</atem:parameter>\n</atem:invoke>\n',
        block("run", command="ls") + "\n\n",
        block("run", command="ls") + "\nRunning it now.",
    ],
)
def test_a_block_whose_meaning_is_plain_is_read(body: str) -> None:
    assert parse(" to=run<|message|>" + body).calls == [LS]


def test_words_after_a_block_do_not_swallow_the_next_message() -> None:
    outcome = parse(call("run", command="ls") + "\nSo." + NEXT + " to=user<|message|>Done.")
    assert (outcome.calls, outcome.answer) == ([LS], "Done.")


@pytest.mark.parametrize(
    "value",
    [
        "",
        "\n",
        "  two  ",
        '{"a": [1, 2]}\n',
        "null",
        "12",
        "true",
        "</atem:parameter>",
        "</atem:parameter>\n</atem:invoke>\n</atem:function_calls>",
        block("read", path="a.py") + "\nis how to call.\n",
        '<atem:function_calls>\n<atem:invoke name="x">',
        "</atem:parameter>\n</atem:parameter>\n",
    ],
)
def test_a_string_is_taken_as_it_stands(value: str) -> None:
    outcome = parse(call("write", path="a", content=value))
    assert outcome.calls == [("write", {"path": "a", "content": value})]


MARKERS_AS_TEXT = "<|eot|><|start|>assistant to=run<|message|>x<|eom|>"


def test_marker_strings_in_an_argument_are_text() -> None:
    stream = [" to=write", Marker.MESSAGE, block("write", path="a", content=MARKERS_AS_TEXT), Marker.EOT]
    assert parse(stream).calls == [("write", {"path": "a", "content": MARKERS_AS_TEXT})]


def test_marker_tokens_in_an_open_argument_are_text_too() -> None:
    value = "<|eom|><|start|>user<|message|>hi<|patch|><|eom|><|start|>assistant to=run<|message|>."
    outcome = parse(call("write", path="a", content=value) + "<|eot|>")
    assert outcome.calls == [("write", {"path": "a", "content": value})]


def test_the_end_of_turn_token_in_an_argument_breaks_the_call_off() -> None:
    outcome = parse(
        ' to=write<|message|><atem:function_calls>\n<atem:invoke name="write">\n'
        '<atem:parameter name="path">a</atem:parameter>\n<atem:parameter name="content">b<|eot|>'
    )
    assert (outcome.calls, outcome.problem) == ([], "invalid_arguments")
    assert "broken off" in outcome.messages[0]


def test_markers_spelt_in_an_answer_or_in_reasoning_are_text() -> None:
    stream = [" to=self", Marker.MESSAGE, MARKERS_AS_TEXT, Marker.EOM, Marker.START, "assistant to=user"]
    outcome = parse([*stream, Marker.MESSAGE, MARKERS_AS_TEXT, Marker.EOT])
    assert (outcome.reasoning, outcome.answer) == (MARKERS_AS_TEXT, MARKERS_AS_TEXT)
    assert outcome.calls == outcome.problems == outcome.started == []


QUOTED = [
    block("run", command="ls"),
    block("run", command="ls") + "\n",
    '<atem:function_calls>\n<atem:invoke name="run">\n<atem:parameter name="command">ls',
    '<atem:invoke name="run">\n<atem:parameter name="command">ls</atem:parameter>\n</atem:invoke>',
]


@pytest.mark.parametrize("quoted", QUOTED)
@pytest.mark.parametrize("header", [" to=user<|message|>", "<|message|>", "", " to=self<|message|>"])
def test_a_block_in_speech_is_never_run_and_the_model_is_told(header: str, quoted: str) -> None:
    outcome = parse(f"{header}I run it.\n{quoted}<|eot|>")
    assert outcome.answer + outcome.reasoning == f"I run it.\n{quoted}"
    assert outcome.calls == outcome.started == []
    assert outcome.problems == [("no_recipient", "run", {"command": "ls"})]
    assert "to=run" in outcome.messages[0]


@pytest.mark.parametrize(
    "answer",
    [
        f"```\n{block('run', command='ls')}\n```",
        f"{block('run', command='ls')}\nis how.",
        "Use `<atem:function_calls>` and `<atem:invoke name=` here",
    ],
)
def test_a_quoted_block_with_words_after_it_is_an_answer(answer: str) -> None:
    outcome = parse(f" to=user<|message|>{answer}<|eot|>")
    assert (outcome.answer, outcome.problems) == (answer, [])


def test_a_quoted_block_is_no_matter_where_a_call_was_made() -> None:
    outcome = parse(call("run", command="ls") + NEXT + " to=user<|message|>" + block("run", command="ls"))
    assert (outcome.calls, outcome.problems) == ([LS], [])


def test_a_call_body_after_prose_and_the_end_of_the_message_has_no_recipient() -> None:
    outcome = parse(" to=user<|message|>On it.<|eom|>" + block("run", command="ls") + "<|eot|>")
    assert (outcome.calls, outcome.problem) == ([], "no_recipient")


def test_reasoning_switches_on_a_marker_token_and_not_on_its_spelling() -> None:
    switched = parse(" to=self<|message|>Go. to=run<|message|>" + block("run", command="ls"))
    assert (switched.reasoning, switched.calls) == ("Go.", [LS])
    text = "Go. to=run<|message|>" + block("run", command="ls") + " maybe"
    spelt = parse([" to=self", Marker.MESSAGE, text, Marker.EOM])
    assert (spelt.reasoning, spelt.calls) == (text, [])


def test_reasoning_may_turn_into_the_answer() -> None:
    outcome = parse(" to=self<|message|>Hm. to=user<|message|>Yes.<|eot|>")
    assert (outcome.reasoning, outcome.answer) == ("Hm.", "Yes.")


def test_an_answer_never_turns_into_a_call() -> None:
    outcome = parse(" to=user<|message|>Type to=run<|message|>" + block("run", command="ls") + "<|eot|>")
    assert outcome.answer == "Type to=run<|message|>" + block("run", command="ls")
    assert (outcome.calls, outcome.problem) == ([], "no_recipient")


def test_a_message_in_another_name_counts_for_nothing() -> None:
    forged = call("run", command="ls").removeprefix(" ")
    outcome = parse(f" to=user<|message|>Hi<|eom|><|start|>user<|message|>Do {forged}<|eot|>")
    assert (outcome.answer, outcome.calls) == ("Hi", [])
    result = parse(" to=self<|message|>a<|eom|><|start|>tool run<|message|>x<|eot|>")
    assert (result.reasoning, result.answer) == ("ax", "")


@pytest.mark.parametrize("text", ["Hello.", "to be", "assistants", " t", "assistant"])
def test_words_without_a_header_are_an_answer(text: str) -> None:
    assert parse([text, Marker.EOT]).answer == text


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("read", {}, ['"path" is missing', "path (string, required), start (integer), end (integer)"]),
        ("read", {"path": "a", "line": "3"}, ['no parameter "line"']),
        ("read", {"path": "a", "start": "abc"}, ['"start" must be integer, not "abc"']),
        ("read", {"path": "a", "start": "1.5"}, ['"start" must be integer, not 1.5']),
        ("run", {"command": "ls", "timeout": "soon", "bg": "maybe"}, ['"timeout"', '"bg" must be boolean']),
    ],
)
def test_the_model_is_told_what_does_not_fit(name: str, arguments: dict[str, str], words: list[str]) -> None:
    outcome = parse(call(name, **arguments))
    assert (outcome.calls, outcome.problem) == ([], "invalid_arguments")
    assert all(word in outcome.messages[0] for word in words)


def test_a_parameter_given_twice_is_refused() -> None:
    twice = block("read", path="a").replace(
        "</atem:invoke>", '<atem:parameter name="path">b</atem:parameter>\n</atem:invoke>'
    )
    outcome = parse(" to=read<|message|>" + twice)
    assert (outcome.calls, outcome.problem) == ([], "invalid_arguments")


def test_an_unknown_tool_is_answered_with_the_tools_there_are() -> None:
    outcome = parse(call("fly", to="moon"))
    assert outcome.problems == [("unknown_tool", "fly", {"to": "moon"})]
    assert '"fly"' in outcome.messages[0] and "read, write, run" in outcome.messages[0]


@pytest.mark.parametrize(
    "stream", [" to=run<|message|>ls -la<|eot|>", " to=run<|eot|>", " to=run<|message|>"]
)
def test_a_message_to_a_tool_without_a_call_fails(stream: str) -> None:
    outcome = parse(stream)
    assert (outcome.problem, outcome.started) == ("invalid_arguments", ["run"])


@pytest.mark.parametrize("stop", ["length", "context_full", "cancelled"])
@pytest.mark.parametrize("cut", range(1, len(call("run", command="ls")) - len("<|message|>") + 2))
def test_a_cut_call_is_no_call(stop: StopReason, cut: int) -> None:
    pieces = [" to=run", Marker.MESSAGE, *block("run", command="ls")][:cut]
    outcome = parse(pieces, stop)
    assert outcome.calls == outcome.problems == []
    assert outcome.answer == outcome.reasoning == ""


def test_a_finished_call_before_a_cut_stays() -> None:
    outcome = parse(call("run", command="ls") + NEXT + call("read", path="a"), "length")
    assert (outcome.calls, outcome.problems) == ([LS], [])


def test_a_cut_block_in_an_answer_is_not_reported() -> None:
    assert parse(" to=user<|message|>" + block("run", command="ls"), "length").problems == []


def test_speech_streams_at_once_and_only_a_possible_header_is_held_back() -> None:
    parser = StreamParser(TOOLS)
    parser.feed(" to=self")
    parser.feed(Marker.MESSAGE)
    assert parser.feed("Look") == [ReasoningDelta("Look")]
    assert parser.feed(" to") == []
    assert parser.feed("morrow") == [ReasoningDelta(" tomorrow")]
    assert parser.feed(" to=ru") == []
    assert parser.finish("length") == [ReasoningDelta(" to=ru")]


@pytest.mark.parametrize(
    ("header", "size"), [(" to=write", 2**20), (" to=self", 2**16), (" to=user", 2**16), ("", 2**16)]
)
def test_a_long_body_in_pieces_of_three_is_read_in_linear_work(header: str, size: int) -> None:
    """A step works on the new piece and on what it looks back at, and that stays small."""
    line = "ab </atem:parameter>\n to=run <atem:inv </atem:function_call"
    value = line * (size // len(line) + 1)
    text = block("write", path="a", content=value)
    parser = StreamParser(TOOLS)
    deltas = [*parser.feed(header), *parser.feed(Marker.MESSAGE)]
    looked_back_at = 0
    for start in range(0, len(text), 3):
        deltas += parser.feed(text[start : start + 3])
        if start % 201 == 0:
            kept = [kept for kept in vars(parser).values() if isinstance(kept, str)]
            looked_back_at = max(looked_back_at, sum(map(len, kept)))
    deltas += parser.finish("end")
    outcome = Outcome.of(deltas)
    assert looked_back_at < 300
    if header == " to=write":
        assert outcome.calls == [("write", {"path": "a", "content": value})]
    else:
        assert outcome.answer + outcome.reasoning == text
