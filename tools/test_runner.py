"""Which test runner a project uses, and the exact command that runs it."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from tools.programs import is_outside

LARGEST_CONFIG = 1 << 20
PYTEST = "-m pytest -q --tb=short --color=no -p no:cacheprovider"
LOOKED_FOR = (
    "pytest (pytest.ini, conftest.py, test_*.py, tests/), Cargo.toml, go.mod, "
    "a test script in package.json, a test target in a Makefile"
)


@dataclass(frozen=True, slots=True)
class Runner:
    """A test runner by name, and its command without a target."""

    name: str
    command: str

    def with_target(self, target: str) -> str:
        """The command for one target, or for all tests."""
        if not target:
            return {"go": f"{self.command} ./..."}.get(self.name, self.command)
        separator = " --" if self.name == "npm" else ""
        return f"{self.command}{separator} {shlex.quote(target)}"


def find_runner(root: Path) -> Runner | None:
    """The runner of the project in `root`: pytest when configured, then the others, then pytest by files."""
    if _pytest_is_configured(root):
        return Runner("pytest", pytest_command(root))
    others: tuple[tuple[Callable[[Path], bool], Runner], ...] = (
        (_is_cargo, Runner("cargo", "cargo test --color never")),
        (_is_go, Runner("go", "go test")),
        (_npm_has_tests, Runner("npm", "npm test --silent")),
        (_makefile_has_tests, Runner("make", "make test")),
    )
    for is_there, runner in others:
        if is_there(root):
            return runner
    if (root / "tests").is_dir() or any(root.glob("*/test_*.py")):
        return Runner("pytest", pytest_command(root))
    return None


def pytest_command(root: Path) -> str:
    """pytest by the project's own Python, else the one on PATH, else Glimmer's."""
    return f"PYTHONDONTWRITEBYTECODE=1 {_python(root)} {PYTEST}"


def _python(root: Path) -> str:
    for folder in (".venv", "venv"):
        if (root / folder / "bin" / "python").exists():
            return f"{folder}/bin/python"
    found = ""
    for name in ("python3", "python"):
        program = shutil.which(name)
        if not program or not is_outside(program, root):
            continue
        if _has_pytest(program):
            return name
        found = found or name
    if find_spec("pytest") is not None:
        return shlex.quote(sys.executable)
    return found or "python3"


def _has_pytest(program: str) -> bool:
    probe = "import importlib.util as u, sys; sys.exit(u.find_spec('pytest') is None)"
    try:
        done = subprocess.run(
            [program, "-I", "-c", probe],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=20,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _pytest_is_configured(root: Path) -> bool:
    settings = ("pytest.ini", ".pytest.ini", "conftest.py", "tests/conftest.py")
    if any((root / name).is_file() for name in settings):
        return True
    if "pytest" in _text(root / "pyproject.toml") or "[pytest]" in _text(root / "tox.ini"):
        return True
    if "[tool:pytest]" in _text(root / "setup.cfg"):
        return True
    patterns = ("test_*.py", "*_test.py", "tests/test_*.py", "test/test_*.py", "tests/*/test_*.py")
    return any(path.is_file() for pattern in patterns for path in root.glob(pattern))


def _is_cargo(root: Path) -> bool:
    return (root / "Cargo.toml").is_file()


def _is_go(root: Path) -> bool:
    return (root / "go.mod").is_file()


def _npm_has_tests(root: Path) -> bool:
    try:
        package = json.loads(_text(root / "package.json") or "{}")
        script = package["scripts"]["test"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return False
    return isinstance(script, str) and "no test specified" not in script


def _makefile_has_tests(root: Path) -> bool:
    return any(
        re.search(r"^test\s*:(?!=)", _text(root / name), re.MULTILINE)
        for name in ("GNUmakefile", "makefile", "Makefile")
    )


def _text(file: Path) -> str:
    """A small configuration file's text, "" when there is none to read."""
    try:
        if not file.is_file():
            return ""
        with file.open("rb") as stream:
            return stream.read(LARGEST_CONFIG).decode("utf-8", "replace")
    except OSError:
        return ""
