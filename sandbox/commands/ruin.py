"""What no mode may run: commands that would destroy the system, the home folder or a device.

This is a net under the other rules, not a proof: it looks through wrappers, subshells and literal scripts,
and whatever it does not recognise still asks.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from tree_sitter import Node

from sandbox.commands.destroyers import destroys_by_name, destruction, overwrites_disk, resolved
from sandbox.commands.words import Doubt, Source, Word, parse, read_word
from sandbox.commands.wrappers import SHELLS, WRAPPERS, commands_in, program

_DEEPEST = 4
_MOST_NODES = 20_000
_MOST_WRAPPED = 100
_MOST_SCRIPTS = 30
_ALL_ARE_SCRIPTS = frozenset({"eval", "trap", "watch", "parallel"})


@dataclass(slots=True)
class _Search:
    source: Source
    here: str | None
    budget: list[int]
    depth: int = 0
    script_span: tuple[int, int] | None = None
    extra: dict[int, list[Word]] = field(default_factory=dict[int, list[Word]])
    nodes: int = 0
    found: list[Doubt] = field(default_factory=list[Doubt])

    def hit(self, reason: str, span: tuple[int, int]) -> None:
        self.found.append(Doubt(reason, self.script_span or span))


def find_ruin(source: Source, here: Path | None) -> Doubt | None:
    """The first part of a command that would destroy, whatever it is wrapped in. It would run in `here`."""
    search = _Search(source, None if here is None else here.as_posix(), [_MOST_SCRIPTS])
    return next(iter(_found_in(search)), None)


def _found_in(search: _Search) -> list[Doubt]:
    _visit(search, search.source.tree.root_node)
    if not search.found:
        _fork_bomb_text(search)
    return search.found[:1]


def _visit(search: _Search, top: Node) -> None:
    """Every node in order. No recursion: no depth of nesting stops it. A subshell keeps its own folder."""
    stack: list[Node | tuple[str | None]] = [top]
    while stack and not search.found and search.nodes < _MOST_NODES:
        node = stack.pop()
        if isinstance(node, tuple):
            search.here = node[0]
            continue
        search.nodes += 1
        match node.type:
            case "command":
                _command(search, node)
            case "file_redirect":
                _redirect(search, node)
            case "function_definition":
                _fork_bomb(search, node)
            case "pipeline":
                _pipeline(search, node)
            case "redirected_statement":
                _redirected(search, node)
            case "subshell" | "command_substitution" | "process_substitution":
                stack.append((search.here,))
            case _:
                pass
        stack.extend(reversed(node.children))


def _words(search: _Search, node: Node) -> list[Word]:
    skipped = {"variable_assignment", "file_redirect", "herestring_redirect", "heredoc_redirect"}
    words = [read_word(search.source, child) for child in node.named_children if child.type not in skipped]
    for child in node.named_children:
        if child.type == "file_redirect":
            words.extend(
                read_word(search.source, extra) for extra in child.children_by_field_name("destination")[1:]
            )
    return words + search.extra.get(node.id, [])


def _command(search: _Search, node: Node) -> None:
    words = _words(search, node)
    _judge(search, words)
    _fed_script(search, node, node.named_children)
    if words and words[0].text in {"cd", "pushd"}:
        targets = [word for word in words[1:] if not word.text.startswith("-")]
        search.here = resolved(targets[0], search.here) if targets else "~"


def _judge(search: _Search, words: list[Word]) -> None:
    """One simple command, and every command that it may wrap.

    What destroys by its arguments is looked for at every word. What destroys by its name alone is often
    just a word, so that it counts only where a command begins.
    """
    if not words:
        return
    _direct(search, words)
    if program(words) not in WRAPPERS:
        return
    begins = commands_in(words[:_MOST_WRAPPED])
    for index in range(min(len(words), _MOST_WRAPPED)):
        if search.found:
            return
        if index in begins or not destroys_by_name(program(words[index:])):
            _direct(search, words[index:])
        for script, span in _scripts(words[index:]):
            _script(search, script, span)


def _script(search: _Search, text: str, span: tuple[int, int]) -> None:
    """A literal text that a shell would run. How many are read, and how deep, is bounded."""
    if search.found or search.depth >= _DEEPEST or search.budget[0] <= 0:
        return
    search.budget[0] -= 1
    inner = _Search(parse(text), search.here, search.budget, search.depth + 1, search.script_span or span)
    search.found.extend(_found_in(inner))


def _direct(search: _Search, words: list[Word]) -> None:
    if reason := destruction(words, search.here):
        search.hit(reason, (words[0].span[0], words[-1].span[1]))


def _scripts(words: list[Word]) -> Iterator[tuple[str, tuple[int, int]]]:
    name = program(words)
    if name in _ALL_ARE_SCRIPTS:
        yield " ".join(word.text for word in words[1:]), (words[0].span[0], words[-1].span[1])
    if name not in SHELLS and name != "env":
        return
    takes = r"-[A-Za-z]*c|--command" if name in SHELLS else r"-v?S|--split-string"
    for option, value in pairwise(words[1:]):
        if re.fullmatch(takes, option.text):
            yield value.text, value.span
    for word in words[1:]:
        if attached := re.match(r"--(?:command|split-string)=(.*)|-S(.+)", word.text, re.DOTALL):
            yield attached.group(1) or attached.group(2) or "", word.span


def _redirect(search: _Search, node: Node) -> None:
    if search.source.of(node).lstrip("0123456789").startswith("<") or not node.named_children:
        return
    for child in node.children_by_field_name("destination")[:1]:
        word = read_word(search.source, child)
        if overwrites_disk(word.text):
            search.hit("would overwrite a device", search.source.span(node))


def _pipeline(search: _Search, node: Node) -> None:
    """A literal text piped into a shell is a script; piped into xargs it is arguments."""
    for left, right in pairwise(node.named_children):
        if left.type != "command" or right.type != "command":
            continue
        said, told = _words(search, left), _words(search, right)
        if not said or not told or program(said) not in {"echo", "printf"}:
            continue
        text = " ".join(word.text for word in said[1:] if word.text not in {"-n", "-e"})
        programs = {program([word]) for word in told}
        if "xargs" in programs:
            _judge(search, told + [_split(word, part) for word in said[1:] for part in word.text.split()])
        elif programs & SHELLS:
            _script(search, text, search.source.span(left))


def _split(word: Word, part: str) -> Word:
    return Word(part, word.span, "", False, word.home)


def _redirected(search: _Search, node: Node) -> None:
    """Words that follow a redirect are the command's own; a text fed into a shell is a script."""
    body = node.child_by_field_name("body")
    if body is None or body.type != "command":
        return
    redirects = node.children_by_field_name("redirect")
    search.extra[body.id] = [
        read_word(search.source, extra)
        for redirect in redirects
        for extra in redirect.children_by_field_name("destination")[1:]
    ]
    _fed_script(search, body, redirects)


