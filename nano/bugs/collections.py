"""Wrong work on lists and dictionaries: loops, slices, indexes, accumulators."""

import random

from nano.bugs.function import Kind, Sketch
from nano.words import SEQUENCES, argument_names, noun


def _numbers(rng: random.Random, low: int = 3, high: int = 5) -> str:
    return "[" + ", ".join(str(rng.randint(1, 12)) for _ in range(rng.randint(low, high))) + "]"


def _distinct(rng: random.Random, count: int = 4) -> str:
    return str(rng.sample(range(1, 20), count))


def accumulate(rng: random.Random) -> Sketch:
    """A sum or product with the wrong start or the wrong step."""
    s, item = rng.choice(SEQUENCES), rng.choice(("item", "value", "entry", "x"))
    total = rng.choice(("total", "result"))
    word, start, step = rng.choice((("sum", 0, "+="), ("product", 1, "*=")))
    other = {"sum": ("-=", "*=", "="), "product": ("+=", "-=", "=")}[word]
    first, loop = f"{total} = {start}", f"{total} {step} {item}"
    body = (first, f"for {item} in {s}:", f"    {loop}", f"return {total}")
    doc = f"Return the {word} of {s}."
    if rng.random() < 0.5:
        return Sketch(s, doc, body, first, f"{total} = {1 - start}", (_numbers(rng), _numbers(rng)))
    return Sketch(s, doc, body, loop, f"{total} {rng.choice(other)} {item}", (_numbers(rng), _numbers(rng)))


def wrong_result(rng: random.Random) -> Sketch:
    """The wrong variable is returned."""
    s, item = rng.choice(SEQUENCES), rng.choice(("item", "value", "entry"))
    line, bad = "return total", rng.choice((f"return {s}", f"return {item}"))
    body = ("total = 0", f"for {item} in {s}:", f"    total += {item}", line)
    return Sketch(s, f"Return the sum of {s}.", body, line, bad, (_numbers(rng), _numbers(rng)))


def count_up(rng: random.Random) -> Sketch:
    """A range that ends one too early."""
    (n,) = argument_names(rng, 1)
    if rng.random() < 0.5:
        doc, line = f"Return the sum of the numbers from 1 to {n}.", f"return sum(range(1, {n} + 1))"
        bad = rng.choice((f"return sum(range(1, {n}))", f"return sum(range({n}))"))
    else:
        doc, line = f"Return the numbers from 1 to {n} as a list.", f"return list(range(1, {n} + 1))"
        bad = rng.choice((f"return list(range(1, {n}))", f"return list(range({n}))"))
    return Sketch(n, doc, (line,), line, bad, (str(rng.randint(3, 6)), str(rng.randint(3, 6))))


def position(rng: random.Random) -> Sketch:
    """The wrong index."""
    s = rng.choice(SEQUENCES)
    places = {"first": "0", "last": "-1", "second": "1", "third": "2"}
    right, wrong = rng.sample(list(places), 2)
    line, bad = f"return {s}[{places[right]}]", f"return {s}[{places[wrong]}]"
    calls = (_distinct(rng), _distinct(rng))
    return Sketch(s, f"Return the {right} of {s}.", (line,), line, bad, calls)


def part(rng: random.Random) -> Sketch:
    """The wrong slice."""
    s, n = rng.choice(SEQUENCES), rng.choice(("n", "count", "size", "limit"))
    forms = {
        f"Return the first {n} of {s}.": f"{s}[:{n}]",
        f"Return the last {n} of {s}.": f"{s}[-{n}:]",
        f"Return {s} without the first {n}.": f"{s}[{n}:]",
        f"Return {s} without the last {n}.": f"{s}[:-{n}]",
    }
    right, wrong = rng.sample(list(forms), 2)
    line, bad = f"return {forms[right]}", f"return {forms[wrong]}"
    calls = (f"{_distinct(rng, 5)}, {rng.choice((1, 2))}", f"{_distinct(rng, 5)}, {rng.choice((1, 3))}")
    return Sketch(f"{s}, {n}", right, (line,), line, bad, calls)


def mapped(rng: random.Random) -> Sketch:
    """A comprehension that does the wrong thing to each element."""
    s, x, k = rng.choice(SEQUENCES), rng.choice(("x", "item", "value")), rng.randint(2, 9)
    forms = {
        f"Return {s}, each times {k}.": f"[{x} * {k} for {x} in {s}]",
        f"Return {s}, each plus {k}.": f"[{x} + {k} for {x} in {s}]",
        f"Return {s}, each minus {k}.": f"[{x} - {k} for {x} in {s}]",
    }
    right, wrong = rng.sample(list(forms), 2)
    line, bad = f"return {forms[right]}", f"return {forms[wrong]}"
    return Sketch(s, right, (line,), line, bad, (_numbers(rng, 2, 4), _numbers(rng, 2, 4)))


def filtered(rng: random.Random) -> Sketch:
    """A filter that keeps the wrong ones."""
    s, x, limit = (
        rng.choice(SEQUENCES),
        rng.choice(("x", "item", "value")),
        rng.choice(("limit", "bound", "level")),
    )
    words = {">": "greater than", "<": "less than", ">=": "at least", "<=": "at most"}
    right, wrong = rng.sample(list(words), 2)
    doc = f"Return the {s} that are {words[right]} {limit}."
    line = f"return [{x} for {x} in {s} if {x} {right} {limit}]"
    bad = f"return [{x} for {x} in {s} if {x} {wrong} {limit}]"
    mid = rng.randint(5, 9)
    numbers = [mid, mid + rng.randint(1, 5), mid - rng.randint(1, 4), rng.randint(1, 15)]
    rng.shuffle(numbers)
    return Sketch(f"{s}, {limit}", doc, (line,), line, bad, (f"{numbers}, {mid}",))


