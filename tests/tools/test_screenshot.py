import json
from io import BytesIO
from itertools import product
from pathlib import Path

import pytest
from PIL import Image

from engine.chat_format import ImagePiece, message_pieces
from engine.messages import Image as ImagePart
from engine.messages import ToolCall, ToolResult
from glimmer_tui.agent.outcome import Outcome
from sandbox.actions import MODES, Action
from sandbox.approvals import Approvals
from sandbox.policy import rule
from tools.base import CommandLine, Plan, Result, Running
from tools.pictures.decode import decode_bytes
from tools.plan import PlanTool
from tools.registry import Registry
from tools.run_command import RunTool
from tools.screenshot import ScreenshotTool

SCREEN = Action("screen", "desktop")


@pytest.fixture
def tool(shell, root: Path) -> ScreenshotTool:
    return ScreenshotTool(shell, root)


@pytest.fixture
def desktop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A display whose only program for pictures is played; it notes that it was started."""
    folder = tmp_path / "bin"
    folder.mkdir()
    buffer = BytesIO()
    Image.new("RGB", (64, 48), (1, 2, 3)).save(buffer, "PNG")
    (folder / "screen").write_bytes(buffer.getvalue())
    program = folder / "grim"
    program.write_text(f"#!/bin/sh\n/usr/bin/touch {folder}/started\nexec /bin/cat {folder}/screen\n")
    program.chmod(0o755)
    for name in ("DISPLAY", "SSH_CONNECTION", "WSL_DISTRO_NAME", "WSL_INTEROP"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-9")
    return folder


def test_a_command_is_judged_like_one_of_run_and_shown_as_a_picture(tool, shell, call) -> None:
    plan = tool.prepare(tool.arguments(command="printf '\\033[48;2;200;0;9m    \\033[0m\\n'; echo hello"))
    assert plan.actions == RunTool(shell).prepare(RunTool.arguments(command=plan.preview.command)).actions
    assert isinstance(plan.preview, CommandLine)
    result = tool.apply(plan, Running())
    assert result.for_model == "The terminal.\n[exit code 0]" and not result.is_error
    assert result.display.form == "terminal" and "hello" in result.display.body
    (picture,) = result.images
    with Image.open(BytesIO(picture.data)) as shown:
        assert shown.size == (picture.width, picture.height) == (720, 38)
        assert (200, 0, 9) in {colour for _, colour in shown.convert("RGB").getcolors(1 << 16)}


def test_a_full_screen_program_is_seen_when_its_time_is_over(tool, call) -> None:
    command = "printf '\\033[?1049h\\033[10;1H\\033[44m     '; sleep 100"
    result = call(tool, command=command, timeout=1)
    assert "[stopped after 1 s]" in result.for_model
    (picture,) = result.images
    assert picture.height == 24 * 19


def test_a_command_that_fails_is_still_seen(tool, call) -> None:
    result = call(tool, command="seq 100; false")
    assert result.for_model == "The terminal's last 60 lines.\n[exit code 1]"
    assert len(result.images) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        {"what": "window"},
        {"command": "ls", "what": "desktop"},
        {"command": " "},
        {"command": "ls", "timeout": 0},
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_runs(tool, arguments) -> None:
    refused = tool.prepare(tool.arguments(**arguments))
    assert isinstance(refused, Result) and refused.error == "invalid_arguments"


def test_the_desktop_is_looked_at_only_when_the_plan_is_applied(tool, desktop) -> None:
    for arguments in ({}, {"what": "desktop"}):
        plan = tool.prepare(tool.arguments(**arguments))
        assert plan == Plan((SCREEN,))
    assert not (desktop / "started").exists()
    result = tool.apply(plan, Running())
    assert (desktop / "started").exists()
    assert result.for_model == "The desktop, 64x48 pixels."
    assert (result.images[0].width, result.images[0].height) == (64, 48)


def test_without_a_desktop_the_model_is_told(tool, desktop, monkeypatch) -> None:
    monkeypatch.delenv("WAYLAND_DISPLAY")
    result = tool.apply(Plan((SCREEN,)), Running())
    assert result.error == "no_picture" and result.images == ()


def test_a_program_of_the_projects_takes_no_picture(shell, desktop) -> None:
    result = ScreenshotTool(shell, desktop.parent).apply(Plan((SCREEN,)), Running())
    assert result.error == "no_picture" and not (desktop / "started").exists()


def test_no_mode_and_no_approval_lets_the_desktop_be_seen_unasked(root: Path) -> None:
    approvals = Approvals()
    assert approvals.describe((SCREEN,)) == ""
    approvals.remember((SCREEN, Action("write", "a.py"), Action("execute", "ls")))
    for mode, others in product(MODES, ((), (Action("read", "a.py"),), (Action("execute", "ls"),))):
        verdict = rule((*others, SCREEN), mode, approvals, root).verdict
        assert verdict == ("deny" if mode == "read-only" else "ask")


def test_the_model_is_told_of_it_only_when_it_sees_pictures(tool) -> None:
    assert Registry([PlanTool(), tool]).names == ("plan",)
    assert Registry([PlanTool(), tool]).schemas() == Registry([PlanTool()]).schemas()
    seeing = Registry([PlanTool(), tool], sees_pictures=True)
    assert seeing.names == ("plan", "screenshot")
    assert json.dumps(seeing.schemas()[1].parameters) == (
        '{"type": "object", "properties": {"command": {"type": "string"}, "what": {"type": "string"}, '
        '"timeout": {"type": "number"}}}'
    )
    unknown = Registry([PlanTool(), tool]).arguments("screenshot", {})
    assert isinstance(unknown, Result) and unknown.error == "unknown_tool"


def test_the_picture_follows_the_words_in_the_tools_message(tool, call) -> None:
    result = call(tool, command="echo hello")
    outcome = Outcome(ToolCall("7", "screenshot", {"command": "echo hello"}), result)
    words, picture = outcome.message.parts
    assert words == ToolResult("7", "screenshot", "The terminal.\n[exit code 0]")
    assert isinstance(picture, ImagePart)
    decoded = decode_bytes(picture.data)
    assert (decoded.width, decoded.height) == (picture.width, picture.height)
    pieces = message_pieces(outcome.message)
    assert ImagePiece(picture) in pieces[: len(pieces) - 1]


def test_results_that_differ_only_in_their_picture_are_told_apart(tool, call) -> None:
    asked = ToolCall("7", "screenshot", {})
    first, again, other = (
        Outcome(asked, call(tool, command=f"echo {word}")).told for word in ("hello", "hello", "HELLO")
    )
    assert first == again != other
