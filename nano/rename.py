"""Exchange the names in training conversations: `python -m nano.rename --corpus nano/out --out nano/renamed`.

A conversation costs a second to play and a millisecond to rename. Nouns and arguments become other ones or
made-up words, each the same everywhere in its conversation: what must be copied is new, and the bug and its
mending are the same.
"""

import argparse
import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from nano.words import ARGUMENTS, NOUNS, PROSE, SEQUENCES, TEXTS, is_made_up, made_up

Conversation = list[list[Any]]
"""[weight, [piece, ...]] for each message, as `nano.corpus` writes it."""

_WORD = re.compile("[a-z]+")
_COMMON = 12
"""A word of made-up form in so many conversations is an English one, such as `before`."""


def words(conversation: Conversation) -> set[str]:
    """All runs of small letters."""
    return {word for text in _texts(conversation) for word in _WORD.findall(text)}


def renamed(conversation: Conversation, english: frozenset[str], rng: random.Random) -> Conversation:
    """The conversation with other names; `english` are words that are not made up though they look so."""
    there = words(conversation)
    names = _names(there, english, rng)

    def name(found: re.Match[str]) -> str:
        word = found.group()
        if word in names:
            return names[word]
        return f"{names[word[:-1]]}s" if word[-1] == "s" and word[:-1] in names else word

    return [
        [
            weight,
            [_WORD.sub(name, piece) if _is_text(piece, at) else piece for at, piece in enumerate(pieces)],
        ]
        for weight, pieces in conversation
    ]


def _names(there: set[str], english: frozenset[str], rng: random.Random) -> dict[str, str]:
    """Which name becomes which. A name that a misspelt one resembles stays, for the bug may be just that."""
    names: dict[str, str] = {}
    taken = set(there)
    for word in sorted(there):
        for base in (word, word[:-1] if word.endswith("s") else ""):
            kind = _kind(base, english)
            if kind is None or base in names or any(_resembles(base, other) for other in there):
                continue
            pool, share = kind
            new = made_up(rng) if rng.random() < share else rng.choice(pool)
            if new not in taken and f"{new}s" not in taken:
                names[base] = new
                taken.add(new)
    return names


def _kind(word: str, english: frozenset[str]) -> tuple[tuple[str, ...], float] | None:
    """Which names may take a word's place, and how often a made-up one does."""
    if word in PROSE or word in english:
        return None
    if word in NOUNS:
        return tuple(n for n in NOUNS if n not in PROSE), 0.4
    if is_made_up(word):
        return tuple(NOUNS), 1.0
    for pool in (ARGUMENTS, SEQUENCES, TEXTS):
        if word in pool and len(word) > 1:
            return tuple(n for n in pool if n not in PROSE and len(n) > 1), 0.2
    return None


def _resembles(name: str, other: str) -> bool:
    """Whether one slip of the keyboard lies between them; a plural is none."""
    if other in (name, f"{name}s") or f"{other}s" == name or abs(len(name) - len(other)) > 1:
        return False
    if len(name) != len(other):
        short, long = sorted((name, other), key=len)
        return any(long[:at] + long[at + 1 :] == short for at in range(len(long)))
    differ = [at for at in range(len(name)) if name[at] != other[at]]
    return len(differ) == 1 or (
        len(differ) == 2 and differ[1] == differ[0] + 1 and sorted(name) == sorted(other)
    )


def _is_text(piece: Any, at: int) -> bool:
    """Whether a piece is text of a message: the one after the first marker names who speaks."""
    return isinstance(piece, str) and at != 1 and not piece.startswith("assistant to=")


def _texts(conversation: Conversation) -> Iterator[str]:
    for _, pieces in conversation:
        yield from (piece for at, piece in enumerate(pieces) if _is_text(piece, at))


def english_words(conversations: Iterable[Conversation]) -> frozenset[str]:
    """Words of made-up form that come too often to be made up."""
    counted = Counter(word for conversation in conversations for word in words(conversation))
    return frozenset(word for word, count in counted.items() if count >= _COMMON and is_made_up(word))


def main() -> None:
    """Rename every conversation of a folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, default=Path("nano/out"))
    parser.add_argument("--out", type=Path, default=Path("nano/renamed"))
    parser.add_argument("--seed", type=int, default=4)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    lines = (line for shard in sorted(options.corpus.glob("corpus-*.jsonl")) for line in shard.open("r"))
    conversations = [json.loads(line) for line in lines]
    english, rng = english_words(conversations), random.Random(options.seed)
    with (options.out / f"corpus-{options.seed}.jsonl").open("w", encoding="utf-8") as sink:
        for conversation in conversations:
            sink.write(json.dumps(renamed(conversation, english, rng), ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
