"""Wrong arithmetic: operators, constants, order, rounding."""

import random

from nano.bugs.function import Kind, Sketch
from nano.words import argument_names

_OPERATORS = {
    "+": ("Return the sum of {a} and {b}.", "Add {a} and {b}.", "Return {a} plus {b}."),
    "-": ("Return the difference of {a} and {b}.", "Subtract {b} from {a}.", "Return {a} minus {b}."),
    "*": ("Return the product of {a} and {b}.", "Multiply {a} by {b}.", "Return {a} times {b}."),
    "//": ("Return the floor division of {a} by {b}.", "Return how many whole times {b} fits into {a}."),
    "%": ("Return the remainder of {a} divided by {b}.", "Return what is left of {a} after dividing by {b}."),
    "**": ("Return {a} to the power of {b}.", "Raise {a} to the power of {b}."),
}


def _pairs(rng: random.Random, count: int = 2) -> tuple[str, ...]:
    return tuple(f"{rng.randint(2, 12)}, {rng.randint(2, 5)}" for _ in range(count))


def operator(rng: random.Random) -> Sketch:
    """`a - b` where a product was promised."""
    a, b = argument_names(rng, 2)
    right, wrong = rng.sample(list(_OPERATORS), 2)
    doc = rng.choice(_OPERATORS[right]).format(a=a, b=b)
    if rng.random() < 0.6:
        line, bad = f"return {a} {right} {b}", f"return {a} {wrong} {b}"
        return Sketch(f"{a}, {b}", doc, (line,), line, bad, _pairs(rng))
    line, bad = f"result = {a} {right} {b}", f"result = {a} {wrong} {b}"
    return Sketch(f"{a}, {b}", doc, (line, "return result"), line, bad, _pairs(rng))


def swapped(rng: random.Random) -> Sketch:
    """The operands in the wrong order."""
    a, b = argument_names(rng, 2)
    op = rng.choice(("-", "//", "%"))
    doc = rng.choice(_OPERATORS[op]).format(a=a, b=b)
    line, bad = f"return {a} {op} {b}", f"return {b} {op} {a}"
    return Sketch(f"{a}, {b}", doc, (line,), line, bad, _pairs(rng))


def three_terms(rng: random.Random) -> Sketch:
    """One of two operators is wrong."""
    a, b, c = argument_names(rng, 3)
    form = rng.choice(
        (
            (f"Return {a} times {b}, plus {c}.", f"return {a} * {b} + {c}", f"return {a} * {b} - {c}"),
            (f"Return {a} times {b}, minus {c}.", f"return {a} * {b} - {c}", f"return {a} * {b} + {c}"),
            (f"Return the sum of {a}, {b} and {c}.", f"return {a} + {b} + {c}", f"return {a} + {b} - {c}"),
            (f"Return {a} plus {b}, times {c}.", f"return ({a} + {b}) * {c}", f"return {a} + {b} * {c}"),
        )
    )
    calls = tuple(f"{rng.randint(2, 9)}, {rng.randint(2, 9)}, {rng.randint(2, 9)}" for _ in range(2))
    return Sketch(f"{a}, {b}, {c}", form[0], (form[1],), form[1], form[2], calls)


def constant(rng: random.Random) -> Sketch:
    """A constant that is not the promised one."""
    (a,) = argument_names(rng, 1)
    right, wrong = rng.sample(range(2, 13), 2)
    op, words = rng.choice(
        (("+", f"{a} plus {right}"), ("*", f"{a} times {right}"), ("-", f"{a} minus {right}"))
    )
    line, bad = f"return {a} {op} {right}", f"return {a} {op} {wrong}"
    return Sketch(
        a, f"Return {words}.", (line,), line, bad, (str(rng.randint(3, 20)), str(rng.randint(3, 20)))
    )


def unit(rng: random.Random) -> Sketch:
    """A conversion with the wrong number of units."""
    a, doc, right, wrong = rng.choice(
        (
            ("hours", "Return hours in minutes, with 60 minutes an hour.", 60, rng.choice((24, 100, 6))),
            ("days", "Return days in hours, with 24 hours a day.", 24, rng.choice((12, 60, 7))),
            ("weeks", "Return weeks in days, with 7 days a week.", 7, rng.choice((5, 24, 12))),
            (
                "meters",
                "Return meters in centimeters, with 100 centimeters a meter.",
                100,
                rng.choice((10, 1000, 60)),
            ),
            ("feet", "Return feet in inches, with 12 inches a foot.", 12, rng.choice((10, 16, 24))),
            ("dozens", "Return dozens in pieces, with 12 pieces a dozen.", 12, rng.choice((10, 6, 20))),
        )
    )
    line, bad = f"return {a} * {right}", f"return {a} * {wrong}"
    return Sketch(a, doc, (line,), line, bad, (str(rng.randint(1, 9)), str(rng.randint(2, 9))))


