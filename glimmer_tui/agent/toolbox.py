"""The registry as the agent uses it: what the model is told, and a call as a plan."""

from dataclasses import dataclass

from engine.messages import ToolCall, ToolSchema
from tools.base import Plan, Result, Tool
from tools.registry import Registry


@dataclass(frozen=True, slots=True)
class Planned:
    """What a call would do, and the tool that would do it."""

    tool: Tool
    plan: Plan


class Toolbox:
    """A set of tools, fixed once the model is known: from then on `schemas`, and so the prompt, stays."""

    def __init__(self, registry: Registry, with_pictures: Registry | None = None) -> None:
        """`with_pictures` is the set for a model that sees what a tool shows it."""
        self._registry = registry
        self._with_pictures = with_pictures
        self.schemas = _schemas(registry)

    def offer_pictures(self) -> None:
        """The model sees pictures, and knows of the tools that show some from now on."""
        if self._with_pictures is not None:
            self._registry, self._with_pictures = self._with_pictures, None
            self.schemas = _schemas(self._registry)

    def plan(self, call: ToolCall) -> Planned | Result:
        """Check the arguments and prepare. Blocks; raises what the tool raises when it has a bug."""
        arguments = self._registry.arguments(call.name, call.arguments)
        if isinstance(arguments, Result):
            return arguments
        tool = self._registry.get(call.name)
        if tool is None:
            raise KeyError(call.name)
        prepared = tool.prepare(arguments)
        return prepared if isinstance(prepared, Result) else Planned(tool, prepared)


def _schemas(registry: Registry) -> tuple[ToolSchema, ...]:
    return tuple(ToolSchema(*spec) for spec in registry.schemas())
