"""Run pytest in a forked child of a process that already imported it: the same output, thirty times sooner.

The command is the one the `test` tool runs; only the start of a new interpreter is saved.
"""

import contextlib
import functools
import gc
import io
import os
import sys
import tempfile
from pathlib import Path

import pytest

ARGUMENTS = ("-q", "--tb=short", "--color=no", "-p", "no:cacheprovider")
_SILENT = (
    "junitxml",
    "pastebin",
    "doctest",
    "setuponly",
    "setupplan",
    "stepwise",
    "debugging",
    "faulthandler",
    "nose",
)


@functools.cache
def _warm() -> None:
    """Let pytest import its own plugins once, so that each child starts with them."""
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        (Path(folder) / "test_warm.py").write_text("def test_warm():\n    assert [1] == [2]\n")
        pytest.main([*ARGUMENTS, "-p", "no:assertion", folder])


def run_pytest(root: Path) -> tuple[str, int]:
    """Raw output (plain LF line ends, 80 columns) and exit code of pytest in `root`."""
    _warm()
    with tempfile.TemporaryFile() as sink:
        child = os.fork()
        if child == 0:
            _child(root, sink.fileno())
        _, status = os.waitpid(child, 0)
        sink.seek(0)
        return sink.read().decode(), os.waitstatus_to_exitcode(status)


def _child(root: Path, sink: int) -> None:
    code = 70
    gc.freeze()  # pytest collects garbage five times at its end
    try:
        os.dup2(sink, 1)
        os.dup2(sink, 2)
        os.chdir(root)
        os.environ.update(COLUMNS="80", PYTHONDONTWRITEBYTECODE="1")
        sys.dont_write_bytecode = True
        sys.stdout = os.fdopen(1, "w", closefd=False)
        sys.stderr = os.fdopen(2, "w", closefd=False)
        sys.path.insert(0, str(root))
        code = int(pytest.main([*ARGUMENTS, *(word for name in _SILENT for word in ("-p", f"no:{name}"))]))
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)
