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
    """A fixed set of tools. `schemas` is the same value throughout, so that the prompt stays the same."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self.schemas = tuple(ToolSchema(*spec) for spec in registry.schemas())

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
