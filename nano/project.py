"""A small Python project with planted bugs: random names, files and layouts."""

import random
import sys
from dataclasses import dataclass

from nano.bugs import KINDS, TWIN_KINDS, Function, draw, draw_twin
from nano.words import NOUNS, made_up


@dataclass(frozen=True, slots=True)
class Planted:
    """A bug in place. `old` -> `new` mends it; `context` is the line above `old` (without indentation)."""

    function: Function
    path: str
    old: str
    new: str
    context: str


@dataclass(frozen=True, slots=True)
class Project:
    """`files` maps relative POSIX paths to text, bugs included; `tests` counts the test functions."""

    files: dict[str, str]
    bugs: tuple[Planted, ...]
    tests: int

    @property
    def sources(self) -> list[str]:
        """Modules that hold functions, tests aside."""
        return [
            path
            for path, text in self.files.items()
            if "def " in text and not path.split("/")[-1].startswith("test_")
        ]


_HEADERS = (
    "Tools for {}s.",
    "Work with {}s.",
    "Functions about {}s.",
    "Small helpers for {}s.",
    "The {} module.",
)


def make_project(rng: random.Random, bugs: int = 1, twin: bool = False) -> Project:
    """Draw a project with `bugs` planted bugs (0 for a green one), each in another function.

    With `twin`, the wrong line also stands in a function of the same file where it is right.
    """
    while True:
        project = _attempt(rng, bugs, twin)
        if project is not None:
            return project


def _attempt(rng: random.Random, bugs: int, twin: bool) -> Project | None:
    modules = 1 if twin or rng.random() < 0.6 else 2
    names = [made_up(rng) if rng.random() < 0.1 else rng.choice(NOUNS) for _ in range(modules)]
    names = [name + rng.choice(("", "", "s", "_tools", "_utils")) for name in names]
    if len(set(names)) < modules or any(name in sys.stdlib_module_names for name in names):
        return None
    groups = [[draw(rng, rng.choice(KINDS)) for _ in range(rng.choice((1, 2, 2, 3)))] for _ in names]
    if twin:
        kind = rng.choice(TWIN_KINDS)
        first = draw(rng, kind)
        second = draw_twin(rng, kind, first)
        if second is None:
            return None
        groups = [[first, second, *groups[0][:1]]]
    everything = [function for group in groups for function in group]
    if len({function.name for function in everything}) < len(everything) or bugs > len(everything):
        return None
    if len({function.doc for function in everything}) < len(everything):
        return None
    sick = [everything[0], *rng.sample(everything[1:], bugs - 1)] if twin else rng.sample(everything, bugs)
    for group in groups:
        rng.shuffle(group)
    folder, prefix, tests, extra = _layout(rng)
    files: dict[str, str] = dict(extra)
    planted: list[Planted] = []
    for name, group in zip(names, groups, strict=True):
        path = f"{folder}{name}.py"
        header = rng.choice(_HEADERS).format(name.split("_")[0].rstrip("s"))
        text, found = _module(header, group, sick, path, rng.random() < 0.7)
        if found is None:
            return None
        files[path] = text
        planted += found
        files[f"{tests}test_{name}.py"] = _tests(rng, f"{prefix}{name}", group)
    return Project(files, tuple(planted), len(everything))


def _layout(rng: random.Random) -> tuple[str, str, str, dict[str, str]]:
    """Where modules live, how they are imported, where tests live, and what else the layout needs."""
    package = (
        made_up(rng)
        if rng.random() < 0.3
        else rng.choice([n for n in NOUNS if n not in sys.stdlib_module_names])
    )
    match rng.choice(("flat", "flat", "tests", "package", "src")):
        case "flat":
            return "", "", "", {}
        case "tests":
            return "", "", "tests/", {}
        case "package":
            return f"{package}/", f"{package}.", "tests/", {f"{package}/__init__.py": ""}
        case _:
            settings = '[tool.pytest.ini_options]\npythonpath = ["src"]\n'
            files = {f"src/{package}/__init__.py": "", "pyproject.toml": settings}
            return f"src/{package}/", f"{package}.", "tests/", files


def _module(
    header: str, group: list[Function], sick: list[Function], path: str, with_header: bool
) -> tuple[str, list[Planted] | None]:
    missing = [f for f in group if f.module and f in sick]
    imports = sorted({f.module for f in group if f.module} - {f.module for f in missing})
    if missing and (len([f for f in group if f.module]) > 1):
        return "", None
    top: list[str] = []
    docstring = f'"""{header}"""'
    if with_header or missing:
        top.append(docstring)
    if imports:
        top.append("\n".join(f"import {name}" for name in imports))
    bodies = [function.broken if function in sick else function.source for function in group]
    text = "\n\n".join(top) + ("\n\n\n" if top else "") + "\n\n".join(bodies)
    planted: list[Planted] = []
    rows = text.split("\n")
    for function in group:
        if function not in sick:
            continue
        if function.module:
            planted.append(Planted(function, path, docstring, f"{docstring}\n\nimport {function.module}", ""))
            continue
        at = rows.index(f"def {function.name}({_parameters(function)}):")
        where = next(i for i in range(at, len(rows)) if rows[i].strip() == function.wrong)
        planted.append(Planted(function, path, function.wrong, function.right, rows[where - 1].strip()))
    return text, planted


def _parameters(function: Function) -> str:
    return function.broken.split("\n", 1)[0].split("(", 1)[1][:-2]


def _tests(rng: random.Random, module: str, group: list[Function]) -> str:
    raises = any(check.raises for function in group for check in function.checks)
    head = "import pytest\n\n" if raises else ""
    head += f"from {module} import {', '.join(sorted(f.name for f in group))}\n"
    tests = [_test(rng, function) for function in rng.sample(group, len(group))]
    return head + "\n\n" + "\n\n".join(tests)


def _test(rng: random.Random, function: Function) -> str:
    style = rng.random()
    rows = [f"def test_{function.name}():"]
    for check in function.checks:
        if check.raises:
            rows += [f"    with pytest.raises({check.raises}):", f"        {check.call}"]
        elif style < 0.12:
            rows += [f"    result = {check.call}", f"    assert result == {_literal(check.value)}"]
        elif check.value is True and style < 0.6:
            rows.append(f"    assert {check.call}")
        elif check.value is False and style < 0.6:
            rows.append(f"    assert not {check.call}")
        elif isinstance(check.value, bool) or check.value is None:
            rows.append(f"    assert {check.call} is {check.value}")
        else:
            rows.append(f"    assert {check.call} == {_literal(check.value)}")
    return "\n".join(rows) + "\n"


def _literal(value: object) -> str:
    text = repr(value)
    return text.replace("'", '"') if '"' not in text else text
