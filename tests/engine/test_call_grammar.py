"""What a tool's grammar lets through is a fitting call, and every fitting call comes through."""

import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from engine.calls.atem import call_block, parse_block
from engine.calls.check import CallCheck
from engine.calls.grammar import call_grammar, can_be_called
from engine.calls.grammar_state import GrammarState
from engine.errors import EngineError
from engine.gguf.model import read_model_file
from engine.llama import Model
from engine.messages import ToolSchema
from engine.protocol import ToolCallFailed, ToolCallReady
from engine.vocabulary import Vocabulary
from nano.prefix import schemas
from tests.engine.random_writing import TAGS, Writer

NANO = Path(__file__).parents[2] / "glimmer_tui" / "models" / "glimmer-nano.gguf"
STRING, INTEGER, NUMBER = {"type": "string"}, {"type": "integer"}, {"type": "number"}
BOOLEAN, NULL = {"type": "boolean"}, {"type": "null"}
TASK = {
    "type": "object",
    "properties": {"text": STRING, "done": BOOLEAN, "odd key": INTEGER},
    "required": ["text"],
}
POINT = {
    "type": "object",
    "properties": {"x": NUMBER, "y": NUMBER, "tag": {"enum": ["a", "b", None]}},
    "required": ["x", "y"],
    "additionalProperties": False,
}
MANY = {name: STRING if place % 2 else INTEGER for place, name in enumerate("abcdefgh")}
READ_AS_END = re.compile(
    r"</atem:parameter>[\s\x80-\U0010ffff]*"
    r"(</atem:invoke>[\s\x80-\U0010ffff]*(</atem:function_calls>[\s\x80-\U0010ffff]*)?)?<a"
)
ENDS_TOO_EARLY = re.compile(r"</atem:parameter>\n(</|\Z)")


