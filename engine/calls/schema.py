"""The part of JSON schema that tools are described with: types, choices, containers, bounds and references.

A schema may come from a foreign server: it may be recursive or point nowhere, and work on it stays bounded.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

Schema = Mapping[str, Any]

_ANYTHING: Schema = {}
_DEPTH = 64
_TYPES = ("null", "boolean", "integer", "number", "array", "object", "string")
_KINDS: Mapping[type, str] = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    float: "number",
    list: "array",
    str: "string",
}


def clip(text: str, limit: int = 80) -> str:
    """A text of the model short enough for a message about it."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def is_number(value: object) -> bool:
    """Whether a value is a JSON number; True and False are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _resolve(schema: Any, root: Schema) -> Schema:
    """The schema itself, or what its `$ref` points to; one that cannot be followed allows everything."""
    for _ in range(_DEPTH):
        if not isinstance(schema, Mapping):
            return _ANYTHING
        schema = cast("Schema", schema)
        pointer = schema.get("$ref")
        if not isinstance(pointer, str):
            return schema
        target: Any = root
        for step in pointer.removeprefix("#").strip("/").split("/"):
            target = cast("Schema", target).get(step) if isinstance(target, Mapping) else None
        schema = target
    return _ANYTHING


def types_of(schema: Any, root: Schema) -> tuple[str, ...]:
    """The type names a schema allows in a fixed order; empty when it does not say."""
    found = _found_types(schema, root, set())
    return tuple(name for name in _TYPES if found and name in found)


def _found_types(schema: Any, root: Schema, seen: set[int]) -> set[str] | None:
    """The type names, or None for any. A schema met before adds nothing, so that it may be recursive."""
    schema = _resolve(schema, root)
    if id(schema) in seen:
        return set()
    seen.add(id(schema))
    found: set[str] = set()
    if declared := schema.get("type"):
        found.update([declared] if isinstance(declared, str) else declared)
    elif "enum" in schema or "const" in schema:
        found.update(_type_of(value) for value in schema.get("enum", [schema.get("const")]))
    for key in ("anyOf", "oneOf", "allOf"):
        for option in schema.get(key, ()):
            inner = _found_types(option, root, seen)
            if inner is None and key != "allOf":
                return None
            found.update(inner or ())
    return found or None


def _type_of(value: object) -> str:
    return _KINDS.get(type(value), "object")


def fault_of(value: Any, schema: Any, root: Schema, depth: int = 0) -> str | None:
    """Why a value does not fit a schema, or None. Knows types, choices, containers and bounds."""
    if depth > _DEPTH:
        return "is nested too deeply"
    return _checked(value, schema, root, depth, {})


def _checked(value: Any, schema: Any, root: Schema, depth: int, known: dict[int, str | None]) -> str | None:
    """`known` holds what was found of this value, by schema, so that no schema is tried on it twice."""
    schema = _resolve(schema, root)
    if id(schema) in known:
        return known[id(schema)]
    known[id(schema)] = None
    fault = (
        _type_fault(value, schema)
        or _choice_fault(value, schema, root, depth, known)
        or _bounds_fault(value, schema)
        or _inner_fault(value, schema, root, depth)
    )
    known[id(schema)] = fault
    return fault


def _type_fault(value: Any, schema: Schema) -> str | None:
    declared = schema.get("type")
    if declared and not _has_type(value, [declared] if isinstance(declared, str) else declared):
        names = declared if isinstance(declared, str) else " or ".join(declared)
        return f"must be {names}, not {json.dumps(value, ensure_ascii=False)[:80]}"
    return None


def _choice_fault(
    value: Any, schema: Schema, root: Schema, depth: int, known: dict[int, str | None]
) -> str | None:
    choices = [schema["const"]] if "const" in schema else schema.get("enum")
    if choices is not None and not any(_same(value, choice) for choice in choices):
        return f"must be one of {', '.join(json.dumps(choice, ensure_ascii=False) for choice in choices)}"
    for key in ("anyOf", "oneOf"):
        faults = [_checked(value, option, root, depth, known) for option in schema.get(key, ())]
        if faults and None not in faults:
            return faults[0]
    for option in schema.get("allOf", ()):
        if fault := _checked(value, option, root, depth, known):
            return fault
    return None


def _has_type(value: object, names: Sequence[str]) -> bool:
    kind = _type_of(value)
    if kind in names or (kind == "integer" and "number" in names):
        return True
    return isinstance(value, float) and value.is_integer() and "integer" in names


def _same(value: object, choice: object) -> bool:
    return value == choice and isinstance(value, bool) == isinstance(choice, bool)


def _bounds_fault(value: Any, schema: Schema) -> str | None:
    if is_number(value):
        size, low, high = value, schema.get("minimum"), schema.get("maximum")
        if (above := schema.get("exclusiveMinimum")) is not None and value <= above:
            return f"must be more than {above}"
        if (below := schema.get("exclusiveMaximum")) is not None and value >= below:
            return f"must be less than {below}"
        unit = ""
    elif isinstance(value, str):
        size, low, high = len(value), schema.get("minLength"), schema.get("maxLength")
        unit = " characters"
    elif isinstance(value, list):
        size, low, high = len(cast("list[Any]", value)), schema.get("minItems"), schema.get("maxItems")
        unit = " items"
    else:
        return None
    if low is not None and size < low:
        return f"must be at least {low}{unit}"
    if high is not None and size > high:
        return f"must be at most {high}{unit}"
    return None


def _inner_fault(value: Any, schema: Schema, root: Schema, depth: int) -> str | None:
    """The first fault inside a list or an object."""
    if isinstance(value, dict):
        return _object_fault(cast("dict[str, Any]", value), schema, root, depth)
    if isinstance(value, list):
        for index, item in enumerate(cast("list[Any]", value)):
            if fault := fault_of(item, schema.get("items", {}), root, depth + 1):
                return f"[{index}] {fault}"
    return None


def _object_fault(entries: dict[str, Any], schema: Schema, root: Schema, depth: int) -> str | None:
    properties: Schema = schema.get("properties", {})
    extra = schema.get("additionalProperties", True)
    for key in schema.get("required", ()):
        if key not in entries:
            return f'needs "{key}"'
    for key, item in entries.items():
        if key not in properties and extra is False:
            return f'has no "{clip(key)}"'
        if fault := fault_of(item, properties.get(key, extra), root, depth + 1):
            return f"{clip(key)}: {fault}"
    return None
