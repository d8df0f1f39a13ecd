"""How risky a shell command is: it only reads, it must be asked about, or it may never run.

A command counts as reading only when all of it is understood: the syntax tree has no error, every character
of it belongs to a known part, every word is literal, every program is a known reader with known options, and
every path stays in the project. Whatever is left asks.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sandbox.commands.coverage import error_span, gap
from sandbox.commands.judge import Judge
from sandbox.commands.places import Places, places_in
from sandbox.commands.ruin import find_ruin
from sandbox.commands.words import UNSURE, Doubt, Source, parse, read_word
from sandbox.sensitive import looks_secret
from sandbox.visible import hides_something

_LONGEST = 20_000


@dataclass(frozen=True, slots=True)
class Risk:
    """What a command may do, why in a few words, and the character range that says so.

    `secret`: some part of it names what looks like a secret, or it is too long to tell.
    """

    level: Literal["read", "ask", "forbidden"]
    reason: str
    span: tuple[int, int] | None = None
    secret: bool = False


def assess(command: str, root: Path | None = None, cwd: Path | None = None) -> Risk:
    """Judge a command that would run in `cwd`, by default `root`.

    With `root`, absolute paths inside it are fine, links are followed and wildcards looked up on disk.
    Without it, names alone are judged and every absolute path asks. Never raises, whatever the command is.
    """
    source = parse(command)
    ruin = find_ruin(source, cwd or root)
    secret = len(command) > _LONGEST or _names_secret(source)
    if ruin is not None:
        return Risk("forbidden", ruin.reason, ruin.span, secret)
    doubt = next(_doubts(source, places_in(root, cwd)), None)
    if doubt is not None:
        return Risk("ask", doubt.reason, doubt.span, secret or doubt.secret)
    return Risk("read", "only reads inside the project")


def _doubts(source: Source, places: Places | None) -> Iterator[Doubt]:
    """What speaks against a command, one reason after the other; later ones need the earlier to be absent."""
    command = source.text
    whole = (0, len(command))
    if places is None:
        yield Doubt("runs outside the project", whole)
        return
    if not command.strip() or len(command) > _LONGEST:
        yield Doubt("is too long to judge" if command.strip() else "is empty", whole)
    if hides_something(command):
        for index, char in enumerate(command):
            if char not in "\n\t" and hides_something(char):
                yield Doubt("holds a character that a screen would hide", (index, index + 1))
        yield Doubt("holds letters that pass for others", whole)
    if (at := command.find("\\\n")) >= 0:
        yield Doubt("goes on over a line break in a way that is hard to judge", (at, at + 2))
    if source.tree.root_node.has_error:
        yield Doubt("is not valid shell syntax", error_span(source))
    if (missed := gap(source)) is not None:
        yield Doubt(UNSURE, missed)
    judge = Judge(source)
    judge.visit(source.tree.root_node, places, 0)
    yield from judge.doubts


def _names_secret(source: Source) -> bool:
    """Whether any word of it looks like a secret's path, however it is used."""
    kinds = {"word", "string", "raw_string", "concatenation", "ansi_c_string"}
    seen: set[str] = set()
    stack = [source.tree.root_node]
    while stack:
        node = stack.pop()
        if node.type in kinds:
            text = read_word(source, node).text
            if text in seen:
                continue
            seen.add(text)
            parts = {text, text.rpartition("=")[2], text.rpartition("@")[2], text.rpartition(":")[2]}
            if any(looks_secret(part) for part in parts):
                return True
        else:
            stack.extend(node.named_children)
    return False
