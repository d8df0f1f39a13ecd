"""Wrong work on strings: methods, separators, formats."""

import random

from nano.bugs.function import Kind, Sketch
from nano.words import SAMPLES, TEXTS

_CASES = {
    "upper": "in upper case",
    "lower": "in lower case",
    "title": "in title case",
    "capitalize": "with a capital first letter",
}
_SEPARATORS = {
    " ": "spaces",
    ", ": "commas and spaces",
    "-": "dashes",
    "_": "underscores",
    "/": "slashes",
    ":": "colons",
}


def _word(rng: random.Random) -> str:
    word = rng.choice(SAMPLES)
    return rng.choice((word, word.capitalize(), word.upper()))


def letter_case(rng: random.Random) -> Sketch:
    """The wrong case method."""
    t = rng.choice(TEXTS)
    right, wrong = rng.sample(list(_CASES), 2)
    line, bad = f"return {t}.{right}()", f"return {t}.{wrong}()"
    calls = (f'"{rng.choice(SAMPLES)} {_word(rng)}"', f'"{_word(rng)}"')
    return Sketch(t, f"Return {t} {_CASES[right]}.", (line,), line, bad, calls)


def trimmed(rng: random.Random) -> Sketch:
    """White space removed on the wrong side."""
    t = rng.choice(TEXTS)
    sides = {"strip": "at both ends", "lstrip": "at the start", "rstrip": "at the end"}
    right, wrong = rng.sample(list(sides), 2)
    line, bad = f"return {t}.{right}()", f"return {t}.{wrong}()"
    doc = f"Return {t} without white space {sides[right]}."
    return Sketch(t, doc, (line,), line, bad, (f'"  {_word(rng)} "',))


def joined(rng: random.Random) -> Sketch:
    """The wrong separator."""
    right, wrong = rng.sample(list(_SEPARATORS), 2)
    words = rng.choice(("words", "parts", "names", "labels"))
    line, bad = f'return "{right}".join({words})', f'return "{wrong}".join({words})'
    calls = (str([rng.choice(SAMPLES), rng.choice(SAMPLES)]).replace("'", '"'),)
    return Sketch(words, f"Join {words} with {_SEPARATORS[right]}.", (line,), line, bad, calls)


def parted(rng: random.Random) -> Sketch:
    """Split at the wrong character."""
    right, wrong = rng.sample(("-", "_", "/", ":", ";", "|"), 2)
    names = {"-": "dashes", "_": "underscores", "/": "slashes", ":": "colons", ";": "semicolons", "|": "bars"}
    t = rng.choice(TEXTS)
    line, bad = f'return {t}.split("{right}")', f'return {t}.split("{wrong}")'
    calls = (f'"{rng.choice(SAMPLES)}{right}{rng.choice(SAMPLES)}"',)
    return Sketch(t, f"Split {t} at {names[right]}.", (line,), line, bad, calls)


def edge(rng: random.Random) -> Sketch:
    """`startswith` for `endswith`."""
    t, p = rng.choice(TEXTS), rng.choice(("part", "piece", "mark"))
    words = {"startswith": "starts", "endswith": "ends"}
    right, wrong = rng.sample(list(words), 2)
    line, bad = f"return {t}.{right}({p})", f"return {t}.{wrong}({p})"
    w = rng.choice(SAMPLES)
    calls = (f'"{w}", "{w[:2]}"', f'"{w}", "{w[-2:]}"')
    return Sketch(f"{t}, {p}", f"Return True if {t} {words[right]} with {p}.", (line,), line, bad, calls)


def replaced(rng: random.Random) -> Sketch:
    """The arguments of `replace` turned round."""
    t = rng.choice(TEXTS)
    old, new = rng.sample(("old", "new", "before", "after", "mark", "sign"), 2)
    line, bad = f"return {t}.replace({old}, {new})", f"return {t}.replace({new}, {old})"
    w = rng.choice(SAMPLES)
    calls = (f'"{w}", "{w[1]}", "{rng.choice("xzq")}"',)
    return Sketch(
        f"{t}, {old}, {new}", f"Return {t} with {old} replaced by {new}.", (line,), line, bad, calls
    )


def greeting(rng: random.Random) -> Sketch:
    """The wrong words in an f-string."""
    t = rng.choice(("name", "user", "guest", "player"))
    right, wrong = rng.sample(("Hello", "Welcome", "Goodbye", "Thanks", "Dear"), 2)
    line, bad = f'return f"{right}, {{{t}}}!"', f'return f"{wrong}, {{{t}}}!"'
    doc = f"Return '{right}, ' followed by {t} and '!'."
    return Sketch(t, doc, (line,), line, bad, (f'"{_word(rng)}"',))


def turned(rng: random.Random) -> Sketch:
    """A reversal that does not reverse."""
    t = rng.choice(TEXTS)
    line, bad = f"return {t}[::-1]", rng.choice((f"return {t}[::1]", f"return {t}[1:]", f"return {t}[::2]"))
    return Sketch(
        t,
        f"Return {t} reversed.",
        (line,),
        line,
        bad,
        (f'"{rng.choice(SAMPLES)}"', f'"{rng.choice(SAMPLES)}"'),
    )


def initial(rng: random.Random) -> Sketch:
    """The wrong letter."""
    t = rng.choice(TEXTS)
    places = {"first": "0", "last": "-1", "second": "1"}
    right, wrong = rng.sample(list(places), 2)
    line, bad = f"return {t}[{places[right]}]", f"return {t}[{places[wrong]}]"
    calls = (f'"{rng.choice(SAMPLES)}"', f'"{rng.choice(SAMPLES)}"')
    return Sketch(t, f"Return the {right} letter of {t}.", (line,), line, bad, calls)


KINDS: tuple[Kind, ...] = (letter_case, trimmed, joined, parted, edge, replaced, greeting, turned, initial)
