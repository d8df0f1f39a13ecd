"""What a command is judged to be by what lies on the disk: links, wildcards, secrets, repositories."""

import os
import subprocess
from pathlib import Path

import pytest

from sandbox.command_risk import assess


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "src").mkdir(parents=True)
    (root / "src" / "a.py").write_text("x = 1\n")
    (root / "a.py").write_text("x = 1\n")
    (tmp_path / "outside.txt").write_text("not yours\n")
    return root


def test_absolute_paths_inside_the_project_are_fine(project: Path) -> None:
    assert assess(f"cat {project}/a.py", project).level == "read"
    assert assess(f"cat {project}/../outside.txt", project).level == "ask"
    assert assess(f"cat {project}-other/a.py", project).level == "ask"
    assert assess(f"cd {project}/src", project).level == "ask"


def test_links_out_of_the_project_ask(project: Path) -> None:
    (project / "link").symlink_to(project.parent / "outside.txt")
    (project / "up").symlink_to(project.parent)
    (project / "in").symlink_to(project / "src")
    assert assess("cat link", project).level == "ask"
    assert assess("cat up/outside.txt", project).level == "ask"
    assert assess("cd up && ls", project).level == "ask"
    assert assess("wc -l l*", project).level == "ask"
    assert assess("cat < link", project).level == "ask"
    assert assess("cat in/a.py", project).level == "read"
    assert assess("cat in/../a.py", project).level == "read"


def test_a_link_hides_no_secret(project: Path) -> None:
    (project / ".env").write_text("TOKEN=1\n")
    (project / "plain.txt").symlink_to(project / ".env")
    risk = assess("cat plain.txt", project)
    assert risk.level == "ask" and risk.secret


def test_wildcards_are_looked_up(project: Path) -> None:
    assert assess("cat *", project).level == "read"
    assert assess("sort *.py", project).level == "read"
    assert assess("find . -name *.py", project).level == "read"
    (project / "-delete").write_text("")
    for command in ("cat *", "find . *", "find . -name *", "wc -l *te"):
        assert assess(command, project).level == "ask", command
    (project / "-delete").unlink()
    (project / "server.pem").write_text("")
    assert assess("cat *", project).level == "ask"
    assert assess("cat [!a]*", project).level == "ask"
    assert assess("cat s*/*", project).level == "read"


def test_searching_folders_that_hold_secrets_asks(project: Path) -> None:
    assert assess("grep -rn x .", project).level == "read"
    (project / "src" / ".env").write_text("TOKEN=1\n")
    assert assess("grep -rn x .", project).secret
    assert assess("grep -rn x", project).level == "ask"
    assert assess("rg x", project).level == "read"
    (project / "src" / "server.key").write_text("")
    assert assess("rg x", project).level == "ask"
    assert assess("rg --files", project).level == "read"
    assert assess("ls -R", project).level == "read"


def test_the_folder_a_command_runs_in_counts(project: Path) -> None:
    assert assess("cat ../a.py", project).level == "ask"
    assert assess("cat ../a.py", project, project / "src").level == "read"
    assert assess("cat ../../outside.txt", project, project / "src").level == "ask"
    assert assess("ls", project, project.parent).level == "ask"


def test_git_in_a_nested_repository_asks(project: Path) -> None:
    subprocess.run(["git", "init", "-q", project], check=True)
    assert assess("cd src && git status", project).level == "read"
    assert assess("git status", project, project / "src").level == "read"
    subprocess.run(["git", "init", "-q", "--bare", project / "src" / "bare.git"], check=True)
    assert assess("cd src/bare.git && git status", project).level == "ask"
    assert assess("git log", project, project / "src" / "bare.git" / "refs").level == "ask"
    assert assess("git -C src/bare.git log", project).level == "ask"


def test_a_removal_is_judged_where_it_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    work = tmp_path / "work"
    work.mkdir()
    up = "/".join([".."] * len(work.parts))
    assert assess(f"rm -rf {up}", work).level == "forbidden"
    assert assess("rm -rf ..", work).level == "forbidden"
    assert assess("rm -rf ../other", work).level == "ask"
    assert assess(f"rm -rf {tmp_path}", work).level == "forbidden"
    assert assess("rm -rf *", work).level == "ask"


def test_paths_no_system_accepts_ask(project: Path) -> None:
    assert assess("cat " + "x" * 5000 + "/" + "y" * 5000, project).level in {"read", "ask"}
    assert assess("cat " + "*/" * 500 + "x", project).level in {"read", "ask"}
    loop = project / "loop"
    os.symlink(loop, loop)
    assert assess("cat loop", project).level in {"read", "ask"}
