"""A conversation in the making: what the person says, what the model does, what the real tools answer."""

from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from engine.messages import Message, Reasoning, Text, ToolCall, ToolResult, new_id
from nano.quick_pytest import run_pytest
from sandbox.paths import Workspace
from tools.base import Result, Running
from tools.edit import EditTool
from tools.list_files import ListTool
from tools.pytest_report import format_pytest
from tools.read import ReadTool
from tools.search import SearchTool

LEARN, SKIP = 1.0, 0.0


@dataclass
class Rollout:
    """`turns` holds each message with the weight of its loss: SKIP for what the model must not learn.

    `green` is the number of tests once the project is known to pass, else 0.
    """

    root: Path
    turns: list[tuple[Message, float]] = field(default_factory=list)
    green: int = 0

    def __post_init__(self) -> None:
        workspace = Workspace(self.root)
        tools = (ReadTool(workspace), ListTool(workspace), SearchTool(workspace), EditTool(workspace))
        self._tools = {tool.name: tool for tool in tools}

    def says(self, text: str) -> None:
        """The person writes."""
        self.turns.append((Message("user", (Text(text),)), SKIP))

    def calls(
        self, reason: str, name: str, arguments: dict[str, Any], weight: float = LEARN, denied: str = ""
    ) -> str:
        """The model reasons and calls; the tool's answer is returned and recorded."""
        call = ToolCall(new_id(), name, arguments)
        self.turns.append((Message("assistant", (Reasoning(reason), call)), weight))
        text = denied or self._run(name, arguments)
        self.turns.append((Message("tool", (ToolResult(call.id, name, text),)), SKIP))
        return text

    def answers(self, text: str) -> None:
        """The model ends its turn."""
        self.turns.append((Message("assistant", (Text(text),)), LEARN))

    def _run(self, name: str, arguments: dict[str, Any]) -> str:
        if name == "test":
            return format_pytest(*self._pytest())
        tool = self._tools[name]
        plan = tool.prepare(tool.arguments(**arguments))
        result = plan if isinstance(plan, Result) else tool.apply(plan, Running())
        return result.for_model

    def _pytest(self) -> tuple[str, int]:
        """A red run is pytest's own output; a green one prints the count alone, which needs no run."""
        if self.green:
            return f"{self.green} passed in 0.01s\n", 0
        return run_pytest(self.root)

    def text_of(self, path: str) -> str:
        """What the file holds now."""
        return (self.root / PurePosixPath(path)).read_text()