def deep(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = INTEGER
    for _ in range(levels):
        schema = {"type": "array", "items": schema}
    return schema


def tool(name: str, required: Sequence[str] = (), **properties: Any) -> ToolSchema:
    return ToolSchema(name, "", {"type": "object", "properties": properties, "required": list(required)})


PLAIN = (
    tool("none"),
    tool("one", ["s"], s=STRING),
    tool("change", ["path", "old", "new"], path=STRING, old=STRING, new=STRING, all=BOOLEAN),
    tool("numbers", ["i"], i=INTEGER, n=NUMBER, u={"type": ["number", "null"]}),
    tool("words", ["w"], w={"enum": ["red", "green", 3, 1.5, True, None]}, c={"const": "only"}),
    tool("lists", ["a"], a={"type": "array", "items": INTEGER}, b={"type": "array", "items": STRING}),
    tool("tasks", ["items"], items={"type": "array", "items": TASK}),
    tool("points", [], p=POINT, q={"type": "array", "items": POINT}),
    tool("open", [], o={"type": "object"}, l={"type": "array"}, any={}),
    tool("unions", ["u"], u={"anyOf": [INTEGER, {"type": "array", "items": BOOLEAN}, NULL]}),
    tool("choice", ["u"], u={"oneOf": [{"enum": ["auto"]}, INTEGER]}),
    tool("optional", [], s={"anyOf": [STRING, NULL]}, i={"anyOf": [INTEGER, NULL]}),
    tool("wrapped", ["i"], i={"allOf": [INTEGER]}),
    ToolSchema("many", "", {"properties": MANY, "required": ["b", "g"]}),
    ToolSchema("extra", "", {"required": ["k"], "additionalProperties": INTEGER}),
)
HOSTILE = (
    tool("a]b[c", **{"]": STRING, "[^": INTEGER, "\\": BOOLEAN, "::=": STRING, "#": NULL}),
    tool("wörter→😀", ["schlüssel"], schlüssel=INTEGER, **{"💥": {"enum": ["→", "é", "</atem:parameter>"]}}),
    tool("spaces", **{"": STRING, " ": INTEGER, "a b": BOOLEAN, "\t": NULL, '"': STRING, "\n": STRING}),
    tool("tags", **{"</atem:parameter>": STRING, "<atem:parameter name=": INTEGER}),
    tool("keys", o={"type": "object", "properties": {'"': INTEGER, "\\": STRING, "é": NULL, "": BOOLEAN}}),
    tool("unicode", o={"type": "object", "properties": {"é": NULL, "": BOOLEAN, "→": INTEGER, "e": STRING}}),
    tool("deep", d=deep(40)),
    tool("deeper", d=deep(300)),
    tool("wide", w={"enum": [f"word {number}" for number in range(400)]}),
    tool("choices", w={"enum": [f"word {number}" for number in range(150)]}),
    tool("empty", f={"anyOf": []}, g={"type": []}),
    tool("odd", o={"properties": {}, "type": "object"}, i={"items": [INTEGER], "type": "array"}),
    tool("nan", n={"enum": [float("nan"), float("inf"), "\0", "\ud800", 1]}),
    tool("big", o={"type": "object", "properties": MANY, "required": list(MANY)}),
    tool("wide-object", o={"type": "object", "properties": MANY, "required": ["a", "h"]}),
    tool("other", o={"type": "object", "properties": {"a": INTEGER}, "additionalProperties": INTEGER}),
    tool("functions.x.y", s=STRING),
    ToolSchema("bare", "", {}),
    ToolSchema(
        "loops",
        "",
        {
            "$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}},
            "properties": {"n": {"$ref": "#/$defs/Node"}, "m": {"$ref": "#"}, "p": {"$ref": 3}},
        },
    ),
)
UNSPELLABLE = (
    tool("a b"),
    tool(""),
    tool('say"'),
    tool("self"),
    tool("user"),
    tool("<tag>"),
    tool("x" * 129),
    tool("nul\0"),
    tool("half\ud800"),
    tool("quoted", ['"'], **{'"': STRING}),
    tool("missing", ["nowhere"]),
)


@pytest.fixture(scope="module")
def vocabulary() -> Iterator[Vocabulary]:
    model = Model(read_model_file(NANO), 0, None)
    yield model.vocabulary
    model.close()


@pytest.fixture(scope="module")
def grammars(vocabulary: Vocabulary) -> Iterator[dict[str, GrammarState]]:
    made = {
        each.name: GrammarState(vocabulary, call_grammar(each)) for each in (*PLAIN, *HOSTILE, *schemas())
    }
    yield made
    for grammar in made.values():
        grammar.close()


def refused_at(grammar: GrammarState, vocabulary: Vocabulary, text: str) -> str | None:
    """What was written when the first token was refused, that token included; None when none was."""
    grammar.restart()
    written = b""
    for token in vocabulary.tokenize(text):
        written += vocabulary.piece(token)
        if not grammar.allows(token):
            return written.decode("utf-8", "replace")
        grammar.accept(token)
    return None


def checked(tool: ToolSchema, body: str) -> ToolCallReady | ToolCallFailed | None:
    """What a body means; None when it is not one call."""
    invokes = parse_block(body)
    return CallCheck([tool]).check(invokes[0], tool.name) if len(invokes) == 1 else None


def names_in(schema: Any) -> set[str]:
    """All words of a schema that a writer could use."""
    match schema:
        case dict():
            return {str(key) for key in schema} | {
                name for value in schema.values() for name in names_in(value)
            }
        case list():
            return set[str]().union(*map(names_in, schema))
        case str():
            return {schema}
        case _:
            return set()


texts = st.lists(
    st.sampled_from(TAGS) | st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6)
)
strings = texts.map("".join)
numbers = st.integers(-(10**30), 10**30) | st.floats(-1e307, 1e307)
plain_json = st.recursive(
    st.none() | st.booleans() | numbers | strings,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(strings, inner, max_size=3),
    max_leaves=8,
)


