"""Raw argument texts, typed by a tool's schema."""

from typing import Any

import pytest

from engine.calls.arguments import read_arguments, read_value

ROOT: dict[str, Any] = {
    "$defs": {
        "Count": {"type": "integer", "minimum": 1},
        "Loop": {"anyOf": [{"$ref": "#/$defs/Loop"}, {"$ref": "#/$defs/Count"}]},
        "Item": {
            "type": "object",
            "properties": {"text": {"type": "string"}},
            "required": ["text"],
            "additionalProperties": False,
        },
    }
}
OPTIONAL_STRING = {"anyOf": [{"type": "string"}, {"type": "null"}]}
ITEMS = {"type": "array", "items": {"$ref": "#/$defs/Item"}}


@pytest.mark.parametrize(
    ("text", "schema", "value"),
    [
        ('{"a": 1}', {"type": "string"}, '{"a": 1}'),
        ("null", {"type": "string"}, "null"),
        (" 12\n", {"type": "integer"}, 12),
        ("10.0", {"type": "integer"}, 10),
        ("2.5", {"type": "number"}, 2.5),
        ("true", {"type": "boolean"}, True),
        ("False", {"type": "boolean"}, False),
        ("null", {"type": "null"}, None),
        ("null", OPTIONAL_STRING, None),
        ("nullable", OPTIONAL_STRING, "nullable"),
        ("5", {"type": ["string", "integer"]}, 5),
        ("007", {"type": ["string", "integer"]}, "007"),
        ("[1]", {"type": ["string", "array"]}, "[1]"),
        ("[1]", {"type": ["array", "null"]}, [1]),
        ('[{"text": "a"}]', ITEMS, [{"text": "a"}]),
        ("y", {"enum": ["x", "y"]}, "y"),
        ("3", {"$ref": "#/$defs/Count"}, 3),
        ("3", {"$ref": "#/$defs/Loop"}, 3),
        ("any", {"$ref": "#/nowhere"}, "any"),
        ("[1]", {}, [1]),
        ("words", {}, "words"),
    ],
)
def test_a_text_is_read_as_the_schema_types_it(text: str, schema: Any, value: object) -> None:
    read = read_value(text, schema, ROOT)
    assert (read, type(read)) == (value, type(value))


@pytest.mark.parametrize(
    ("text", "schema", "words"),
    [
        ("ten", {"type": "integer"}, 'must be integer, not "ten"'),
        ("1.5", {"type": "integer"}, "must be integer, not 1.5"),
        ("null", {"type": "integer"}, "must be integer"),
        ("true", {"type": "integer"}, "must be integer"),
        ("9" * 6000, {"type": "integer"}, "must be integer"),
        ("1e999", {"type": "number"}, "must be number"),
        ("NaN", {"type": "number"}, "must be number"),
        ("1", {"type": "boolean"}, "must be boolean"),
        ("a, b", {"type": "array"}, "must be array"),
        ("[" * 100_000, {"type": "array"}, "must be array"),
        (r'["\ud800"]', {"type": "array"}, "must be array"),
        ("{}", {"type": "array"}, "must be array"),
        ("[{}]", ITEMS, '[0] needs "text"'),
        ('[{"text": 1}]', ITEMS, "[0] text: must be string, not 1"),
        ('[{"text": "", "x": 1}]', ITEMS, '[0] has no "x"'),
        ("z", {"enum": ["x", "y"]}, 'must be one of "x", "y"'),
        ("0", {"$ref": "#/$defs/Count"}, "must be at least 1"),
        ("abc", {"type": "string", "maxLength": 2}, "must be at most 2 characters"),
    ],
)
def test_a_text_that_does_not_fit_is_explained(text: str, schema: Any, words: str) -> None:
    with pytest.raises(ValueError) as error:
        read_value(text, schema, ROOT)
    assert words in str(error.value)
    assert len(str(error.value)) < 200


def test_every_fault_is_reported_and_what_was_written_is_kept() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n", "path"]}
    arguments, problems = read_arguments([("n", "x"), ("n", "1"), ("m", "2")], schema)
    assert arguments == {"n": "x", "m": "2"}
    assert len(problems) == 4


def test_more_parameters_are_taken_where_the_schema_allows_them() -> None:
    schema = {"type": "object", "properties": {}, "additionalProperties": {"type": "integer"}}
    assert read_arguments([("n", "1")], schema) == ({"n": 1}, [])


def test_a_schema_that_branches_without_end_is_bounded() -> None:
    root: dict[str, Any] = {"$defs": {"0": {"type": "integer"}}}
    for level in range(1, 60):
        below = {"$ref": f"#/$defs/{level - 1}"}
        root["$defs"][str(level)] = {"anyOf": [below, below, below]}
    assert read_value("4", {"$ref": "#/$defs/59"}, root) == 4
    with pytest.raises(ValueError):
        read_value("x", {"$ref": "#/$defs/59"}, root)