def extreme(rng: random.Random) -> Sketch:
    """`min` where `max` was promised."""
    a, b = argument_names(rng, 2)
    word, right, wrong = rng.choice((("larger", "max", "min"), ("smaller", "min", "max")))
    line, bad = f"return {right}({a}, {b})", f"return {wrong}({a}, {b})"
    calls = (f"{rng.randint(1, 20)}, {rng.randint(21, 40)}", f"{rng.randint(21, 40)}, {rng.randint(1, 20)}")
    return Sketch(f"{a}, {b}", f"Return the {word} of {a} and {b}.", (line,), line, bad, calls)


def distance(rng: random.Random) -> Sketch:
    """A distance that can be negative."""
    a, b = argument_names(rng, 2)
    line, bad = f"return abs({a} - {b})", rng.choice((f"return {a} - {b}", f"return abs({a} + {b})"))
    calls = (f"{rng.randint(1, 9)}, {rng.randint(10, 30)}", f"{rng.randint(10, 30)}, {rng.randint(1, 9)}")
    doc = rng.choice(
        (f"Return the distance between {a} and {b}.", f"Return the absolute difference of {a} and {b}.")
    )
    return Sketch(f"{a}, {b}", doc, (line,), line, bad, calls)


def clamp(rng: random.Random) -> Sketch:
    """Limits the wrong way round."""
    a, b = argument_names(rng, 2)
    if rng.random() < 0.5:
        doc, right, wrong = f"Return {a}, but at most {b}.", "min", "max"
    else:
        doc, right, wrong = f"Return {a}, but at least {b}.", "max", "min"
    line, bad = f"return {right}({a}, {b})", f"return {wrong}({a}, {b})"
    calls = (f"{rng.randint(1, 20)}, {rng.randint(21, 40)}", f"{rng.randint(21, 40)}, {rng.randint(1, 20)}")
    return Sketch(f"{a}, {b}", doc, (line,), line, bad, calls)


def percent(rng: random.Random) -> Sketch:
    """A percentage divided by the wrong number."""
    a, b = argument_names(rng, 2)
    line = f"return {a} * {b} // 100"
    bad = rng.choice((f"return {a} * {b} // 10", f"return {a} + {b} // 100", f"return {a} * {b} // 1000"))
    calls = (
        f"{rng.randint(1, 9) * 100}, {rng.randint(2, 60)}",
        f"{rng.randint(1, 9) * 100}, {rng.randint(2, 60)}",
    )
    return Sketch(f"{a}, {b}", f"Return {b} percent of {a}.", (line,), line, bad, calls)


def default(rng: random.Random) -> Sketch:
    """A default value that is not the documented one."""
    a, b = argument_names(rng, 2)
    right, wrong = rng.sample(range(2, 12), 2)
    op, word = rng.choice((("*", "times"), ("+", "plus")))
    line = f"return {a} {op} {b}"
    calls = (str(rng.randint(3, 20)), f"{rng.randint(3, 20)}, {rng.randint(3, 9)}")
    doc = f"Return {a} {word} {b}, which is {right} unless given."
    return Sketch(f"{a}, {b}={right}", doc, (line,), line, line, calls, wrong_parameters=f"{a}, {b}={wrong}")


def no_return(rng: random.Random) -> Sketch:
    """The result is computed but not returned."""
    a, b = argument_names(rng, 2)
    op = rng.choice(("+", "-", "*"))
    doc = rng.choice(_OPERATORS[op]).format(a=a, b=b)
    line, bad = f"return {a} {op} {b}", f"{a} {op} {b}"
    return Sketch(f"{a}, {b}", doc, (line,), line, bad, _pairs(rng))


KINDS: tuple[Kind, ...] = (
    operator,
    operator,
    swapped,
    three_terms,
    constant,
    unit,
    extreme,
    distance,
    clamp,
    percent,
    default,
    no_return,
)
