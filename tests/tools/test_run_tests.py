import threading

import pytest

from sandbox.actions import Action
from tools.base import CommandLine, Plan, Running
from tools.run_command import RunArguments, RunTool
from tools.run_tests import TestArguments, TestTool
from tools.test_runner import find_runner

PYTEST = "-m pytest -q --tb=short --color=no -p no:cacheprovider"


@pytest.fixture
def tests(workspace, shell):
    return TestTool(workspace, shell)


@pytest.mark.parametrize(
    ("files", "name"),
    [
        ({"pytest.ini": ""}, "pytest"),
        ({"pyproject.toml": "[tool.pytest.ini_options]"}, "pytest"),
        ({"tox.ini": "[pytest]"}, "pytest"),
        ({"setup.cfg": "[tool:pytest]"}, "pytest"),
        ({"tests/test_a.py": ""}, "pytest"),
        ({"tests/readme": ""}, "pytest"),
        ({"test_a.py": "", "package.json": '{"scripts": {"test": "x"}}'}, "pytest"),
        ({"package.json": '{"scripts": {"test": "node t.js"}}', "tests/a.js": ""}, "npm"),
        ({"Cargo.toml": ""}, "cargo"),
        ({"go.mod": ""}, "go"),
        ({"Makefile": "all:\n\ntest: all\n\techo\n"}, "make"),
        ({"package.json": '{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}'}, None),
        ({"package.json": "[]", "Makefile": "test := 1\n"}, None),
        ({"package.json": "{", "main.py": ""}, None),
        ({}, None),
    ],
)
def test_the_runner_is_found_by_the_projects_files(root, files, name):
    for path, text in files.items():
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text(text)
    runner = find_runner(root)
    assert (runner and runner.name) == name


def test_no_runner_says_what_was_looked_for(tests, call):
    result = call(tests)
    assert result.error == "no_runner"
    assert "pytest" in result.for_model and "Makefile" in result.for_model


def test_the_projects_own_python_is_used_and_not_run_before_approval(root, tests):
    (root / "test_a.py").touch()
    (root / ".venv" / "bin").mkdir(parents=True)
    python = root / ".venv" / "bin" / "python"
    python.write_text("#!/bin/sh\ntouch ran\necho '3 passed in 0.02s'\n")
    python.chmod(0o755)
    plan = tests.prepare(TestArguments(target="test_a.py::test_x[a b]"))
    assert isinstance(plan, Plan)
    command = f"PYTHONDONTWRITEBYTECODE=1 .venv/bin/python {PYTEST} 'test_a.py::test_x[a b]'"
    assert plan.actions == (Action("test", command),)
    assert plan.preview == CommandLine(command, str(root), 600.0)
    assert not (root / "ran").exists()
    assert tests.apply(plan, Running()).for_model == "Tests passed: 3 passed (pytest)."
    assert (root / "ran").exists()


def test_real_tests_run_and_leave_nothing_behind(root, tests, call):
    (root / "test_a.py").write_text("def test_a():\n    assert 1 == 2\n")
    result = call(tests)
    assert result.for_model.startswith(
        "Tests failed: 1 failed (pytest).\n\n=== FAILURES ===\n___ test_a ___\n"
    )
    assert not result.is_error
    assert not {"__pycache__", ".pytest_cache"} & {path.name for path in root.iterdir()}


def test_the_tests_run_in_the_project_wherever_the_shell_is(root, shell, tests, call):
    (root / "test_a.py").write_text("def test_a():\n    pass\n")
    (root / "sub").mkdir()
    call(RunTool(shell), command="cd sub")
    assert call(tests).for_model == "Tests passed: 1 passed (pytest)."
    assert shell.cwd == str(root / "sub")


@pytest.mark.parametrize("target", ["-x", "--pdb", "a\nb", " -x"])
def test_a_target_is_never_an_option(root, tests, call, target):
    (root / "test_a.py").touch()
    assert call(tests, target=target).error == "invalid_arguments"


def test_a_target_is_one_argument(root, tests, call):
    (root / "test_a.py").touch()
    call(tests, target="x; touch owned")
    assert not (root / "owned").exists()


def test_other_runners_report_their_exit_code(root, tests, call):
    (root / "Makefile").write_text("test:\n\t@echo all good\n")
    assert call(tests).for_model == "Tests passed (make)."
    (root / "Makefile").write_text("test:\n\t@echo all bad; exit 1\n")
    result = call(tests).for_model
    assert result.startswith("Tests failed (make, exit code 2).\n\nall bad\n")


def test_tests_that_are_cancelled_say_so(root, tests):
    (root / "Makefile").write_text("test:\n\tsleep 60\n")
    plan = tests.prepare(TestArguments())
    assert isinstance(plan, Plan)
    cancelled = threading.Event()
    cancelled.set()
    result = tests.apply(plan, Running(cancelled=cancelled))
    assert result.for_model.startswith("Tests stopped before their end (make).")


@pytest.fixture
def run(shell):
    return RunTool(shell)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("echo hi", "hi\n[exit code 0]"),
        ("printf hi; false", "hi\n[exit code 1]"),
        ("true", "[exit code 0]"),
        ("printf '\\033[31mred\\033[0m\\n'", "red\n[exit code 0]"),
    ],
)
def test_output_ends_with_the_exit_code(run, call, command, expected):
    assert call(run, command=command).for_model == expected


def test_the_exact_command_is_what_is_approved(run, root):
    plan = run.prepare(RunArguments(command="  echo 'a'  ", timeout=5))
    assert isinstance(plan, Plan)
    assert plan.actions == (Action("execute", "  echo 'a'  "),)
    assert plan.preview == CommandLine("  echo 'a'  ", str(root), 5.0)


def test_a_command_approved_for_one_folder_does_not_run_in_another(run, call, root):
    (root / "sub").mkdir()
    plan = run.prepare(RunArguments(command="touch here"))
    assert isinstance(plan, Plan)
    call(run, command="cd sub")
    assert run.apply(plan, Running()).error == "changed_since"
    assert not list(root.rglob("here"))


def test_a_command_past_its_time_is_stopped(run, call):
    result = call(run, command="echo begun; sleep 60", timeout=0.5)
    assert result.for_model.startswith("begun\n[")
    assert result.for_model.endswith("\n[stopped after 0.5 s]")


def test_much_output_keeps_its_head_and_its_tail(run, call):
    text = call(run, command="seq 1 200000").for_model
    assert len(text) < 16_500
    assert text.startswith("1\n2\n")
    assert text.endswith("\n200000\n[exit code 0]")
    marks = [line for line in text.splitlines() if line.startswith("[cut:")]
    assert len(marks) == 1
    assert "in a file" in marks[0]
    whole = len("\n".join(map(str, range(1, 200001))))
    assert abs(int(marks[0].split()[1]) + len(text) - whole) < 250


@pytest.mark.parametrize(
    "arguments",
    [{"command": " "}, {"command": "a\0b"}, {"command": "a", "timeout": 0}, {"command": "a", "timeout": 4000},
     {"command": "a", "timeout": float("nan")}],
)  # fmt: skip
def test_arguments_out_of_range(run, call, arguments):
    assert call(run, **arguments).error == "invalid_arguments"
