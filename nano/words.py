"""Words for names, files and wishes. Made-up words teach the model to copy what it has never seen."""

import random
import re
from importlib.resources import files


def _read() -> dict[str, tuple[str, ...]]:
    rows = files("nano").joinpath("words.txt").read_text(encoding="utf-8").splitlines()
    return {name: tuple(words.split()) for name, _, words in (row.partition(": ") for row in rows)}


_WORDS = _read()
NOUNS, VERBS, ARGUMENTS = _WORDS["nouns"], _WORDS["verbs"], _WORDS["arguments"]
SEQUENCES, TEXTS, SAMPLES = _WORDS["sequences"], _WORDS["texts"], _WORDS["samples"]
PROSE = frozenset(_WORDS["prose"])
"""Names that are also words of the tools, of pytest or of the docstrings."""
_SYLLABLES = _WORDS["syllables"]
_MADE_UP = re.compile(f"(?:{'|'.join(_SYLLABLES)}){{2,3}}")


def made_up(rng: random.Random) -> str:
    """A word of two or three syllables that is in no dictionary."""
    return "".join(rng.choice(_SYLLABLES) for _ in range(rng.choice((2, 2, 3))))


def is_made_up(word: str) -> bool:
    """Whether a word has the form of a made-up one; some English words have it too."""
    return _MADE_UP.fullmatch(word) is not None


def noun(rng: random.Random) -> str:
    """A noun; one in eight is made up."""
    return made_up(rng) if rng.random() < 0.125 else rng.choice(NOUNS)


def function_name(rng: random.Random) -> str:
    """A name such as `scale_total` or `find_user_score`."""
    name = f"{rng.choice(VERBS)}_{noun(rng)}"
    return f"{name}_{noun(rng)}" if rng.random() < 0.35 else name


def argument_names(rng: random.Random, count: int) -> list[str]:
    """Argument names, all different; now and then a made-up one."""
    names = rng.sample(ARGUMENTS, count)
    return [made_up(rng) if rng.random() < 0.06 else name for name in names]
