"""Glimmer started inside a project that has folders named like its own packages."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from glimmer_tui import isolation_check

HOME = Path(__file__).parents[2]
SCRIPT = "import sys; from glimmer_tui.__main__ import main; sys.exit(main())"
"""What an installed console script holds."""


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A project whose packages and modules leave a mark when they are loaded."""
    project = tmp_path / "project"
    mark = tmp_path / "mark"
    for name in (*isolation_check.SIBLINGS, "pydantic", "llama_cpp"):
        (project / name).mkdir(parents=True)
        (project / name / "__init__.py").write_text(f"open({str(mark)!r}, 'a').write({name!r})\n")
    for name in ("argparse", "json", "asyncio", "tomllib"):
        (project / f"{name}.py").write_text(f"open({str(mark)!r}, 'a').write({name!r})\n")
    return project


def started(command: list[str], project: Path, path: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    folders = {
        "GLIMMER_CONFIG_DIR": str(project.parent / "c"),
        "GLIMMER_STATE_DIR": str(project.parent / "s"),
    }
    return subprocess.run(
        [sys.executable, *command],
        cwd=project,
        env={**environment, **folders, "PYTHONPATH": path},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("command", [["-c", SCRIPT], ["-m", "glimmer_tui"]], ids=["script", "module"])
@pytest.mark.parametrize("arguments", [["--version"], ["-p", "Hi.", "--model", "nowhere.gguf"]])
def test_code_in_the_project_is_not_run(command: list[str], arguments: list[str], hostile: Path) -> None:
    done = started([*command, *arguments], hostile, str(HOME))
    assert done.returncode == (0 if arguments == ["--version"] else 3), done.stderr
    assert not (hostile.parent / "mark").exists()


def test_a_search_path_that_hides_a_sibling_is_refused(hostile: Path) -> None:
    elsewhere = hostile.parent / "elsewhere"
    elsewhere.mkdir()
    done = started(["-c", SCRIPT, "--version"], elsewhere, f"{hostile}:{HOME}")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"glimmer: Glimmer would load engine from {hostile}" in done.stderr
    assert not (hostile.parent / "mark").exists()


def test_glimmer_can_work_on_its_own_source() -> None:
    done = started(["-m", "glimmer_tui", "--version"], HOME, "")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_missing_sibling_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation_check, "SIBLINGS", ("engine", "no_such_sibling"))
    with pytest.raises(isolation_check.ForeignCode, match="no_such_sibling is missing"):
        isolation_check.check_siblings()
