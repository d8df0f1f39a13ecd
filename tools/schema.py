"""Argument models as the short JSON schemas that the model is told."""

from importlib.resources import files
from typing import Any, NamedTuple, cast

from pydantic import BaseModel

from tools.base import Tool

KEPT = ("type", "enum", "items", "properties", "required")


class ToolSpec(NamedTuple):
    """A tool as a model is told of it, without any type of the engine's."""

    name: str
    description: str
    parameters: dict[str, Any]


def tool_schema(tool: Tool) -> ToolSpec:
    """The name, the prose from prompts/NAME.md and the schema of a tool's arguments."""
    prose = files("tools").joinpath("prompts", f"{tool.name}.md").read_text(encoding="utf-8")
    return ToolSpec(tool.name, prose.strip(), parameters_of(tool.arguments))


def parameters_of(model: type[BaseModel]) -> dict[str, Any]:
    """The schema of an argument model: no titles, defaults or nulls, keys as declared."""
    full = model.model_json_schema()
    return _compact(full, full.get("$defs", {}))


def _compact(node: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in node:
        return _compact(definitions[node["$ref"].rpartition("/")[2]], definitions)
    if "anyOf" in node:
        (only,) = [choice for choice in node["anyOf"] if choice.get("type") != "null"]
        return _compact(only, definitions)
    short: dict[str, Any] = {}
    for key in KEPT:
        if key not in node:
            continue
        value = node[key]
        if key == "properties":
            properties = cast("dict[str, dict[str, Any]]", value)
            value = {name: _compact(inner, definitions) for name, inner in properties.items()}
        elif key == "items":
            value = _compact(value, definitions)
        short[key] = value
    return short
