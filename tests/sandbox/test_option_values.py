"""Every option of every reader, run for real: no value of it is opened as a file, and nothing is written."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from sandbox.command_risk import assess
from sandbox.commands import git, readers
from sandbox.commands.options import Reader


def _flags(table: Mapping[str, Reader], program: str) -> list[str]:
    return [f"-{name}" if len(name) == 1 else f"--{name}" for name in table[program].options]


def _calls() -> list[tuple[str, list[str]]]:
    opening = {
        name: reader
        for name, reader in readers.readers().items()
        if reader.operands != "text" and name not in {"egrep", "fgrep"}
    }
    calls = [(name, _flags(opening, name)) for name in opening]
    # `show` and `diff-tree` read their options as `log` and `diff` do, the other greps as `grep`.
    subcommands = [name for name in git.subcommands() if name not in {"show", "diff-tree"}]
    return calls + [(f"git {name}", _flags(git.subcommands(), name)) for name in subcommands]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("values") / "project"
    root.mkdir()
    (root / "README.md").write_text("hello\n")
    (root / "other.md").write_text("hello\nyou\n")
    return root


def _output(command: str, project: Path) -> bytes:
    environment = {"PATH": os.environ["PATH"], "HOME": str(project), "GIT_PAGER": "cat", "LC_ALL": "C"}
    done = subprocess.run(
        command.split(),
        cwd=project,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        timeout=20,
        check=False,
    )
    return done.stdout


@pytest.mark.parametrize(("program", "flags"), _calls(), ids=[name for name, _ in _calls()])
def test_no_value_of_an_option_is_opened(program: str, flags: list[str], project: Path) -> None:
    outside = project.parent / "outside.txt"
    for flag in flags:
        for words in (f"{flag} {outside} README.md", f"README.md {flag} {outside}"):
            command = f"{program} {words}"
            if assess(command, project).level != "read":
                continue
            seen: set[bytes] = set()
            for text in ("one\n", "another\nand another\n"):
                outside.write_text(text)
                try:
                    seen.add(_output(command, project))
                except FileNotFoundError:
                    seen.add(b"")
            assert len(seen) == 1, command
            assert outside.read_text() == "another\nand another\n", command


@pytest.mark.parametrize(("program", "flags"), _calls(), ids=[name for name, _ in _calls()])
def test_no_option_makes_a_reader_write(program: str, flags: list[str], project: Path) -> None:
    before = {path.name: path.read_bytes() for path in project.iterdir()}
    for flag in ["", *flags]:
        valued = assess(f"{program} {flag}", project).level == "ask"
        command = f"{program} {flag}{' 1' if valued else ''} README.md other.md"
        if assess(command, project).level == "read":
            try:
                _output(command, project)
            except FileNotFoundError:
                continue
            assert {path.name: path.read_bytes() for path in project.iterdir()} == before, command