def _fed_script(search: _Search, command: Node, redirects: list[Node]) -> None:
    fed = [redirect for redirect in redirects if redirect.type in {"heredoc_redirect", "herestring_redirect"}]
    if not fed or not {program([word]) for word in _words(search, command)} & SHELLS:
        return
    for child in [child for redirect in fed for child in redirect.named_children]:
        if child.type == "heredoc_body":
            _script(search, search.source.of(child), search.source.span(child))
        elif child.type in {"string", "raw_string", "word", "concatenation"}:
            _script(search, read_word(search.source, child).text, search.source.span(child))


def _fork_bomb(search: _Search, node: Node) -> None:
    """A function that starts itself twice, or once in the background, without end."""
    name = node.child_by_field_name("name")
    body = node.child_by_field_name("body")
    if name is None or body is None:
        return
    own = search.source.of(name)
    stack = [body]
    while stack:
        part = stack.pop()
        calls = sum(
            child.type == "command" and search.source.of(child).split()[:1] == [own]
            for child in part.named_children
        )
        background = any(child.type == "&" for child in part.children)
        if calls and ((calls > 1 and part.type == "pipeline") or background):
            search.hit("is a fork bomb", search.source.span(node))
            return
        stack.extend(part.named_children)


def _fork_bomb_text(search: _Search) -> None:
    match = re.search(
        r"(?<![\w:.])([\w:.]{1,40})[ ]{0,9}\([ ]{0,9}\)\s{0,9}\{\s{0,9}\1\s{0,9}\|\s{0,9}\1\s{0,9}&\s{0,9}\}",
        search.source.text,
    )
    if match is not None:
        search.hit("is a fork bomb", match.span())
