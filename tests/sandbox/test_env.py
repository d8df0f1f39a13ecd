import os
import subprocess
from pathlib import Path

import pytest

from sandbox.env import child_environment

_KEPT = [
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TERM",
    "TZ",
    "USER",
    "SHELL",
    "TMPDIR",
    "VIRTUAL_ENV",
    "GOPATH",
]
_KEPT += ["CARGO_HOME", "JAVA_HOME", "NODE_PATH", "RUSTUP_HOME", "GEM_HOME", "DOTNET_ROOT"]
_DROPPED = [
    "AWS_SECRET_ACCESS_KEY",
    "GITHUB_TOKEN",
    "OPENAI_API_KEY",
    "DB_PASSWORD",
    "PGPASSFILE",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "SSH_AUTH_SOCK",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "DYLD_INSERT_LIBRARIES",
    "BASH_ENV",
    "ENV",
    "PROMPT_COMMAND",
    "BASH_FUNC_ls%%",
    "PS4",
    "CDPATH",
    "IFS",
    "NODE_OPTIONS",
    "PERL5OPT",
    "RUBYOPT",
    "GIT_DIR",
    "GIT_SSH_COMMAND",
    "NO_COLOR",
    "SOMETHING_ELSE",
]


@pytest.mark.parametrize("name", _KEPT)
def test_toolchains_and_basics_are_kept(name: str) -> None:
    assert child_environment({name: "value"})[name] == "value"


@pytest.mark.parametrize("name", _DROPPED)
def test_secrets_and_hijackers_are_dropped(name: str) -> None:
    assert name not in child_environment({name: "value"})


@pytest.mark.parametrize("name", ["LC_TOKEN", "LC_API_KEY", "LC_SECRET", "LC_Password", "LC_CREDENTIALS"])
def test_a_secret_name_is_dropped_whatever_the_list_says(name: str) -> None:
    assert name not in child_environment({name: "value"})


def test_programs_are_kept_from_asking() -> None:
    found = child_environment({"PAGER": "less", "EDITOR": "vim", "GIT_TERMINAL_PROMPT": "1"})
    assert found["PAGER"] == found["GIT_PAGER"] == "cat"
    assert found["EDITOR"] == found["GIT_EDITOR"] == "false"
    assert found["GIT_TERMINAL_PROMPT"] == "0"
    assert found["PIP_NO_INPUT"] == found["PYTHONDONTWRITEBYTECODE"] == "1"
    assert found["DEBIAN_FRONTEND"] == "noninteractive"


def test_a_repository_cannot_make_git_status_run_its_own_program(tmp_path: Path) -> None:
    def git(*words: str, env: dict[str, str] | None = None) -> None:
        subprocess.run(["git", *words], cwd=tmp_path, env=env, check=True, capture_output=True)

    git("init", "-q")
    (tmp_path / "a.txt").write_text("a\n")
    trap = tmp_path / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\n")
    trap.chmod(0o755)
    git("config", "core.fsmonitor", str(trap))

    git("status", env=child_environment(os.environ))
    assert not (tmp_path / "sprung").exists()
    git("status")
    assert (tmp_path / "sprung").exists()
