"""Wrong conditions: comparisons, boolean logic, branches."""

import random

from nano.bugs.function import Kind, Sketch
from nano.words import SEQUENCES, argument_names

_COMPARISONS = {
    ">": ("greater than", "above", "more than"),
    "<": ("less than", "below", "smaller than"),
    ">=": ("at least", "not less than"),
    "<=": ("at most", "not greater than"),
    "==": ("equal to",),
    "!=": ("different from", "not equal to"),
}


def _around(rng: random.Random) -> tuple[str, ...]:
    x = rng.randint(3, 30)
    return (f"{x}, {x}", f"{x + rng.randint(1, 9)}, {x}", f"{x}, {x + rng.randint(1, 9)}")


def comparison(rng: random.Random) -> Sketch:
    """The wrong comparison operator."""
    a, b = argument_names(rng, 2)
    right, wrong = rng.sample(list(_COMPARISONS), 2)
    doc = f"Return True if {a} is {rng.choice(_COMPARISONS[right])} {b}."
    line, bad = f"return {a} {right} {b}", f"return {a} {wrong} {b}"
    return Sketch(f"{a}, {b}", doc, (line,), line, bad, _around(rng))


def threshold(rng: random.Random) -> Sketch:
    """A comparison with a constant, off by one or turned round."""
    (a,) = argument_names(rng, 1)
    limit = rng.randint(5, 60)
    right, wrong = rng.sample((">", "<", ">=", "<="), 2)
    doc = f"Return True if {a} is {rng.choice(_COMPARISONS[right])} {limit}."
    line, bad = f"return {a} {right} {limit}", f"return {a} {wrong} {limit}"
    return Sketch(a, doc, (line,), line, bad, (str(limit), str(limit + 1), str(limit - 1)))


def between(rng: random.Random) -> Sketch:
    """`or` where both must hold, or the reverse."""
    a, low, high = argument_names(rng, 3)
    x, y = rng.randint(2, 10), rng.randint(20, 40)
    if rng.random() < 0.5:
        doc = f"Return True if {a} is at least {low} and at most {high}."
        line, bad = f"return {a} >= {low} and {a} <= {high}", f"return {a} >= {low} or {a} <= {high}"
    else:
        doc = f"Return True if {a} is less than {low} or greater than {high}."
        line, bad = f"return {a} < {low} or {a} > {high}", f"return {a} < {low} and {a} > {high}"
    calls = (f"{rng.randint(x, y)}, {x}, {y}", f"{y + 3}, {x}, {y}", f"{x - 1}, {x}, {y}")
    return Sketch(f"{a}, {low}, {high}", doc, (line,), line, bad, calls)


def both(rng: random.Random) -> Sketch:
    """`and` for `or` between two flags."""
    a, b = rng.sample(
        ("active", "valid", "open", "ready", "paid", "known", "signed", "public", "visible", "locked"), 2
    )
    if rng.random() < 0.5:
        doc, line, bad = (
            f"Return True if both {a} and {b} are true.",
            f"return {a} and {b}",
            f"return {a} or {b}",
        )
    else:
        doc, line, bad = f"Return True if {a} or {b} is true.", f"return {a} or {b}", f"return {a} and {b}"
    return Sketch(f"{a}, {b}", doc, (line,), line, bad, ("True, False", "True, True", "False, True"))


def parity(rng: random.Random) -> Sketch:
    """Even for odd."""
    (a,) = argument_names(rng, 1)
    word, right, wrong = rng.choice((("even", 0, 1), ("odd", 1, 0)))
    line, bad = f"return {a} % 2 == {right}", f"return {a} % 2 == {wrong}"
    x = rng.randint(1, 20) * 2
    return Sketch(a, f"Return True if {a} is {word}.", (line,), line, bad, (str(x), str(x + 1)))


def divisible(rng: random.Random) -> Sketch:
    """A divisibility test that is turned round."""
    a, b = argument_names(rng, 2)
    line = f"return {a} % {b} == 0"
    bad = rng.choice((f"return {a} % {b} == 1", f"return {a} % {b} != 0", f"return {b} % {a} == 0"))
    y = rng.randint(2, 9)
    calls = (f"{y * rng.randint(2, 9)}, {y}", f"{y * rng.randint(2, 9) + 1}, {y}")
    doc = rng.choice((f"Return True if {a} is divisible by {b}.", f"Return True if {b} divides {a}."))
    return Sketch(f"{a}, {b}", doc, (line,), line, bad, calls)


def empty(rng: random.Random) -> Sketch:
    """An emptiness test that is turned round."""
    a = rng.choice(SEQUENCES)
    if rng.random() < 0.5:
        doc, right, wrong = f"Return True if {a} is empty.", "==", rng.choice(("!=", ">"))
    else:
        doc, right, wrong = f"Return True if {a} is not empty.", ">", rng.choice(("==", "<"))
    line, bad = f"return len({a}) {right} 0", f"return len({a}) {wrong} 0"
    return Sketch(a, doc, (line,), line, bad, ("[]", f"[{rng.randint(1, 9)}]"))


def member(rng: random.Random) -> Sketch:
    """`in` for `not in`."""
    a, s = argument_names(rng, 1)[0], rng.choice(SEQUENCES)
    if rng.random() < 0.5:
        doc, line, bad = f"Return True if {a} is in {s}.", f"return {a} in {s}", f"return {a} not in {s}"
    else:
        doc, line, bad = f"Return True if {a} is not in {s}.", f"return {a} not in {s}", f"return {a} in {s}"
    x = rng.randint(1, 9)
    return Sketch(f"{a}, {s}", doc, (line,), line, bad, (f"{x}, [{x}, {x + 2}]", f"{x}, [{x + 1}, {x + 3}]"))


def branch(rng: random.Random) -> Sketch:
    """A branch taken on the wrong side of the limit."""
    a, limit = argument_names(rng, 1)[0], rng.randint(5, 50)
    first, second = rng.sample(
        ("low", "high", "small", "big", "cheap", "free", "full", "late", "early", "warm", "cold"), 2
    )
    right, wrong = rng.sample((">", "<", ">=", "<="), 2)
    words = rng.choice(_COMPARISONS[right])
    doc = f"Return '{first}' if {a} is {words} {limit}, else '{second}'."
    line, bad = f"if {a} {right} {limit}:", f"if {a} {wrong} {limit}:"
    body = (line, f'    return "{first}"', f'return "{second}"')
    return Sketch(a, doc, body, line, bad, (str(limit), str(limit + 4), str(limit - 3)))


KINDS: tuple[Kind, ...] = (
    comparison,
    comparison,
    threshold,
    between,
    both,
    parity,
    divisible,
    empty,
    member,
    branch,
)
