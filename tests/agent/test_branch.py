"""The branch in the status line comes from files of the project, which may hold anything."""

import os
import subprocess
from pathlib import Path

import pytest

from glimmer_tui.agent.records import Records


def branch(root: Path) -> str:
    return Records(root, None, None, lambda event: None).branch()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    subprocess.run(["git", "init", "-q", "-b", "topic/one", root], check=True)
    return root


def test_the_branch_of_a_repository_and_of_a_worktree(repository: Path) -> None:
    assert branch(repository) == "topic/one"
    git = ["git", "-C", repository, "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    subprocess.run([*git, "worktree", "add", "-q", "-b", "two", "../other"], check=True)
    assert branch(repository.parent / "other") == "two"


def test_no_repository_has_no_branch(tmp_path: Path) -> None:
    assert branch(tmp_path) == ""


@pytest.mark.parametrize(
    ("head", "shown"),
    [
        (b"0123456789abcdef\n", "01234567"),
        (b"ref: refs/heads/a\x1b[31mb\n", "a\N{REPLACEMENT CHARACTER}[31mb"),
        (b"ref: refs/heads/" + b"x" * 10_000, "x" * 99 + "…"),
        (b"\xff\xfe", ""),
        (b"", ""),
    ],
    ids=["detached", "escapes", "long", "no text", "empty"],
)
def test_any_head_is_one_short_line(repository: Path, head: bytes, shown: str) -> None:
    (repository / ".git" / "HEAD").write_bytes(head)
    assert branch(repository) == shown


def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(repository: Path) -> None:
    (repository / ".git" / "HEAD").unlink()
    os.mkfifo(repository / ".git" / "HEAD")
    assert branch(repository) == ""
