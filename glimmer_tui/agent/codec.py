"""Messages to JSON values and back, without loss."""

import base64
import binascii
from collections.abc import Mapping
from typing import Any, cast, get_args

from engine.messages import Image, Message, Part, Reasoning, Role, Text, ToolCall, ToolResult

_ROLES: tuple[str, ...] = get_args(Role)


def message_to_json(message: Message) -> dict[str, Any]:
    """A value `json.dumps` takes."""
    return {"id": message.id, "role": message.role, "parts": [_part_to_json(part) for part in message.parts]}


def message_from_json(data: object) -> Message:
    """The message again. Raises ValueError for anything `message_to_json` does not write."""
    match _mapping(data):
        case {"id": str(id_), "role": str(role), "parts": parts} if role in _ROLES:
            read = tuple(_part_from_json(part) for part in _list(parts))
            return Message(cast("Role", role), read, id_)
        case _:
            raise ValueError("not a message")


def _part_to_json(part: Part) -> dict[str, Any]:
    match part:
        case Text(text):
            return {"type": "text", "text": text}
        case Reasoning(text):
            return {"type": "reasoning", "text": text}
        case Image(data, width, height):
            encoded = base64.b64encode(data).decode("ascii")
            return {"type": "image", "data": encoded, "width": width, "height": height}
        case ToolCall(id_, name, arguments):
            return {"type": "call", "id": id_, "name": name, "arguments": arguments}
        case ToolResult(call_id, name, text, is_error):
            return {"type": "result", "call_id": call_id, "name": name, "text": text, "error": is_error}


def _part_from_json(data: object) -> Part:
    match _mapping(data):
        case {"type": "text", "text": str(text)}:
            return Text(text)
        case {"type": "reasoning", "text": str(text)}:
            return Reasoning(text)
        case {"type": "image", "data": str(encoded), "width": int(width), "height": int(height)}:
            return Image(_decoded(encoded), width, height)
        case {"type": "call", "id": str(id_), "name": str(name), "arguments": arguments}:
            return ToolCall(id_, name, _mapping(arguments))
        case {
            "type": "result",
            "call_id": str(call_id),
            "name": str(name),
            "text": str(text),
            "error": bool(is_error),
        }:
            return ToolResult(call_id, name, text, is_error)
        case _:
            raise ValueError("not a part of a message")


def _list(data: object) -> list[object]:
    if not isinstance(data, list):
        raise ValueError("not a list")
    return cast("list[object]", data)


def _mapping(data: object) -> Mapping[str, Any]:
    if not isinstance(data, dict):
        raise ValueError("not an object")
    return cast("Mapping[str, Any]", data)


def _decoded(encoded: str) -> bytes:
    try:
        return base64.b64decode(encoded, validate=True)
    except binascii.Error as problem:
        raise ValueError("not an image") from problem
