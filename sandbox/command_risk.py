"""How risky a shell command is: it only reads, it must be asked about, or it may never run.

A command counts as reading only when all of it is understood: the syntax tree has no error, every character of
it belongs to a known part, every word is literal, every program is a known reader with known options, and every
path stays in the project. Whatever is left asks.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tree_sitter import Node

from sandbox.commands.checks import find_doubt, test_doubt
from sandbox.commands.git import git_doubt
from sandbox.commands.places import Places
from sandbox.commands.readers import readers
from sandbox.commands.ruin import find_ruin
from sandbox.commands.words import UNSURE, Doubt, Source, Word, names, parse, read_word
from sandbox.sensitive import looks_secret
from sandbox.visible import hides_something

_LONGEST = 20_000
_DEEPEST = 40
_FREE_TEXT = frozenset({"echo", "true", "false", ":"})
_WORDS = names(
    "word number string raw_string concatenation simple_expansion expansion ansi_c_string "
    "translated_string command_substitution process_substitution arithmetic_expansion brace_expression"
)
_REASONS = {
    "variable_assignment": "sets a variable, which can choose another program",
    "variable_assignments": "sets a variable, which can choose another program",
    "declaration_command": "sets a variable, which can choose another program",
    "function_definition": "defines a function, which can stand for another program",
    "heredoc_redirect": "feeds a text to a program",
    "herestring_redirect": "feeds a text to a program",
    "&": "goes on in the background",
    "ERROR": "is not valid shell syntax",
}
_WRAPPERS = names(
    "env sudo doas su timeout nohup nice ionice time command builtin exec stdbuf setsid xargs parallel "
    "watch eval source . sh bash zsh dash trap"
)


@dataclass(frozen=True, slots=True)
class Risk:
    """What a command may do, why in a few words, and the character range that says so.

    `secret`: some part of it names what looks like a secret.
    """

    level: Literal["read", "ask", "forbidden"]
    reason: str
    span: tuple[int, int] | None = None
    secret: bool = False


def assess(command: str, root: Path | None = None) -> Risk:
    """Judge a command that would run in `root`.

    With `root`, absolute paths inside it are fine, links are followed and wildcards looked up on disk; without
    it, names alone are judged and every absolute path asks. Never raises, whatever the command is.
    """
    source = parse(command)
    ruin = find_ruin(source, root)
    secret = _names_secret(source)
    if ruin is not None:
        return Risk("forbidden", ruin.reason, ruin.span, secret)
    doubt = _doubt(source, root)
    if doubt is not None:
        return Risk("ask", doubt.reason, doubt.span, secret or doubt.secret)
    return Risk("read", "only reads inside the project")


def _doubt(source: Source, root: Path | None) -> Doubt | None:
    command = source.text
    whole = (0, len(command))
    if not command.strip():
        return Doubt("is empty", whole)
    if len(command) > _LONGEST:
        return Doubt("is too long to judge", whole)
    for index, char in enumerate(command):
        if char not in "\n\t" and hides_something(char):
            return Doubt("holds a character that a screen would hide", (index, index + 1))
    if hides_something(command):
        return Doubt("holds letters that pass for others", whole)
    if (at := command.find("\\\n")) >= 0:
        return Doubt("goes on over a line break in a way that is hard to judge", (at, at + 2))
    if source.tree.root_node.has_error:
        return Doubt(_REASONS["ERROR"], _error_span(source))
    if (gap := _gap(source)) is not None:
        return Doubt(UNSURE, gap)
    judge = _Judge(source)
    judge.visit(source.tree.root_node, Places(None if root is None else root.absolute()), 0)
    return judge.doubts[0] if judge.doubts else None


def _error_span(source: Source) -> tuple[int, int]:
    stack = [source.tree.root_node]
    while stack:
        node = stack.pop()
        if node.type == "ERROR" or node.is_missing:
            return source.span(node)
        stack.extend(child for child in reversed(node.children) if child.has_error or child.is_missing)
    return 0, len(source.text)


def _leaves(source: Source) -> list[Node]:
    leaves: list[Node] = []
    stack = [source.tree.root_node]
    while stack:
        node = stack.pop()
        if node.child_count == 0 or node.type in {"string", "raw_string", "ansi_c_string"}:
            leaves.append(node)
        else:
            stack.extend(reversed(node.children))
    return leaves


def _gap(source: Source) -> tuple[int, int] | None:
    """A stretch of text that no part of the tree stands for, blanks apart."""
    at = 0
    for leaf in [*_leaves(source), None]:
        start = len(source.data) if leaf is None else leaf.start_byte
        if start > at and source.data[at:start].strip(b" \t\n"):
            return source.starts[at], source.starts[start]
        at = max(at, start if leaf is None else leaf.end_byte)
    return None


def _names_secret(source: Source) -> bool:
    """Whether any word of it looks like a secret's path, however it is used."""
    kinds = {"word", "string", "raw_string", "concatenation", "ansi_c_string"}
    stack = [source.tree.root_node]
    while stack:
        node = stack.pop()
        if node.type in kinds:
            text = read_word(source, node).text
            parts = {text, text.rpartition("=")[2], text.rpartition("@")[2], text.rpartition(":")[2]}
            if any(looks_secret(part) for part in parts):
                return True
        else:
            stack.extend(node.named_children)
    return False