SCALARS = {
    "string": strings,
    "integer": st.integers(-(10**30), 10**30),
    "number": numbers,
    "boolean": st.booleans(),
    "null": st.none(),
    "array": st.lists(plain_json, max_size=3),
    "object": st.dictionaries(strings, plain_json, max_size=3),
}


def values(schema: Any) -> st.SearchStrategy[Any]:
    """Values that a schema of PLAIN allows."""
    match schema:
        case {"anyOf": options} | {"oneOf": options} | {"allOf": options}:
            found = st.one_of(*map(values, options))
        case {"enum": choices}:
            found = st.sampled_from(choices)
        case {"const": choice}:
            found = st.just(choice)
        case {"type": "object", "properties": known}:
            parts = {key: values(part) for key, part in known.items()}
            required = {key: parts.pop(key) for key in schema["required"]}
            found = st.fixed_dictionaries(required, optional=parts)
        case {"type": "array", "items": items}:
            found = st.lists(values(items), max_size=3)
        case {"type": list() as types}:
            found = st.one_of(*map(SCALARS.__getitem__, types))
        case {"type": name}:
            found = SCALARS[name]
        case _:
            found = strings
    return found


@st.composite
def calls(draw: st.DrawFn) -> tuple[ToolSchema, dict[str, Any]]:
    """A tool and arguments that fit it, in any order where the order is free."""
    each = draw(st.sampled_from([each for each in (*PLAIN, *schemas()) if each.name != "extra"]))
    known = each.parameters["properties"]
    keys = [key for key in known if key in each.parameters.get("required", ()) or draw(st.booleans())]
    if len(known) <= 6:
        keys = draw(st.permutations(keys))
    return each, {key: draw(values(known[key])) for key in keys}


@given(calls())
@settings(max_examples=50, deadline=None)
def test_every_fitting_call_comes_through(
    grammars: dict[str, GrammarState], vocabulary: Vocabulary, call: tuple[ToolSchema, dict[str, Any]]
) -> None:
    each, arguments = call
    body = call_block(each.name, arguments)
    outcome = checked(each, body)
    assume(isinstance(outcome, ToolCallReady) and dict(outcome.call.arguments) == arguments)
    due = set(each.parameters.get("required", ()))
    for key, text in parse_block(body)[0].parameters:
        due.discard(key)
        assume(not READ_AS_END.search(text) and not (due and ENDS_TOO_EARLY.search(text)))
    grammar = grammars[each.name]
    assert refused_at(grammar, vocabulary, body) is None
    assert grammar.is_complete


@pytest.mark.parametrize("each", [*PLAIN, *HOSTILE, *schemas()], ids=lambda each: each.name)
def test_whatever_comes_through_is_a_fitting_call(
    each: ToolSchema, grammars: dict[str, GrammarState], vocabulary: Vocabulary
) -> None:
    grammar = grammars[each.name]
    everything = np.arange(vocabulary.size)
    openings = [f'<atem:parameter name="{key}">' for key in each.parameters.get("properties", {})]
    steps = [*openings, *(f"</atem:parameter>\n{opening}" for opening in openings)] * 2
    completed = 0
    for seed in range(8):
        writer = Writer(vocabulary, seed, [*sorted(names_in(each.parameters)), *steps])
        grammar.restart()
        tokens: list[int] = []
        for _ in range(120):
            tokens += writer.write(grammar, lambda: grammar.allowed(everything).tolist())
            if grammar.is_complete and writer.chance(0.5):
                break
        if not grammar.is_complete:
            continue
        completed += 1
        body = b"".join(map(vocabulary.piece, tokens)).decode("utf-8", "replace")
        outcome = checked(each, body)
        assert isinstance(outcome, ToolCallReady), (body, outcome)
        assert outcome.call.name == each.name
    assert completed


OPEN = '<atem:function_calls>\n<atem:invoke name="NAME">\n'
NEXT = "</atem:parameter>\n"
END = "</atem:invoke>\n</atem:function_calls>"


