"""The tools by name, and the check of what a model wrote as arguments."""

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from tools.base import Result, Tool
from tools.failure import failure
from tools.schema import ToolSpec, tool_schema

MOST_PROBLEMS = 5
ONLY_WITH_PICTURES = frozenset({"screenshot"})
"""Tools whose result is a picture: of no use to a model that sees none, and not offered to it."""


class Registry:
    """A fixed set of tools, in the order in which the model is told of them."""

    def __init__(self, tools: Iterable[Tool], *, sees_pictures: bool = False) -> None:
        """`sees_pictures`: whether the model can; without it, tools that show pictures are left out."""
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            if tool.name in self._tools:
                raise ValueError(f"Two tools are named {tool.name}.")
            if sees_pictures or tool.name not in ONLY_WITH_PICTURES:
                self._tools[tool.name] = tool

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in order."""
        return tuple(self._tools)

    def get(self, name: str) -> Tool | None:
        """The tool of that name, or None."""
        return self._tools.get(name)

    def schemas(self) -> tuple[ToolSpec, ...]:
        """What the model is told of each tool."""
        return tuple(tool_schema(tool) for tool in self._tools.values())

    def arguments(self, name: str, raw: Mapping[str, Any]) -> BaseModel | Result:
        """Raw arguments as the tool's model, or an error that says what is wrong with each."""
        tool = self._tools.get(name)
        if tool is None:
            return failure("unknown_tool", f"No tool {name!r}. There are: {', '.join(self._tools)}.")
        try:
            return tool.arguments.model_validate(dict(raw))
        except ValidationError as fault:
            problems = [_problem(error["loc"], error["type"], error["msg"]) for error in fault.errors()]
            told = " ".join(problems[:MOST_PROBLEMS])
            return failure("invalid_arguments", f"Invalid arguments for {name}: {told}")


def _problem(place: tuple[int | str, ...], kind: str, message: str) -> str:
    where = ".".join(str(part) for part in place)[:100]
    match kind:
        case "missing":
            return f"{where} is missing."
        case "extra_forbidden":
            return f"{where} is not a parameter."
        case _:
            return f"{where}: {message[:1].lower()}{message[1:]}."