@dataclass(slots=True)
class _Ways:
    """Where a statement leaves the shell: when it worked, and when it failed."""

    worked: Places
    failed: Places

    @property
    def either(self) -> Places:
        return self.worked.merged(self.failed)


class _Judge:
    """Walks a syntax tree and collects every doubt. A node it does not know is one."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.doubts: list[Doubt] = []

    def _add(self, reason: str, node: Node) -> None:
        self.doubts.append(Doubt(reason, self.source.span(node)))

    def visit(self, node: Node, places: Places, depth: int) -> _Ways:
        stay = _Ways(places, places)
        if depth > _DEEPEST:
            self._add("is nested too deeply to judge", node)
            return stay
        match node.type:
            case "comment" | "\n" | ";":
                return stay
            case "program":
                return self._sequence(node.children, places, depth)
            case "list":
                return self._list(node, places, depth)
            case "pipeline":
                return self._pipeline(node, places, depth)
            case "negated_command" if node.child_count == 2 and node.children[0].type == "!":
                ways = self.visit(node.children[1], places, depth + 1)
                return _Ways(ways.failed, ways.worked)
            case "subshell":
                self._enclosed(node, "(", ")", places, depth)
                return stay
            case "compound_statement":
                return self._enclosed(node, "{", "}", places, depth)
            case "redirected_statement":
                return self._redirected(node, places, depth)
            case "command":
                return self._command(node, [], places)
            case "test_command":
                self._test(node, places)
                return stay
            case kind:
                self._add(_REASONS.get(kind, UNSURE), node)
                return stay

    def _sequence(self, nodes: list[Node], places: Places, depth: int) -> _Ways:
        ways = _Ways(places, places)
        for child in nodes:
            if child.type in {"\n", ";", "comment"}:
                continue
            ways = self.visit(child, ways.either, depth + 1)
        return ways

    def _enclosed(self, node: Node, opens: str, closes: str, places: Places, depth: int) -> _Ways:
        inner = node.children
        if len(inner) < 3 or inner[0].type != opens or inner[-1].type != closes:
            self._add(UNSURE, node)
            return _Ways(places, places)
        return self._sequence(inner[1:-1], places, depth)

    def _list(self, node: Node, places: Places, depth: int) -> _Ways:
        parts = [child for child in node.children if child.type not in {"\n", "comment"}]
        if len(parts) != 3 or parts[1].type not in {"&&", "||"}:
            self._add(UNSURE, node)
            return _Ways(places, places)
        left = self.visit(parts[0], places, depth + 1)
        if parts[1].type == "&&":
            right = self.visit(parts[2], left.worked, depth + 1)
            return _Ways(right.worked, left.failed.merged(right.failed))
        right = self.visit(parts[2], left.failed, depth + 1)
        return _Ways(left.worked.merged(right.worked), right.failed)

    def _pipeline(self, node: Node, places: Places, depth: int) -> _Ways:
        seen = places
        for child in node.children:
            if child.type in {"|", "|&", "\n", "comment"}:
                continue
            seen = seen.merged(self.visit(child, places, depth + 1).either)
        return _Ways(seen, seen)

    def _redirected(self, node: Node, places: Places, depth: int) -> _Ways:
        body = node.child_by_field_name("body")
        if body is None:
            self._add("opens a file without a program", node)
            return _Ways(places, places)
        extra: list[Word] = []
        for child in node.children:
            if child != body:
                extra.extend(self._redirect(child, places))
        if body.type == "command":
            return self._command(body, extra, places)
        if extra:
            self._add(UNSURE, node)
        return self.visit(body, places, depth + 1)

    def _redirect(self, node: Node, places: Places) -> list[Word]:
        """Judge one redirect; the words that follow its target are the command's own."""
        if node.type != "file_redirect":
            self._add(_REASONS.get(node.type, UNSURE), node)
            return []
        targets = node.children_by_field_name("destination")
        operator = next((child.type for child in node.children if not child.is_named), "")
        extra = [read_word(self.source, target) for target in targets[1:]]
        if operator in {">&-", "<&-"} and not targets:
            return extra
        if not targets:
            self._add(UNSURE, node)
            return extra
        word = read_word(self.source, targets[0])
        if word.doubt or word.glob:
            self.doubts.append(Doubt(word.doubt or "opens a file by a wildcard", word.span))
            return extra
        match operator:
            case ">&" | "<&" if word.text.isascii() and word.text.isdigit():
                return extra
            case "<":
                if (doubt := places.path_doubt(word.text, word.span)) is not None:
                    self.doubts.append(doubt)
            case ">" | ">>" | ">|" | "&>" | "&>>" if word.text == "/dev/null":
                return extra
            case _:
                self.doubts.append(Doubt(f"writes to {word.text}", self.source.span(node)))
        return extra

    def _command(self, node: Node, extra: list[Word], places: Places) -> _Ways:
        words: list[Word] = []
        for child in node.children:
            if child.type == "command_name":
                words.insert(0, read_word(self.source, child))
            elif child.is_named and child.type in _WORDS:
                words.append(read_word(self.source, child))
            elif child.type == "file_redirect":
                words.extend(self._redirect(child, places))
            else:
                self._add(_REASONS.get(child.type, UNSURE), child)
        words.extend(extra)
        if not words or node.child_by_field_name("name") is None:
            self._add(UNSURE, node)
            return _Ways(places, places)
        return self._program(words, places)

    def _program(self, words: list[Word], places: Places) -> _Ways:
        name = words[0]
        stay = _Ways(places, places)
        if name.doubt or name.glob:
            self.doubts.append(Doubt(name.doubt or "chooses its program by a wildcard", name.span))
            return stay
        doubt: Doubt | None
        match name.text:
            case "cd":
                doubt = _cd_doubt(words, places)
                if doubt is None:
                    return _Ways(places.entered(words[1]), places)
            case "git":
                doubt = git_doubt(words, places)
            case "find":
                doubt = find_doubt(words, places)
            case "test":
                doubt = test_doubt(words, places)
            case text if text in _FREE_TEXT:
                doubt = _text_doubt(words, places)
            case text if (reader := readers().get(text)) is not None:
                doubt = reader.doubt(words, places)
            case text if text in _WRAPPERS:
                doubt = Doubt(f"{text} runs another program", name.span)
            case text:
                doubt = Doubt(f"{text} is not known to only read", name.span)
        if doubt is not None:
            self.doubts.append(doubt)
        return stay

    def _test(self, node: Node, places: Places) -> None:
        inner = node.children
        if len(inner) < 3 or inner[0].type != "[" or inner[-1].type != "]":
            self._add(UNSURE, node)
            return
        words = [Word("[", self.source.span(inner[0]))]
        stack = list(reversed(inner[1:-1]))
        while stack:
            part = stack.pop()
            if part.type in _WORDS or part.child_count == 0:
                words.append(
                    read_word(self.source, part)
                    if part.is_named and part.type in _WORDS
                    else self._token(part)
                )
            else:
                stack.extend(reversed(part.children))
        if (doubt := test_doubt(words, places)) is not None:
            self.doubts.append(doubt)

    def _token(self, node: Node) -> Word:
        text = self.source.of(node)
        known = node.type == "test_operator" or text in {"=", "==", "!=", "!"}
        return Word(text, self.source.span(node), "" if known else UNSURE)


def _cd_doubt(words: list[Word], places: Places) -> Doubt | None:
    if len(words) != 2:
        return Doubt("leaves the project's folder", words[0].span)
    target = words[1]
    if target.doubt or target.glob or target.text.startswith("-") or not target.text:
        return Doubt(target.doubt or "goes to a folder that cannot be known beforehand", target.span)
    if target.text.startswith("/"):
        return Doubt("goes to a folder by its absolute path", target.span)
    return places.path_doubt(target.text, target.span)


def _text_doubt(words: list[Word], places: Places) -> Doubt | None:
    from_reader = readers()["pwd"]
    for word in words[1:]:
        if (doubt := from_reader.literal_doubt(word, places)) is not None:
            return doubt
        if word.glob and not word.doubt and (doubt := places.doubt(word)) is not None:
            return doubt
    return None
