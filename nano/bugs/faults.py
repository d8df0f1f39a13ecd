"""Bugs that raise: misspelt names and methods, the wrong exception, a missing import."""

import random

from nano.bugs.function import Kind, Sketch
from nano.words import SAMPLES, SEQUENCES, TEXTS, argument_names


def _misspelt(rng: random.Random, word: str) -> str:
    while True:
        i = rng.randrange(len(word) - 1)
        form = rng.choice(
            (word[:i] + word[i + 1 :], word[:i] + word[i + 1] + word[i] + word[i + 2 :], word + word[-1])
        )
        if form != word and form.isidentifier():
            return form


def misspelt_variable(rng: random.Random) -> Sketch:
    """A variable with a slip of the pen."""
    a, b = argument_names(rng, 2)
    v = rng.choice(("result", "total", "answer", "output", "value"))
    op, word = rng.choice((("+", "sum"), ("*", "product"), ("-", "difference")))
    line = f"return {v}"
    body = (f"{v} = {a} {op} {b}", line)
    calls = (f"{rng.randint(2, 12)}, {rng.randint(2, 9)}",)
    if v in (a, b):
        v = "result"
    return Sketch(
        f"{a}, {b}", f"Return the {word} of {a} and {b}.", body, line, f"return {_misspelt(rng, v)}", calls
    )


def misspelt_argument(rng: random.Random) -> Sketch:
    """An argument with a slip of the pen."""
    s = rng.choice(SEQUENCES)
    call, words = rng.choice(
        (("len", "the number of"), ("sum", "the sum of"), ("max", "the largest of"), ("sorted", "sorted"))
    )
    line, bad = f"return {call}({s})", f"return {call}({_misspelt(rng, s)})"
    return Sketch(s, f"Return {words} {s}.", (line,), line, bad, (str(rng.sample(range(1, 20), 3)),))


def misspelt_method(rng: random.Random) -> Sketch:
    """A method that does not exist."""
    t = rng.choice(TEXTS)
    method, words = rng.choice(
        (
            ("upper", "in upper case"),
            ("lower", "in lower case"),
            ("title", "in title case"),
            ("strip", "without white space at both ends"),
        )
    )
    line, bad = f"return {t}.{method}()", f"return {t}.{_misspelt(rng, method)}()"
    return Sketch(
        t, f"Return {t} {words}.", (line,), line, bad, (f'"{rng.choice(SAMPLES)} {rng.choice(SAMPLES)}"',)
    )


def wrong_exception(rng: random.Random) -> Sketch:
    """Another exception than the documented one."""
    (a,) = argument_names(rng, 1)
    right, wrong = rng.sample(("ValueError", "TypeError", "KeyError", "IndexError", "RuntimeError"), 2)
    if right in ("IndexError", "RuntimeError"):
        right, wrong = "ValueError", right
    line, bad = f'raise {right}("bad {a}")', f'raise {wrong}("bad {a}")'
    body = (f"if {a} < 0:", f"    {line}", f"return {a}")
    doc = f"Return {a}, or raise {right} if it is negative."
    return Sketch(a, doc, body, line, bad, (f"-{rng.randint(1, 9)}", str(rng.randint(1, 30))))


def missing_import(rng: random.Random) -> Sketch:
    """A module that is used but not imported; the fix is a line at the top of the file."""
    a, b = argument_names(rng, 2)
    if rng.random() < 0.5:
        line, doc = f"return math.gcd({a}, {b})", f"Return the greatest common divisor of {a} and {b}."
    else:
        line, doc = f"return math.isqrt({a} * {b})", f"Return the whole square root of {a} times {b}."
    calls = (f"{rng.randint(4, 40)}, {rng.randint(4, 40)}", f"{rng.randint(4, 40)}, {rng.randint(4, 40)}")
    return Sketch(f"{a}, {b}", doc, (line,), line, line, calls, module="math")


KINDS: tuple[Kind, ...] = (
    misspelt_variable,
    misspelt_argument,
    misspelt_method,
    wrong_exception,
    missing_import,
)
