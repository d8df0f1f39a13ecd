"""Programs that tools start on their own account are never the project's."""

import os
import shutil
import sys

import pytest

from tools import ripgrep
from tools.programs import find_outside, is_outside
from tools.ripgrep import find_ripgrep
from tools.run_tests import TestArguments, TestTool


@pytest.fixture
def trap(root, monkeypatch):
    """Programs of the project that note that they ran, and the ways in which a PATH can name their folder."""
    (root / "bin").mkdir()
    for name in ("python", "python3", "rg"):
        program = root / "bin" / name
        program.write_text(f"#!/bin/sh\n: > '{root}/ran'\n")
        program.chmod(0o755)
    (root / "test_a.py").touch()
    (root.parent / "link").symlink_to(root)
    (root.parent / "bin").symlink_to(root / "bin")
    monkeypatch.chdir(root)
    return root


@pytest.fixture
def tests(workspace, shell):
    return TestTool(workspace, shell)


UP = "{root}/.."
ENTRIES = ["bin", "./bin", "", ".", "{root}/bin", f"{UP}/project/bin", f"{UP}/link/bin", f"{UP}/bin"]


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("alone", [True, False])
def test_none_of_the_projects_programs_runs_before_approval(trap, tests, monkeypatch, entry, alone):
    first = entry.format(root=trap)
    if first in ("", "."):
        monkeypatch.chdir(trap / "bin")
    monkeypatch.setenv("PATH", first if alone else os.pathsep.join((first, os.environ["PATH"])))
    monkeypatch.setattr(ripgrep, "_from_wheel", lambda: None)
    monkeypatch.setattr(sys, "executable", str(trap.parent / "nowhere" / "python"))
    tests.prepare(TestArguments())
    found = find_ripgrep(trap)
    assert found is None or is_outside(found, trap)
    for name in ("rg", "python3"):
        found = find_outside(name, trap)
        assert found is None or is_outside(found, trap)
    assert not (trap / "ran").exists()


def test_a_program_behind_the_projects_own_is_found(trap, monkeypatch):
    other = trap.parent / "other"
    other.mkdir()
    shutil.copy(trap / "bin" / "rg", other)
    monkeypatch.setenv("PATH", os.pathsep.join(("bin", str(trap / "bin"), str(other))))
    assert find_outside("rg", trap) == str(other / "rg")


def test_the_folder_counts_and_not_where_the_program_links_to(trap):
    (trap / "bin" / "out").symlink_to("/bin/sh")
    (trap.parent / "tool").symlink_to(trap / "bin" / "rg")
    assert not is_outside(str(trap / "bin" / "out"), trap)
    assert is_outside(str(trap.parent / "tool"), trap)
    assert not is_outside("bin/rg", trap)
