"""A workspace on the disk and a way to call a tool through both of its phases."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbox.paths import Workspace
from sandbox.shell import Shell
from tools.base import Result, Running, Tool

Call = Callable[..., Result]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def workspace(root: Path) -> Workspace:
    return Workspace(root)


@pytest.fixture
def shell(root: Path) -> Iterator[Shell]:
    opened = Shell(root)
    yield opened
    opened.close()


@pytest.fixture
def call() -> Call:
    def run(tool: Tool, /, **arguments: Any) -> Result:
        plan = tool.prepare(tool.arguments(**arguments))
        return plan if isinstance(plan, Result) else tool.apply(plan, Running())

    return run
