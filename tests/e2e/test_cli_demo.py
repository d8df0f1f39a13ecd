"""The sample project: one bug, one test that shows it, and never a file replaced."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from glimmer_tui.cli import run
from glimmer_tui.demo import FILES, DemoRefused, write_demo


def pytest_in(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=folder,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_one_test_fails_until_the_bug_is_mended(tmp_path: Path) -> None:
    folder = write_demo(None, tmp_path)
    before = pytest_in(folder)
    assert "1 failed, 2 passed" in before.stdout

    source = folder / "cart.py"
    source.write_text(source.read_text().replace("return price + count", "return price * count"))
    assert "3 passed" in pytest_in(folder).stdout


def test_a_taken_name_is_numbered(tmp_path: Path) -> None:
    assert [write_demo(None, tmp_path).name for _ in range(3)] == [
        "glimmer-demo",
        "glimmer-demo-2",
        "glimmer-demo-3",
    ]


def test_a_folder_that_is_not_empty_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "cart.py").write_text("mine\n")
    with pytest.raises(DemoRefused, match="not empty"):
        write_demo(tmp_path, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["cart.py"]


def test_a_file_in_the_way_is_told_in_words(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("mine\n")
    with pytest.raises(DemoRefused, match="cannot be written"):
        write_demo(tmp_path / "taken", tmp_path)


def test_the_command_says_where_it_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["demo", "--no-open"]) == 0
    assert str(tmp_path / "glimmer-demo") in capsys.readouterr().out
    assert run(["demo", "--no-open", "--dir", "glimmer-demo"]) == 2
    assert "not empty" in capsys.readouterr().err
    assert sorted(path.name for path in (tmp_path / "glimmer-demo").iterdir()) == sorted(FILES)


def test_the_runner_of_the_sample_project_comes_with_glimmer() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert any(need.startswith("pytest>=") for need in project["project"]["dependencies"])
