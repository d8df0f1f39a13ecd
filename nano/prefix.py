"""The constant system block that every conversation begins with, as the agent sends it."""

from collections.abc import Sequence

from engine.chat_format import Piece, system_pieces
from engine.messages import Strength, ToolSchema, text_of
from glimmer_tui.agent.prompt import system_message
from tools.base import Tool
from tools.diff import DiffTool
from tools.edit import EditTool
from tools.list_files import ListTool
from tools.outline import OutlineTool
from tools.plan import PlanTool
from tools.read import ReadTool
from tools.run_command import RunTool
from tools.run_tests import TestTool
from tools.schema import tool_schema
from tools.search import SearchTool
from tools.write import WriteTool

# The order of glimmer_tui.wiring; a test compares the two.
TOOLS: Sequence[type[Tool]] = (
    ReadTool,
    ListTool,
    SearchTool,
    OutlineTool,
    EditTool,
    WriteTool,
    TestTool,
    RunTool,
    DiffTool,
    PlanTool,
)


def schemas() -> list[ToolSchema]:
    """The tools as the model is told of them."""
    return [ToolSchema(*tool_schema(tool)) for tool in TOOLS]


def prefix_pieces(strength: Strength) -> tuple[Piece, ...]:
    """The system block at one reasoning strength."""
    return system_pieces(text_of(system_message()), schemas(), strength)
