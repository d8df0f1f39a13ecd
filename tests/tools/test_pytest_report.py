import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tools.pytest_report import format_pytest
from tools.test_runner import PYTEST


def report(root, *target):
    done = subprocess.run(
        [sys.executable, "-B", *PYTEST.split(), *target],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    return format_pytest(done.stdout + done.stderr, done.returncode)


@pytest.fixture
def project(root):
    (root / "test_it.py").write_text(
        "import warnings\n\n"
        "def test_good():\n    pass\n\n"
        "def test_warns():\n    warnings.warn('old')\n\n"
        "def test_bad():\n    print('-' * 30)\n    assert {'a': 1} == {'a': 2}\n"
    )
    return root


def test_a_good_run_is_one_line(project):
    assert report(project, "test_it.py::test_good") == "Tests passed: 1 passed (pytest)."
    assert report(project, "test_it.py::test_warns") == "Tests passed: 1 passed (pytest)."


def test_a_failing_run_is_its_counts_and_the_failures(project):
    assert report(project) == (
        "Tests failed: 1 failed, 2 passed (pytest).\n\n"
        "=== FAILURES ===\n"
        "___ test_bad ___\n"
        "test_it.py:11: in test_bad\n"
        "    assert {'a': 1} == {'a': 2}\n"
        "E   AssertionError: assert {'a': 1} == {'a': 2}\n"
        "E     \n".replace("     \n", "\n")
        + "E     Differing items:\n"
        "E     {'a': 1} != {'a': 2}\n"
        "E     Use -v to get more diff\n"
        "--- Captured stdout call ---\n"
        "---\n"
        "=== short test summary info ===\n"
        "FAILED test_it.py::test_bad - AssertionError: assert {'a': 1} == {'a': 2}"
    )


def test_a_file_that_cannot_be_imported_is_an_error(root):
    (root / "test_it.py").write_text("import nothing_like_it\n")
    text = report(root)
    assert text.startswith("Tests failed: 1 error (pytest).\n\n=== ERRORS ===\n")
    assert "E   ModuleNotFoundError: No module named 'nothing_like_it'" in text
    assert " in 0." not in text


def test_no_tests_and_no_such_target(root):
    (root / "test_it.py").touch()
    assert report(root) == "No tests ran (pytest)."
    assert report(root, "gone.py") == (
        "Tests failed (pytest, exit code 4).\n\nERROR: file or directory not found: gone.py"
    )


@pytest.mark.parametrize("options", ["-q", "-v", "-vv", "--durations=3 -rA"])
def test_the_projects_own_options_leave_a_report(project, options):
    (project / "pytest.ini").write_text(f"[pytest]\naddopts = {options}\n")
    text = report(project)
    assert text.startswith("Tests failed")
    assert "test_it.py:11: in test_bad" in text
    assert "[100%]" not in text
    assert "test session starts" not in text
    assert "slowest" not in text


def test_a_long_report_keeps_its_beginning_and_its_end():
    body = "".join(f"E   line {n}\n" for n in range(5000))
    summary = "==== short test summary info ====\nFAILED a\n1 failed in 0.02s\n"
    raw = f"F [100%]\n==== FAILURES ====\n{body}{summary}"
    text = format_pytest(raw, 1)
    assert len(text) < 13_000
    assert text.startswith("Tests failed: 1 failed (pytest).\n\n=== FAILURES ===\nE   line 0\n")
    assert "\n[cut: " in text
    assert text.endswith("=== short test summary info ===\nFAILED a")


def test_what_a_test_prints_is_no_status():
    raw = "==== FAILURES ====\nprinted:\n9 passed in 1.00s\n1 failed, 3 passed, 2 warnings in 0.02s\n"
    assert format_pytest(raw, 1).startswith("Tests failed: 1 failed, 3 passed (pytest).")
    assert format_pytest("", 0) == "Tests passed (pytest)."
    assert format_pytest("Killed", 137) == "Tests failed (pytest, exit code 137).\n\nKilled"


@settings(deadline=None, max_examples=60)
@given(st.text(max_size=300), st.integers(0, 200))
def test_any_output_has_a_report(raw, code):
    text = format_pytest(raw, code)
    assert text.startswith(("Tests ", "No tests"))
    assert "\n\n\n" not in text