@pytest.mark.parametrize(
    ("name", "body", "refused"),
    [
        ("read", '<atem:function_calls>\n<atem:invoke name="write">', 'name="w'),
        ("read", "read the file", "r"),
        ("read", f"{OPEN}{END}", "</"),
        ("read", f'{OPEN}<atem:parameter name="file">', 'name="f'),
        ("read", f'{OPEN}<atem:parameter name="start">five', 'name="start">f'),
        ("read", f'{OPEN}<atem:parameter name="start">5.5', 'name="start">5.'),
        ("read", f'{OPEN}<atem:parameter name="start">5{NEXT}{END}', "</atem:parameter>\n</"),
        ("edit", f'{OPEN}<atem:parameter name="all">True', 'name="all">T'),
        ("edit", f'{OPEN}<atem:parameter name="path">a{NEXT}{END}', "</atem:parameter>\n</"),
        (
            "edit",
            f'{OPEN}<atem:parameter name="path">a{NEXT}<atem:parameter name="to">',
            '\n<atem:parameter name="t',
        ),
        (
            "edit",
            f'{OPEN}<atem:parameter name="path">a{NEXT}<atem:parameter name="path">',
            '\n<atem:parameter name="p',
        ),
        ("plan", f'{OPEN}<atem:parameter name="items">todo', 'name="items">t'),
        ("plan", f'{OPEN}<atem:parameter name="items">[{{"text": 1', '"text": 1'),
        ("plan", f'{OPEN}<atem:parameter name="items">[{{"text": "a"}}', '"text": "a"}'),
        ("plan", f'{OPEN}<atem:parameter name="items">[{{"text": "a", "text"', '"text": "a", "text"'),
        ("plan", f'{OPEN}<atem:parameter name="items">[]{NEXT}{END}x', END + "x"),
        ("diff", f'{OPEN}<atem:parameter name="path">', "<atem"),
        ("words", f'{OPEN}<atem:parameter name="w">blue', 'name="w">b'),
        ("points", f'{OPEN}<atem:parameter name="p">{{"z"', '{"z'),
    ],
)
def test_a_wrong_call_is_refused_at_its_first_wrong_token(
    grammars: dict[str, GrammarState], vocabulary: Vocabulary, name: str, body: str, refused: str
) -> None:
    written = refused_at(grammars[name], vocabulary, body.replace("NAME", name))
    assert written is not None
    assert written.startswith(body.replace("NAME", name)[: len(written)])
    assert refused in written[-len(refused) - 8 :]


@pytest.mark.parametrize("each", UNSPELLABLE, ids=lambda each: ascii(each.name[:20]))
def test_a_call_that_the_format_cannot_spell_has_no_grammar(each: ToolSchema) -> None:
    assert not can_be_called(each)
    with pytest.raises(ValueError, match="cannot spell"):
        call_grammar(each)


def test_a_long_text_of_tags_stays_cheap(grammars: dict[str, GrammarState], vocabulary: Vocabulary) -> None:
    text = "<<</atem:parameter>é\n</atem:parameter></atem:invoke>\n</atem:function_calls>\u2028→ x < y " * 250
    body = call_block("write", {"path": "a", "content": text})
    assert refused_at(grammars["write"], vocabulary, body) is None
    assert grammars["write"].is_complete


def test_a_grammar_that_is_refused_is_reported(
    vocabulary: Vocabulary, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(EngineError, match="could not be constrained"):
        GrammarState(vocabulary, "root ::= (")
    capfd.readouterr()


def test_a_closed_grammar_says_so(vocabulary: Vocabulary) -> None:
    with closing(GrammarState(vocabulary, call_grammar(PLAIN[0]))) as grammar:
        assert not grammar.is_complete
    grammar.close()
    with pytest.raises(EngineError, match="closed"):
        grammar.allows(20)
