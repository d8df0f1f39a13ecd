"""Whether a model file's own chat template writes what Glimmer writes.

A model was trained on one exact spelling of a conversation. A file with another template is another model,
or another version of it, and would answer worse without anybody knowing why.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engine.chat_format import GENERATION_PROMPT, Piece, message_pieces, render_text, system_pieces
from engine.messages import Message, Reasoning, Strength, Text, ToolCall, ToolResult, ToolSchema

_WALL_SECONDS = 10.0
_TEMPLATE_CHARACTERS = 1_000_000
_EXCERPT = 24

_STRENGTH: Strength = "low"
_SYSTEM = "You are Glimmer.\n\nWork in <project> & keep it simple."
_TOOLS = (
    ToolSchema(
        "read",
        'Read a "file" of <project>.',
        {
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "Pfad — 路径"},
                "n": {"type": "integer"},
            },
            "required": ["path"],
        },
    ),
    ToolSchema("git.log", "Show history.", {"type": "object", "properties": {}}),
    ToolSchema("git.diff", "Show changes.", {"type": "object", "properties": {}}),
)
_ARGUMENTS: dict[str, Any] = {
    "path": "a & b.py",
    "n": 3,
    "all": True,
    "none": None,
    "tags": ["x", {"y": 1.5}],
}


def template_mismatch(template: str, bos: str) -> str | None:
    """The first difference in how a sample conversation is written, as a sentence; None when there is none.

    `bos` is the text of the vocabulary's first token. The template is rendered in a process of its own
    with bounded time and memory; one that fails, refuses or does not end yields a sentence as well.
    """
    if len(template) > _TEMPLATE_CHARACTERS:
        return "The model's chat template is too long to be checked."
    theirs, failure = _render_apart(template, bos)
    if failure:
        return f"The model's chat template could not be checked: {_shown(failure)}."
    ours = render_text(_sample_pieces())
    if theirs == ours:
        return None
    at = next((i for i, (a, b) in enumerate(zip(theirs, ours, strict=False)) if a != b), None)
    at = min(len(theirs), len(ours)) if at is None else at
    return (
        f"The model's chat template differs from Glimmer's chat format at character {at}: "
        f"it writes {_excerpt(theirs, at)} where Glimmer writes {_excerpt(ours, at)}."
    )


def _render_apart(template: str, bos: str) -> tuple[str, str]:
    """The template's text of the sample, or why there is none."""
    variables = {
        "messages": _sample_entries(),
        "tools": [_tool_entry(tool) for tool in _TOOLS],
        "bos_token": bos,
        "eos_token": "",
        "reasoning_strength": _STRENGTH,
        "add_generation_prompt": True,
    }
    program = Path(__file__).with_name("template_render.py")
    try:
        done = subprocess.run(
            [sys.executable, "-I", str(program)],
            input=json.dumps({"template": template, "variables": variables}).encode(),
            capture_output=True,
            timeout=_WALL_SECONDS,
            env={name: os.environ[name] for name in ("SYSTEMROOT",) if name in os.environ},
            check=False,
        )
        answer = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        return "", "it did not end in time"
    except OSError as error:
        return "", f"no process could be started for it ({error.strerror})"
    except ValueError:
        return "", "it used up the time or the memory it may use"
    return answer.get("text", ""), answer.get("error", "")


def _sample_messages() -> tuple[Message, ...]:
    call = ToolCall("call0", "read", _ARGUMENTS)
    return (
        Message("user", (Text("Grüße! Look at <a & b>.\n"),)),
        Message("assistant", (Reasoning("I read it first."), call)),
        Message("tool", (ToolResult("call0", "read", "x = '1'\n"),)),
        Message("assistant", (Text("It sets `x`."),)),
        Message("user", (Text("Thanks."),)),
    )


def _sample_pieces() -> Sequence[Piece]:
    pieces = list(system_pieces(_SYSTEM, _TOOLS, _STRENGTH))
    for message in _sample_messages():
        pieces += message_pieces(message)
    return [*pieces, *GENERATION_PROMPT]


def _sample_entries() -> list[dict[str, Any]]:
    """The same conversation as templates take it."""
    return [{"role": "system", "content": _SYSTEM}, *(_entry(message) for message in _sample_messages())]


def _entry(message: Message) -> dict[str, Any]:
    entry: dict[str, Any] = {"role": message.role}
    for part in message.parts:
        match part:
            case Text(text):
                entry["content"] = text
            case Reasoning(text):
                entry["reasoning_content"] = text
            case ToolCall(id=call_id, name=name, arguments=arguments):
                function = {"name": name, "arguments": dict(arguments)}
                entry["tool_calls"] = [{"id": call_id, "type": "function", "function": function}]
            case ToolResult(call_id=call_id, name=name, text=text):
                entry |= {"name": name, "tool_call_id": call_id, "content": text}
            case _:
                raise ValueError(f"the sample holds no {type(part).__name__}")
    return entry


def _tool_entry(tool: ToolSchema) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return {"type": "function", "function": function}


def _excerpt(text: str, at: int) -> str:
    before = "…" if at > _EXCERPT else ""
    after = "…" if at + _EXCERPT < len(text) else ""
    return f'"{before}{_shown(text[max(0, at - _EXCERPT) : at + _EXCERPT])}{after}"'


def _shown(text: str) -> str:
    """Foreign text safe to show: nothing that moves a cursor or hides, at most 300 characters."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text[:300]
    )
