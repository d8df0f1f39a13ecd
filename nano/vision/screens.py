"""What a terminal shows after a failing pytest run: lines of coloured text, with other commands around it.

Names are drawn as the recipe of the language model draws them. One name in twelve is set apart by its digest
and is never shown in training: a screen drawn with `unseen` shows only such names.
"""

import hashlib
import random
from dataclasses import dataclass

from nano.words import ARGUMENTS, NOUNS, SAMPLES, function_name, made_up, noun

APART = 12


@dataclass(frozen=True, slots=True)
class Span:
    """Text in one style: "plain", "bold", "red", "bright", "green", "cyan" or "dim"."""

    text: str
    style: str = "plain"


Line = tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Screen:
    """`failed` are the numbers of the lines that name failing tests, `name` is the first one's test."""

    lines: tuple[Line, ...]
    failed: tuple[int, ...]
    name: str


def text_of(line: Line) -> str:
    """A line without its colours."""
    return "".join(span.text for span in line)


def plain_line(text: str) -> Line:
    """A line without colours."""
    return (Span(text),)


def is_apart(name: str) -> bool:
    """Whether a function's name is kept for measuring."""
    return hashlib.sha256(name.encode()).digest()[0] % APART == 0


def draw_name(rng: random.Random, unseen: bool) -> str:
    """A function's name."""
    while True:
        name = function_name(rng)
        if rng.random() < 0.15:
            name = f"{name.split('_')[0]}_{made_up(rng)}"
        if is_apart(name) == unseen:
            return name


def draw_screen(rng: random.Random, unseen: bool = False) -> Screen:
    """A screen with one failing test, now and then two."""
    count = 2 if rng.random() < 0.08 else 1
    names = [draw_name(rng, unseen) for _ in range(count)]
    path = _path(rng)
    coloured = rng.random() < 0.6
    failures = [_Failure(rng, name, path) for name in names]
    body: list[Line] = [*other_commands(rng), *_head(rng, path, count)]
    body.append(_rule("=", "FAILURES"))
    for failure in failures:
        body += failure.shown()
    body.append((Span(_ruled("=", "short test summary info"), "cyan" if coloured else "plain"),))
    first = len(body)
    body += [failure.summary(coloured) for failure in failures]
    body.append(_end(rng, count, coloured))
    body += _after(rng)
    lines = tuple(line if coloured else plain_line(text_of(line)) for line in body)
    return Screen(lines, tuple(range(first, first + count)), f"test_{names[0]}")


class _Failure:
    """One failing test and what pytest tells of it."""

    def __init__(self, rng: random.Random, name: str, path: str) -> None:
        self._name, self._path, self._row = name, path, rng.randrange(4, 40)
        left, right = _value(rng), _value(rng)
        self._call = f"{name}({_value(rng)})"
        self._more: list[str] = []
        match rng.randrange(6):
            case 0:
                left, right = repr(_word(rng)), repr(_word(rng))
                self._message = f"AssertionError: assert {left} == {right}"
                self._more = ["", f"  - {right[1:-1]}", f"  + {left[1:-1]}"]
            case 1:
                self._message = f"NameError: name '{rng.choice(ARGUMENTS)}s' is not defined"
            case 2:
                left, right = rng.choice((("True", "False"), ("False", "True")))
                self._message = f"assert {left} is {right}"
                self._more = [f" +  where {left} = {self._call}"]
            case _:
                self._message = f"assert {left} == {right}"
                self._more = [f" +  where {left} = {self._call}"]
        self._wanted = right

    def shown(self) -> list[Line]:
        rows: list[Line] = [
            (Span(_ruled("_", f"test_{self._name}"), "bright"),),
            (Span(f"{self._path}:{self._row}: in test_{self._name}"),),
            (Span(f"    assert {self._call} == {self._wanted}"),),
            (Span(f"E   {self._message}", "red"),),
        ]
        return rows + [(Span(f"E   {row}", "red"),) for row in self._more]

    def summary(self, coloured: bool) -> Line:
        text = f"FAILED {self._path}::test_{self._name} - {self._message}"
        text = text if len(text) <= 80 else text[:77] + "..."
        at = text.find("::") + 2
        end = text.find(" - ", at) if " - " in text[at:] else len(text)
        if not coloured:
            return (Span(text),)
        return Span("FAILED", "red"), Span(text[6:at]), Span(text[at:end], "bold"), Span(text[end:])