def counted(rng: random.Random) -> Sketch:
    """A loop that counts the wrong ones, or the wrong amount."""
    s, x, limit = (
        rng.choice(SEQUENCES),
        rng.choice(("item", "value", "entry")),
        rng.choice(("limit", "bound", "level")),
    )
    words = {">": "greater than", "<": "less than", ">=": "at least", "<=": "at most", "==": "equal to"}
    right, wrong = rng.sample(list(words), 2)
    doc = f"Return how many of {s} are {words[right]} {limit}."
    test, step = f"if {x} {right} {limit}:", "count += 1"
    body = ("count = 0", f"for {x} in {s}:", f"    {test}", f"        {step}", "return count")
    mid = rng.randint(5, 9)
    numbers = [mid, mid + rng.randint(1, 5), mid - rng.randint(1, 4), mid + 1, mid + 2]
    rng.shuffle(numbers)
    call = f"{numbers}, {mid}"
    if rng.random() < 0.6:
        return Sketch(f"{s}, {limit}", doc, body, test, f"if {x} {wrong} {limit}:", (call,))
    return Sketch(
        f"{s}, {limit}", doc, body, step, rng.choice(("count += 2", "count -= 1", f"count += {x}")), (call,)
    )


def ordered(rng: random.Random) -> Sketch:
    """Sorted the wrong way."""
    s = rng.choice(SEQUENCES)
    up, down = f"return sorted({s})", f"return sorted({s}, reverse=True)"
    if rng.random() < 0.5:
        doc, line, bad = f"Return {s} from smallest to largest.", up, rng.choice((down, f"return list({s})"))
    else:
        doc, line, bad = f"Return {s} from largest to smallest.", down, up
    return Sketch(s, doc, (line,), line, bad, (_distinct(rng), _distinct(rng)))


def summary(rng: random.Random) -> Sketch:
    """`len`, `sum`, `max` and `min` mixed up."""
    s = rng.choice(SEQUENCES)
    words = {"len": "the number of", "sum": "the sum of", "max": "the largest of", "min": "the smallest of"}
    right, wrong = rng.sample(list(words), 2)
    line, bad = f"return {right}({s})", f"return {wrong}({s})"
    return Sketch(s, f"Return {words[right]} {s}.", (line,), line, bad, (_distinct(rng), _distinct(rng, 3)))


def mean(rng: random.Random) -> Sketch:
    """A mean that is not divided by the count."""
    s = rng.choice(SEQUENCES)
    line = f"return sum({s}) / len({s})"
    bad = rng.choice(
        (
            f"return sum({s}) * len({s})",
            f"return sum({s})",
            f"return len({s}) / sum({s})",
            f"return sum({s}) / 2",
        )
    )
    k = rng.randint(3, 8)
    calls = (f"[{k}, {k + 1}, {k + 2}]", f"[{k}, {k}, {k}, {k + 4}]")
    return Sketch(s, f"Return the mean of {s}.", (line,), line, bad, calls)


def lookup(rng: random.Random) -> Sketch:
    """The wrong key of a dictionary."""
    d = rng.choice(("order", "user", "record", "entry", "config", "row"))
    right, wrong = noun(rng), noun(rng)
    line, bad = f'return {d}["{right}"]', f'return {d}["{wrong}"]'
    x, y = rng.randint(1, 30), rng.randint(1, 30)
    calls = (f'{{"{right}": {x}, "{noun(rng)}": {y}}}', f'{{"{right}": {y}}}')
    return Sketch(d, f"Return the {right} of {d}.", (line,), line, bad, calls)


def sides(rng: random.Random) -> Sketch:
    """Keys for values."""
    d = rng.choice(("table", "prices", "stock", "scores", "ages"))
    right, wrong = rng.sample(("keys", "values"), 2)
    line, bad = f"return list({d}.{right}())", f"return list({d}.{wrong}())"
    call = f'{{"{noun(rng)}": {rng.randint(1, 9)}, "{noun(rng)}": {rng.randint(10, 30)}}}'
    return Sketch(d, f"Return the {right} of {d} as a list.", (line,), line, bad, (call,))


def fallback(rng: random.Random) -> Sketch:
    """The wrong value for what is missing."""
    d, key = rng.choice(("table", "prices", "stock", "scores")), rng.choice(("key", "name", "code"))
    right, wrong = rng.sample((0, 1, -1, 10, 100), 2)
    line, bad = f"return {d}.get({key}, {right})", f"return {d}.get({key}, {wrong})"
    w = noun(rng)
    calls = (f'{{"{w}": {rng.randint(2, 9)}}}, "{w}"', '{}, "' + w + '"')
    return Sketch(
        f"{d}, {key}", f"Return {d} at {key}, or {right} if it is missing.", (line,), line, bad, calls
    )


KINDS: tuple[Kind, ...] = (
    accumulate,
    accumulate,
    wrong_result,
    count_up,
    position,
    part,
    mapped,
    filtered,
    counted,
    ordered,
    summary,
    mean,
    lookup,
    sides,
    fallback,
)
