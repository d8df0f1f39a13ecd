"""The sample project of `glimmer demo`: a few functions, one bug, and the test that shows it."""

from importlib.resources import files
from itertools import count
from pathlib import Path

DEFAULT_NAME = "glimmer-demo"
FILES = ("README.md", "cart.py", "pytest.ini", "test_cart.py")


class DemoRefused(Exception):
    """The sample project cannot be written there. The message is for the person."""


def write_demo(target: Path | None, beside: Path) -> Path:
    """Write the sample project and return its folder.

    `target` must be new or empty. Without one, a new folder `glimmer-demo` is made in `beside`, numbered when
    the name is taken. No file is ever replaced. Raises DemoRefused.
    """
    try:
        folder = _fresh(beside) if target is None else _empty(target)
        source = files("glimmer_tui").joinpath("demo_project")
        for name in FILES:
            with (folder / name).open("xb") as file:
                file.write(source.joinpath(name).read_bytes())
    except OSError as problem:
        where = problem.filename or target or beside
        raise DemoRefused(f"The sample project cannot be written: {where}: {problem.strerror}.") from problem
    return folder


def _fresh(beside: Path) -> Path:
    for number in count(1):
        folder = beside / (DEFAULT_NAME if number == 1 else f"{DEFAULT_NAME}-{number}")
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        return folder
    raise AssertionError("counting never ends")


def _empty(target: Path) -> Path:
    target.mkdir(parents=True, exist_ok=True)
    if any(target.iterdir()):
        raise DemoRefused(f"{target} is not empty. Name a new or an empty folder with --dir.")
    return target