def _path(rng: random.Random) -> str:
    name = made_up(rng) if rng.random() < 0.15 else rng.choice(NOUNS)
    return f"{rng.choice(('', '', 'tests/'))}test_{name}{rng.choice(('', 's', '_tools', '_utils'))}.py"


def _word(rng: random.Random) -> str:
    return rng.choice((rng.choice(SAMPLES), noun(rng), made_up(rng)))


def _value(rng: random.Random) -> str:
    return str(rng.choice((rng.randrange(10), rng.randrange(100), rng.randrange(1000), -rng.randrange(50))))


def _ruled(mark: str, title: str, width: int = 80) -> str:
    return f" {title} ".center(width, mark)


def _rule(mark: str, title: str) -> Line:
    return (Span(_ruled(mark, title)),)


def _prompt(rng: random.Random) -> str:
    return rng.choice(
        ("$ ", "$ ", "> ", f"~/{noun(rng)} $ ", f"{made_up(rng)}@{made_up(rng)}:~/{noun(rng)}$ ")
    )


def other_commands(rng: random.Random) -> list[Line]:
    """Up to three other commands and what they printed."""
    rows: list[Line] = []
    for _ in range(rng.choice((0, 0, 1, 2, 3))):
        rows += _other(rng)
    return rows


def _other(rng: random.Random) -> list[Line]:
    """Some other command and what it printed."""
    files = [f"{noun(rng)}.py" for _ in range(rng.randrange(1, 5))]
    match rng.randrange(5):
        case 0:
            said = ["  ".join(files)]
            command = "ls"
        case 1:
            said = [f" M {file}" for file in files]
            command = "git status --short"
        case 2:
            said = [f"{made_up(rng)[:4]}{rng.randrange(1000)} {noun(rng)} {noun(rng)}" for _ in files]
            command = "git log --oneline"
        case 3:
            said = [
                f"def {function_name(rng)}({rng.choice(ARGUMENTS)}):",
                f"    return {rng.choice(ARGUMENTS)}",
            ]
            command = f"cat {files[0]}"
        case _:
            said = []
            command = rng.choice((f"cd {noun(rng)}", f"vim {files[0]}", "clear", "git diff"))
    return [(Span(_prompt(rng), "green"), Span(command)), *((Span(row),) for row in said)]


def _head(rng: random.Random, path: str, failed: int) -> list[Line]:
    command = rng.choice(("pytest", "pytest -q", "python -m pytest", "pytest -q --tb=short"))
    dots = "".join(rng.sample("." * rng.randrange(4) + "F" * failed, k=rng.randrange(failed, failed + 1)))
    dots = "".join(rng.sample([*dots, *"..."[: rng.randrange(4)]], k=len(dots))) or "F"
    rows: list[Line] = [(Span(_prompt(rng), "green"), Span(command))]
    if rng.random() < 0.4:
        rows += [
            _rule("=", "test session starts"),
            (Span("platform linux -- Python 3.12.4, pytest-8.4.1, pluggy-1.6.0"),),
            (Span(f"rootdir: /home/{made_up(rng)}/{noun(rng)}"),),
            (Span(f"collected {rng.randrange(1, 9)} items"),),
            (Span(""),),
            (Span(f"{path} {dots}".ljust(74) + "[100%]"),),
            (Span(""),),
        ]
    else:
        rows.append((Span(dots.ljust(73) + "[100%]"),))
    return rows


def _end(rng: random.Random, failed: int, coloured: bool) -> Line:
    passed = rng.randrange(5)
    told = f"{failed} failed" + (f", {passed} passed" if passed else "")
    told += f" in 0.{rng.randrange(1, 99):02}s"
    style = "red" if coloured else "plain"
    return (Span(_ruled("=", told) if rng.random() < 0.4 else told, style),)


def _after(rng: random.Random) -> list[Line]:
    rows: list[Line] = []
    for _ in range(rng.choice((0, 0, 0, 1))):
        rows += _other(rng)
    if rng.random() < 0.7:
        rows.append((Span(_prompt(rng), "green"),))
    return rows
