"""The grammar of a tool call's body, in llama.cpp's notation (GBNF).

Names, required parameters and the types of values cannot be wrong in what it lets through, while a text
stays free. What it lets through is read back by `engine.calls` as one fitting call.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from engine.calls.atem import BLOCK_CLOSE, BLOCK_OPEN, INVOKE_CLOSE, PARAMETER_CLOSE
from engine.calls.text_grammar import Rules, literal
from engine.calls.value_grammar import ValueGrammar
from engine.messages import ToolSchema

_MOST_IN_ANY_ORDER = 6
_TOOL_NAME = re.compile(r'[^\s<>"\0\ud800-\udfff]{1,128}')
_KEY = re.compile(r'[^"\n\0\ud800-\udfff]{0,256}')


def can_be_called(tool: ToolSchema) -> bool:
    """Whether the format can spell the tool's name and all parameters that it requires."""
    keys = _parameters(tool)
    is_spelt = _TOOL_NAME.fullmatch(tool.name) and tool.name not in ("self", "user")
    return bool(is_spelt) and all(key in keys for key in _required(tool))


def call_grammar(tool: ToolSchema) -> str:
    """The grammar of what stands between `<|message|>` and the end of a message to this tool.

    The block is spelt as the chat format spells it. Each parameter comes at most once; up to six may come
    in any order, more come in the schema's. Raises ValueError for a tool that cannot be called.
    """
    if not can_be_called(tool):
        raise ValueError(f"the chat format cannot spell a call of {tool.name!r}")
    opening = f'{BLOCK_OPEN}\n<atem:invoke name="{tool.name}">\n'
    rules: Rules = {
        "root": f"{literal(opening)} then-0",
        "end": literal(f"{INVOKE_CLOSE}\n{BLOCK_CLOSE}"),
    }
    body = _Body(tool, rules)
    if len(body.keys) <= _MOST_IN_ANY_ORDER:
        body.add_any_order()
    else:
        body.add_schema_order()
    return "".join(f"{name} ::= {meaning}\n" for name, meaning in rules.items())


class _Body:
    """The parameters of one call, in the orders they may come."""

    def __init__(self, tool: ToolSchema, rules: Rules) -> None:
        self._schemas = _parameters(tool)
        self._required = set(_required(tool))
        self._rules = rules
        self._values = ValueGrammar(tool.parameters, rules)
        self.keys = list(self._schemas)

    def add_any_order(self) -> None:
        """A rule for each set of parameters already given: `then-5` follows the first and the third."""
        for given in range(1 << len(self.keys)):
            ways = [
                f"{self._parameter(index, given | 1 << index)} then-{given | 1 << index}"
                for index in range(len(self.keys))
                if not given >> index & 1
            ]
            self._rules[f"then-{given}"] = " | ".join(ways if self._is_due(given) else [*ways, "end"])

    def add_schema_order(self) -> None:
        """A rule for each parameter that may come next: `then-5` follows the fifth, given or left out."""
        count = len(self.keys)
        for index, key in enumerate(self.keys):
            given = (1 << count) - 1 if not self._required & set(self.keys[index + 1 :]) else 0
            way = f"{self._parameter(index, given)} then-{index + 1}"
            left_out = [] if key in self._required else [f"then-{index + 1}"]
            self._rules[f"then-{index}"] = " | ".join([way, *left_out])
        self._rules[f"then-{count}"] = "end"

    def _parameter(self, index: int, given: int) -> str:
        """The rule of one parameter, after which those in `given` are there."""
        more_due = self._is_due(given)
        name = f"parameter-{index}-due" if more_due else f"parameter-{index}"
        if name not in self._rules:
            key = self.keys[index]
            value = self._values.parameter(self._schemas[key], more_due=more_due)
            opening, closing = literal(f'<atem:parameter name="{key}">'), literal(f"{PARAMETER_CLOSE}\n")
            self._rules[name] = f"{opening} {value} {closing}"
        return name

    def _is_due(self, given: int) -> bool:
        """Whether a required parameter is not among those given."""
        return any(key in self._required and not given >> index & 1 for index, key in enumerate(self.keys))


def _parameters(tool: ToolSchema) -> dict[str, Any]:
    """The parameters that the format can spell, with their schemas."""
    properties = tool.parameters.get("properties", {})
    known = dict(cast("Mapping[str, Any]", properties)) if isinstance(properties, Mapping) else {}
    extra = tool.parameters.get("additionalProperties", False)
    if extra is not False:
        known |= {key: extra for key in _required(tool) if key not in known}
    return {key: schema for key, schema in known.items() if _KEY.fullmatch(key)}


def _required(tool: ToolSchema) -> list[str]:
    required = tool.parameters.get("required", ())
    return [str(key) for key in cast("Sequence[Any]", required)] if isinstance(required, list | tuple) else []
