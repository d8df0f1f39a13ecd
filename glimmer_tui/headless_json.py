"""Events as JSON values: the stable form that scripts read."""

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, cast

from engine.messages import Image
from glimmer_tui.agent.events import Event
from tools.base import CommandLine, FileChange, Picture

_WORD_START = re.compile(r"(?<!^)(?=[A-Z])")


def event_to_json(event: Event) -> dict[str, Any]:
    """The event's fields behind its `type`, the class name in snake_case."""
    return _tagged(event)


def type_name(cls: type) -> str:
    """`ToolFinished` as `tool_finished`."""
    return _WORD_START.sub("_", cls.__name__).lower()


def _tagged(value: object) -> dict[str, Any]:
    return {"type": type_name(type(value)), **_fields(value)}


def _fields(value: object) -> dict[str, Any]:
    return {field.name: _plain(getattr(value, field.name)) for field in fields(cast("Any", value))}


def _plain(value: object) -> Any:
    match value:
        case None | bool() | int() | float() | str():
            return value
        case FileChange() | CommandLine():
            return _tagged(value)
        case Image() | Picture():
            return {"width": value.width, "height": value.height}
        case Mapping():
            return {str(key): _plain(inner) for key, inner in cast("Mapping[object, object]", value).items()}
        case list() | tuple():
            return [_plain(inner) for inner in cast("tuple[object, ...]", value)]
        case _:
            return _fields(value) if is_dataclass(value) else str(value)
