"""A program's options as the program itself would read them, held against those that only read.

An option that is not listed, or is shortened, asks: programs gain options, and a short form may stand for
one that writes. A listed option's kind is written behind it: `n:` takes a text, `f@` a file to read, `u?`
may carry a text attached.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from sandbox.commands.places import Places
from sandbox.commands.words import VARIABLE, Doubt, Word

_MANY = 100_000
Operands = Literal["paths", "text", "pattern"]
_HARMLESS_VARIABLES = re.compile(
    r"\$\{?(HOME|PWD|OLDPWD|USER|LOGNAME|SHELL|LANG|PATH|TERM|HOSTNAME|RANDOM|SECONDS|\?|#|\$)\}?|~"
)


@dataclass(frozen=True, slots=True)
class Call:
    """A program's arguments once read: the names of its options, their values, and its operands.

    `late`: the options that follow an operand. Not every system's program takes them for options any more.
    """

    words: tuple[Word, ...]
    places: Places
    options: list[str] = field(default_factory=list[str])
    values: list[tuple[str, Word]] = field(default_factory=list[tuple[str, Word]])
    operands: list[Word] = field(default_factory=list[Word])
    late: list[Word] = field(default_factory=list[Word])

    def given(self, *names: str) -> list[Word]:
        """The values of the options so named, in order."""
        return [value for name, value in self.values if name in names]


Check = Callable[[Call], Doubt | None]


@dataclass(frozen=True, slots=True)
class Reader:
    """A program that only reads, as long as it is called like this.

    `options` maps "n" or "name" to its kind: "" a flag, ":" a text, "@" a file, "?" an attached text.
    `operands`: files to read, plain text, or a pattern and then files. `most` limits how many there are.
    `fragile`: an option of it writes, so that a file named like one must not reach it through a wildcard.
    """

    options: dict[str, str]
    operands: Operands = "paths"
    most: int = _MANY
    fragile: bool = False
    check: Check | None = None

    def doubt(self, words: list[Word], places: Places) -> Doubt | None:
        """Why this call asks, or None when it only reads. `words` begin with the program's name."""
        call = Call(tuple(words), places)
        doubt = self._read(call)
        if doubt is None and self.most < _MANY:
            doubt = self._too_many(call)
        if doubt is None and self.check is not None:
            doubt = self.check(call)
        return doubt or self._operands(call)

    def _read(self, call: Call) -> Doubt | None:
        rest = list(call.words[1:])
        while rest:
            word = rest.pop(0)
            if (doubt := self.literal_doubt(word, call.places)) is not None:
                return doubt
            if word.text == "--":
                call.operands.extend(rest)
                return next((d for word in rest if (d := self.literal_doubt(word, call.places, True))), None)
            if not word.text.startswith("-") or word.text == "-":
                call.operands.append(word)
                continue
            if call.operands:
                call.late.append(word)
            pending = self._option(word, call)
            if isinstance(pending, Doubt):
                return pending
            if pending and (doubt := self._value(pending, word, rest, call)) is not None:
                return doubt
        return None

    def _too_many(self, call: Call) -> Doubt | None:
        if len(call.operands) > self.most:
            return Doubt("gives an operand that may be written to", call.operands[self.most].span)
        if call.late:
            return Doubt("gives an option where it may be taken for a file to write", call.late[0].span)
        wild = next((word for word in call.operands if word.glob), None)
        return Doubt("its wildcard may become several words", wild.span) if wild else None

    def literal_doubt(self, word: Word, places: Places, operand: bool = False) -> Doubt | None:
        """Why one word is not plain enough to judge. `operand`: it cannot be taken for an option."""
        if word.doubt:
            return Doubt(word.doubt, word.span)
        if not word.glob or operand:
            return None
        if word.text.startswith("-"):
            return Doubt("has a wildcard among its options", word.span)
        matches = places.matches(word)
        if matches is None:
            named_so = self.fragile and word.text[0] in "*?["
        else:
            named_so = any(match.startswith("-") for match in matches)
        return Doubt("a file it matches may be taken for an option", word.span) if named_so else None

    def _option(self, word: Word, call: Call) -> Doubt | str:
        """The kind of a value that the next word must hold, "" when there is none, or why the option asks."""
        long = word.text.startswith("--")
        kind, value = self._long(word, call) if long else self._cluster(word, call)
        if kind is None:
            return Doubt(f"the option {word.text} is not known to only read", word.span)
        if value is None:
            return kind if kind in {":", "@"} else ""
        call.values.append((call.options[-1], Word(value, word.span)))
        return call.places.path_doubt(value, word.span) or "" if kind == "@" else ""

    def _long(self, word: Word, call: Call) -> tuple[str | None, str | None]:
        name, equals, value = word.text[2:].partition("=")
        kind = self.options.get(name) if len(name) > 1 else None
        call.options.append(name)
        if kind == "" and equals:
            kind = None
        return kind, value if equals else None

    def _cluster(self, word: Word, call: Call) -> tuple[str | None, str | None]:
        letters = word.text[1:]
        for index, letter in enumerate(letters):
            kind = self.options.get(letter)
            call.options.append(letter)
            if kind != "":
                return kind, letters[index + 1 :] or None
        return "", None

    def _value(self, kind: str, option: Word, rest: list[Word], call: Call) -> Doubt | None:
        if not rest:
            return Doubt(f"the option {option.text} lacks its value", option.span)
        value = rest.pop(0)
        if value.doubt:
            return Doubt(value.doubt, value.span)
        call.values.append((call.options[-1], value))
        if value.glob and (call.places.root is None or call.places.matches(value)):
            return Doubt("its wildcard may become several words", value.span)
        if re.match(r"-[^0-9]", value.text):
            return Doubt("an option's value looks like an option", value.span)
        # A program that takes no option after an operand would open the value as a file.
        return call.places.doubt(value) if kind == "@" or call.operands else None

    def _operands(self, call: Call) -> Doubt | None:
        paths = call.operands
        if self.operands == "pattern" and not {"e", "f", "regexp", "file", "files", "expression"} & set(
            call.options
        ):
            paths = [word for index, word in enumerate(paths) if index or word.glob]
        if self.operands == "text":
            paths = [word for word in paths if word.glob]
        return next((doubt for word in paths if (doubt := call.places.doubt(word)) is not None), None)


def is_harmless_variable(word: Word) -> bool:
    """Whether a word is nothing but a variable that holds no secret, such as `$HOME` or `$?`."""
    return word.doubt == VARIABLE and _HARMLESS_VARIABLES.fullmatch(word.text) is not None


def options(text: str) -> dict[str, str]:
    """Options from their short writing: "abn:f@ --long --name= --from@ --color?"."""
    table: dict[str, str] = {}
    for part in text.split():
        if part.startswith("--"):
            name = part[2:].rstrip("=@?")
            table[name] = {"=": ":", "@": "@", "?": "?"}.get(part[-1], "")
            continue
        for letter, kind in re.findall(r"([^:@?])([:@?]?)", part):
            table[letter] = kind
    return table
