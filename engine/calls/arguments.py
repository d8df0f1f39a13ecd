"""The arguments of a tool call: raw text in, values typed by the tool's JSON schema out.

A parameter that the schema calls a string is taken as it stands and never decoded. A parameter that may be
a string or a number, a boolean or null is the latter when it is spelt exactly so; one that may be a string
or a list or an object stays a string.
"""

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

from engine.calls.atem import to_json
from engine.calls.schema import Schema, clip, fault_of, is_number, types_of

_CONSTANTS = {"null": None, "true": True, "false": False}


def read_arguments(raw: Sequence[tuple[str, str]], schema: Schema) -> tuple[dict[str, Any], list[str]]:
    """The typed arguments, and a sentence for each thing wrong with them (empty when they fit).

    A value that does not fit is kept as it was written.
    """
    properties: Schema = schema.get("properties", {})
    extra = schema.get("additionalProperties", False)
    arguments: dict[str, Any] = {}
    problems: list[str] = []
    for key, text in raw:
        if key in arguments:
            problems.append(f'parameter "{clip(key)}" is given twice.')
            continue
        arguments[key] = text
        if key not in properties and extra is False:
            problems.append(f'there is no parameter "{clip(key)}".')
            continue
        try:
            arguments[key] = read_value(text, properties.get(key, extra), schema)
        except ValueError as error:
            problems.append(f'parameter "{clip(key)}" {error}.')
    for key in schema.get("required", ()):
        if key not in arguments:
            problems.append(f'the required parameter "{key}" is missing.')
    return arguments, problems


def read_value(text: str, schema: Any, root: Schema) -> Any:
    """One raw value as the schema types it. Raises ValueError with words that follow the parameter's name."""
    types = types_of(schema, root)
    reason = ""
    for value in _readings(text, types):
        fault = fault_of(value, schema, root)
        if fault is None:
            return value
        reason = fault
    raise ValueError(reason or f"must be {' or '.join(types)}, not {json.dumps(clip(text))}")


def describe_parameters(schema: Schema) -> str:
    """The parameters in one line, for the model: `path (string, required), start (integer)`."""
    required = schema.get("required", ())
    described = [
        f"{name} ({' or '.join(types_of(part, schema)) or 'any'}{', required' if name in required else ''})"
        for name, part in schema.get("properties", {}).items()
    ]
    return ", ".join(described) or "none"


def _readings(text: str, types: Sequence[str]) -> Iterator[Any]:
    """What a raw text can mean, most specific first."""
    if not types:
        yield from _decoded(text.strip())
        yield text
        return
    literal = text if "string" in types else text.strip()
    word = literal if "string" in types else literal.lower()
    if word in _CONSTANTS and ("null" if word == "null" else "boolean") in types:
        yield _CONSTANTS[word]
    if "integer" in types or "number" in types:
        for value in _decoded(literal):
            if is_number(value):
                whole = isinstance(value, float) and value.is_integer() and "number" not in types
                yield int(value) if whole else value
    if "string" in types:
        yield text
    elif "array" in types or "object" in types:
        yield from (value for value in _decoded(literal) if isinstance(value, list | dict))


def _decoded(text: str) -> Iterator[Any]:
    """The value of a JSON text; nothing when it is none, or holds what JSON cannot."""
    try:
        value = json.loads(text, parse_constant=_finite, parse_float=_finite)
        if "\\u" in text:
            to_json(value).encode()
    except (ValueError, RecursionError):
        return
    yield value


def _finite(number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise ValueError(f"{number} is out of range")
    return value
