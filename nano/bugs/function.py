"""A function drawn at random, right and wrong, with calls that tell the two apart."""

import random
from collections.abc import Callable
from dataclasses import dataclass

from nano.words import function_name


@dataclass(frozen=True, slots=True)
class Sketch:
    """What a kind of bug fixes; names and expected values are still open.

    `body` holds the lines under the docstring, indented from 0; the line `right` among them becomes `wrong`.
    `calls` are argument lists as source text; at least one must tell right from wrong.
    """

    parameters: str
    doc: str
    body: tuple[str, ...]
    right: str
    wrong: str
    calls: tuple[str, ...]
    module: str = ""
    wrong_parameters: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """One call and the Python expression it must equal, or the exception it must raise."""

    call: str
    value: object = None
    raises: str = ""


@dataclass(frozen=True, slots=True)
class Function:
    """`source` is right; `broken` differs in one line, `right` -> `wrong` (both without indentation)."""

    name: str
    doc: str
    source: str
    broken: str
    right: str
    wrong: str
    checks: tuple[Check, ...]
    module: str = ""


Kind = Callable[[random.Random], Sketch]


def draw(rng: random.Random, kind: Kind) -> Function:
    """Draw a function of a kind whose calls really tell right from wrong."""
    while True:
        sketch = kind(rng)
        name = function_name(rng)
        function = _build(name, sketch)
        if function is not None:
            return function


def draw_twin(rng: random.Random, kind: Kind, other: Function) -> Function | None:
    """A function of the kind that is right with the very line that is wrong in `other`; None if unlucky."""
    for _ in range(2000):
        sketch = kind(rng)
        if sketch.right == other.wrong and sketch.doc != other.doc:
            return _build(function_name(rng), sketch)
    return None


def _source(name: str, parameters: str, doc: str, body: tuple[str, ...]) -> str:
    inner = "\n".join("    " + line for line in body)
    return f'def {name}({parameters}):\n    """{doc}"""\n{inner}\n'


def _build(name: str, sketch: Sketch) -> Function | None:
    source = _source(name, sketch.parameters, sketch.doc, sketch.body)
    if sketch.wrong_parameters:
        right, wrong = f"def {name}({sketch.parameters}):", f"def {name}({sketch.wrong_parameters}):"
        broken = source.replace(right, wrong)
    else:
        right, wrong = sketch.right, sketch.wrong
        where = [i for i, line in enumerate(sketch.body) if line.strip() == right]
        if len(where) != 1:
            return None
        body = list(sketch.body)
        indent = body[where[0]][: len(body[where[0]]) - len(right)]
        body[where[0]] = indent + wrong
        broken = _source(name, sketch.parameters, sketch.doc, tuple(body))
    checks: list[Check] = []
    differ = False
    for call in sketch.calls:
        text = f"{name}({call})"
        good = _outcome(source, text, sketch.module)
        bad = _outcome(broken, text, "" if sketch.right == sketch.wrong else sketch.module)
        if good.raises and good.raises not in ("ValueError", "TypeError", "KeyError"):
            return None
        if isinstance(good.value, float) and len(repr(good.value)) > 6:
            return None
        differ = (
            differ
            or (good.value, good.raises) != (bad.value, bad.raises)
            or type(good.value) is not type(bad.value)
        )
        checks.append(good)
    if not differ:
        return None
    return Function(name, sketch.doc, source, broken, right, wrong, tuple(checks), sketch.module)


def _outcome(source: str, call: str, module: str) -> Check:
    scope: dict[str, object] = {}
    if module:
        exec(f"import {module}", scope)
    try:
        exec(source, scope)
        return Check(call, value=eval(call, scope))
    except Exception as error:
        return Check(call, raises=type(error).__name__)
