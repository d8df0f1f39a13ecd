"""The main job on a real terminal with the real tools and tests, and the bundled model at its first step."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.terminal import Terminal

DONE = "All 3 tests pass."


@pytest.fixture
def scripted(tmp_path: Path) -> Iterator[Terminal]:
    """The sample project with a model that says what it was told to."""
    terminal = Terminal([str(Path(__file__).with_name("scripted_demo.py")), str(tmp_path / "shop")], tmp_path)
    yield terminal
    terminal.close()


@pytest.fixture
def bundled(tmp_path: Path) -> Iterator[Terminal]:
    """`glimmer demo`, with the bundled model."""
    terminal = Terminal(["-m", "glimmer_tui", "demo", "--dir", str(tmp_path / "shop")], tmp_path)
    yield terminal
    terminal.close()


def contents(folder: Path) -> dict[str, bytes]:
    """The files of a folder by name."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def run_tests(folder: Path) -> int:
    """Exit code of the project's own tests."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False).returncode


def test_a_wish_is_granted_after_approval_and_undo_brings_the_bytes_back(scripted: Terminal, tmp_path: Path):
    shop, demo = tmp_path / "shop", scripted
    demo.wait_for("Say what you want changed")
    before = contents(shop)
    assert run_tests(shop) == 1

    demo.wait_for("ready")
    demo.press("Fix the failing test")
    demo.press("\r")
    for question in ("Run this command", "Change cart.py", "Run this command"):
        demo.wait_for(question)
        demo.press("y")
    demo.wait_for("All 3 tests pass.")
    demo.settle()
    assert run_tests(shop) == 0
    after = contents(shop)
    assert {name for name in after | before if after.get(name) != before.get(name)} == {"cart.py"}

    demo.press("/undo\r")
    demo.wait_for("cart.py")
    demo.press("y")
    demo.wait_for("restored", "put back", "undone")
    assert contents(shop) == before
    demo.press("/quit\r")
    assert demo.wait_end() == 0


def test_the_bundled_model_grants_the_wish_and_undo_brings_the_bytes_back(bundled: Terminal, tmp_path: Path):
    shop = tmp_path / "shop"
    bundled.wait_for("Demonstration model")
    before = contents(shop)
    assert run_tests(shop) == 1
    bundled.press("Fix the failing test\r")
    for question in ("Run this command", "Change cart.py", "Run this command"):
        bundled.wait_for(question)
        bundled.press("y")
    bundled.wait_for(DONE)
    bundled.settle()
    assert run_tests(shop) == 0
    after = contents(shop)
    assert {name for name in after | before if after.get(name) != before.get(name)} == {"cart.py"}

    bundled.press("/undo\r")
    bundled.wait_for("cart.py")
    bundled.press("y")
    bundled.wait_for("restored", "put back", "undone")
    assert contents(shop) == before
    bundled.press("/quit\r")
    assert bundled.wait_end() == 0


def test_the_bundled_model_does_it_in_a_script_too(tmp_path: Path):
    environment = {
        **os.environ,
        "GLIMMER_STATE_DIR": str(tmp_path / "state"),
        "GLIMMER_CONFIG_DIR": str(tmp_path / "config"),
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    glimmer = [sys.executable, "-m", "glimmer_tui"]
    shop = tmp_path / "shop"
    around = '[tool.pytest.ini_options]\naddopts = "--settings-of-another-project"\n'
    (tmp_path / "pyproject.toml").write_text(around)
    subprocess.run(
        [*glimmer, "demo", "--dir", str(shop), "--no-open"], cwd=tmp_path, env=environment, check=True
    )
    before = contents(shop)
    done = subprocess.run(
        [*glimmer, "-p", "Fix the failing test", "--mode", "auto", "--output", "jsonl"],
        cwd=shop,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    tools = [event["name"] for event in events if event["type"] == "tool_started"]
    assert tools[0] == tools[-1] == "test"
    assert "edit" in tools
    used = [event["usage"] for event in events if event["type"] == "step_finished"]
    assert sum(usage["reread"] for usage in used) == 0
    assert 0 < sum(usage["accepted"] for usage in used) <= sum(usage["drafted"] for usage in used)
    assert events[-1]["type"] == "turn_finished"
    assert events[-1]["changed"] == ["cart.py"]
    assert run_tests(shop) == 0
    after = contents(shop)
    assert {name for name in after | before if after.get(name) != before.get(name)} == {"cart.py"}


def test_the_bundled_model_asks_before_it_runs_the_tests_and_a_no_ends_in_nothing_done(
    bundled: Terminal, tmp_path: Path
):
    bundled.wait_for("Demonstration model")
    before = contents(tmp_path / "shop")
    bundled.press("Fix the failing test")
    bundled.press("\r")
    bundled.wait_for("-m pytest -q")
    bundled.press("\x1b")
    bundled.wait_for("ready", "stopped", "cancelled")
    assert contents(tmp_path / "shop") == before
    bundled.press("/quit\r")
    assert bundled.wait_end() == 0
