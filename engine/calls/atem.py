"""ATEM blocks, the form in which the model writes tool calls, both ways.

    <atem:function_calls>
    <atem:invoke name="TOOL">
    <atem:parameter name="KEY">VALUE</atem:parameter>
    </atem:invoke>
    </atem:function_calls>

A value is raw: nothing in it is escaped, so it may hold the block's own tags. It therefore ends at the
first closing tag that is followed by another parameter or another invoke, and the last value of a block
ends at the last closing tag that is followed by the end of its invoke. Only a value that spells a
closing tag together with such a next opening tag can be read wrongly.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

BLOCK_OPEN = "<atem:function_calls>"
BLOCK_CLOSE = "</atem:function_calls>"
INVOKE_CLOSE = "</atem:invoke>"
PARAMETER_CLOSE = "</atem:parameter>"
CLOSING_TAGS = (PARAMETER_CLOSE, INVOKE_CLOSE, BLOCK_CLOSE)
INVOKE_START = "<atem:invoke"

# Whitespace is matched possessively, so that a text of tags and blanks cannot make a search backtrack.
_INVOKE = r'<atem:invoke\s++name="(?P<invoke>[^"\n]{0,256})">'
_PARAMETER = r'<atem:parameter\s++name="(?P<parameter>[^"\n]{0,256})">'
_NEXT_INVOKE = rf"\s*+(?:{BLOCK_CLOSE}\s*+)?+(?:{BLOCK_OPEN}\s*+)?+{_INVOKE}"
_FIRST_TAG = re.compile(rf"{_INVOKE}|{_PARAMETER}")
_PARAMETER_OPEN = re.compile(_PARAMETER)
_PARAMETER_NEXT = re.compile(rf"\s*+{_PARAMETER}")
_EMPTY_INVOKE = re.compile(rf"\s*+{INVOKE_CLOSE}")
_INVOKE_NEXT = re.compile(_NEXT_INVOKE)
_VALUE_END = re.compile(rf"{PARAMETER_CLOSE}\s*+(?:{_PARAMETER}|{INVOKE_CLOSE}{_NEXT_INVOKE})")
_LAST_VALUE_END = re.compile(rf"{PARAMETER_CLOSE}\s*+{INVOKE_CLOSE}")


@dataclass(frozen=True, slots=True)
class Invoke:
    """One call as it was written: raw values in order, and whether its end was reached."""

    name: str
    parameters: tuple[tuple[str, str], ...]
    closed: bool


def call_block(name: str, arguments: Mapping[str, Any]) -> str:
    """The body of a tool call: strings raw, booleans and null as words, lists and objects as JSON."""
    parameters = "".join(
        f'<atem:parameter name="{key}">{_argument(value)}{PARAMETER_CLOSE}\n'
        for key, value in arguments.items()
    )
    return f'{BLOCK_OPEN}\n<atem:invoke name="{name}">\n{parameters}{INVOKE_CLOSE}\n{BLOCK_CLOSE}'


def to_json(value: Any) -> str:
    """JSON as the chat template spells it: on one line, `{"a": 1}`, keys in order, no escapes added."""
    return json.dumps(value, ensure_ascii=False, default=_plain)


def parse_block(body: str) -> list[Invoke]:
    """The calls written in a whole message body, in order; empty when there is no trace of a call.

    Forgiving where the meaning is plain: the outer tags may be missing, a first parameter without an
    invoke belongs to an invoke named "", and `name="TOOL.KEY">VALUE` is an invoke whose end and first
    parameter's beginning were swallowed. One pass, in time linear in the body.
    """
    invokes: list[Invoke] = []
    tag = _FIRST_TAG.search(body)
    while tag:
        invoke, tag = _read_invoke(body, tag)
        invokes.append(invoke)
    return invokes


def ends_on_block(text: str) -> bool:
    """Whether a text ends with a call block, whole or broken off, and says nothing after it."""
    start = text.rfind(INVOKE_START)
    if start < 0:
        return False
    end = text.rfind(INVOKE_CLOSE, start)
    if end < 0:
        return text[:start].rstrip().endswith(BLOCK_OPEN)
    return text[end + len(INVOKE_CLOSE) :].strip() in ("", BLOCK_CLOSE)


def _read_invoke(body: str, tag: re.Match[str]) -> tuple[Invoke, re.Match[str] | None]:
    """The invoke that `tag` opens, and the tag that opens the next one."""
    name, key, at = tag["invoke"] or "", tag.groupdict().get("parameter"), tag.end()
    if key is None:
        if empty := _EMPTY_INVOKE.match(body, at):
            return Invoke(name, (), closed=True), _INVOKE_NEXT.match(body, empty.end())
        if opened := _PARAMETER_NEXT.match(body, at):
            key, at = opened["parameter"], opened.end()
        elif "." in name:
            name, _, key = name.rpartition(".")
        elif opened := _PARAMETER_OPEN.search(body, at):
            key, at = opened["parameter"], opened.end()
        else:
            return Invoke(name, (), closed=False), None
    parameters: list[tuple[str, str]] = []
    while end := _VALUE_END.search(body, at):
        parameters.append((key, body[at : end.start()]))
        if end["parameter"] is None:
            return Invoke(name, tuple(parameters), closed=True), end
        key, at = end["parameter"], end.end()
    last = _last_value_end(body, at)
    if last is None:
        parameters.append((key, body[at:].removesuffix(PARAMETER_CLOSE)))
        return Invoke(name, tuple(parameters), closed=False), None
    parameters.append((key, body[at:last]))
    return Invoke(name, tuple(parameters), closed=True), None


def _last_value_end(body: str, at: int) -> int | None:
    ends = [match.start() for match in _LAST_VALUE_END.finditer(body, at)]
    return ends[-1] if ends else None


def _argument(value: object) -> str:
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case None:
            return "null"
        case int() | float():
            return str(value)
        case _:
            return to_json(value)


def _plain(value: object) -> object:
    """Read-only mappings and other sequences as the containers json knows."""
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, object]", value))
    if isinstance(value, Iterable):
        return list(cast("Iterable[object]", value))
    raise TypeError(f"{type(value).__name__} has no JSON form")
