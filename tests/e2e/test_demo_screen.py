"""Glimmer's main job from end to end: the real program, a real terminal, the bundled model, real tests."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.terminal import Terminal


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Terminal]:
    """`glimmer demo` in a folder of its own."""
    terminal = Terminal(["demo", "--dir", str(tmp_path / "shop")], tmp_path)
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


def test_a_wish_is_granted_after_approval_and_undo_brings_the_bytes_back(demo: Terminal, tmp_path: Path):
    shop = tmp_path / "shop"
    demo.wait_for("Say what you want changed")
    before = contents(shop)
    assert run_tests(shop) == 1

    demo.wait_for("ready")
    demo.press("Fix the failing test")
    demo.press("\r")
    asked: list[str] = []
    while (what := demo.wait_for("pytest -q", "line_total(price", "tests pass.")) != "tests pass.":
        asked.append(what)
        demo.press("y")
    assert "line_total(price" in asked
    assert asked.count("pytest -q") == 2
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
