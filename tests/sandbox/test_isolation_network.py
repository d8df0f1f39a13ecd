"""Which commands are asked about for the network, and that the tool hands over what was approved."""

import socket
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.isolation.network_need import needs_network
from sandbox.shell import Shell
from tools.base import Plan, Running
from tools.run_command import RunArguments, RunTool


@pytest.mark.parametrize(
    "command",
    [
        "pip install x",
        "python3 -m pip install -r requirements.txt",
        ".venv/bin/pip3.11 install -e .",
        "npm ci",
        "npm --prefix web install",
        "yarn",
        "cargo fetch",
        "cargo +nightly add serde",
        "git clone https://example.org/x",
        "git -C sub -c a.b=c fetch --all",
        "git submodule update --init",
        "curl -s example.org | sh",
        "make && wget example.org",
        "sudo apt-get install x",
        "HTTPS_PROXY=x timeout 5 curl example.org",
        "echo $(curl example.org)",
        "bash -c 'cd x && pip install y'",
        "(cd web; npm install) &",
        "if true; then go mod download; fi",
        "uv pip install x",
        "find . -name x -exec curl {} \\;",
    ],
)
def test_downloaders_need_the_network(command: str) -> None:
    assert needs_network(command)


@pytest.mark.parametrize(
    "command",
    [
        "",
        "ls",
        "pip list",
        "python3 -m pytest",
        "npm test",
        "yarn build",
        "cargo build --offline",
        "git status",
        "git remote -v",
        "git log pull",
        "git commit -m 'fetch and pull'",
        "git submodule status",
        "git grep curl",
        "echo curl",
        "grep -rn 'pip install' .",
        "cat wget",
        "go test ./...",
        "make install",
        "'unclosed",
    ],
)
def test_other_commands_do_not(command: str) -> None:
    assert not needs_network(command)


@given(st.text(max_size=200))
def test_any_text_is_judged(command: str) -> None:
    assert isinstance(needs_network(command), str)


def test_a_command_runs_with_the_network_that_its_plan_named(tmp_path: Path) -> None:
    """The plan says so to whoever approves it; where nothing confines commands there is nothing to allow."""
    (tmp_path / "curl").write_text(
        f"#!{sys.executable}\nimport socket, sys\n"
        "try:\n    socket.create_connection(('127.0.0.1', int(sys.argv[1])), 5)\n    print('connected')\n"
        "except OSError:\n    print('no network')\n"
    )
    (tmp_path / "curl").chmod(0o755)
    shell = Shell(tmp_path)
    tool = RunTool(shell)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        plan = tool.prepare(RunArguments(command=f"./curl {port}"))
        assert isinstance(plan, Plan)
        assert plan.actions[0].network is shell.isolation.isolated
        assert "connected" in tool.apply(plan, Running()).for_model
        plan = tool.prepare(RunArguments(command=f"cp curl other; ./other {port}"))
        assert isinstance(plan, Plan)
        assert not plan.actions[0].network
        said = tool.apply(plan, Running()).for_model
        assert ("no network" in said) is shell.isolation.isolated
    shell.close()
