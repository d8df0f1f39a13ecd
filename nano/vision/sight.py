"""What the agent tells a model that sees pictures: the system block with one more tool."""

from collections.abc import Sequence

from engine.chat_format import Piece, system_pieces
from engine.messages import Strength, ToolSchema, text_of
from glimmer_tui.agent.prompt import system_message
from nano.prefix import TOOLS
from tools.base import Tool
from tools.schema import tool_schema
from tools.screenshot import ScreenshotTool


def sighted_schemas() -> list[ToolSchema]:
    """The tools of a model that sees, in the agent's order."""
    tools: Sequence[type[Tool]] = (*TOOLS, ScreenshotTool)
    return [ToolSchema(*tool_schema(tool)) for tool in tools]


def sighted_pieces(strength: Strength) -> tuple[Piece, ...]:
    """The system block at one reasoning strength."""
    return system_pieces(text_of(system_message()), sighted_schemas(), strength)
