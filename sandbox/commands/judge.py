"""Walks a command's syntax tree and judges every part of it. A part it does not know is a doubt."""

from dataclasses import dataclass

from tree_sitter import Node

from sandbox.commands.checks import test_doubt
from sandbox.commands.places import Places
from sandbox.commands.programs import program_doubt
from sandbox.commands.words import UNSURE, Doubt, Source, Word, names, read_word

_DEEPEST = 40
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
}


@dataclass(slots=True)
class _Ways:
    """Where a statement leaves the shell: when it worked, and when it failed."""

    worked: Places
    failed: Places

    @property
    def either(self) -> Places:
        return self.worked.merged(self.failed)


class Judge:
    """Walks a syntax tree and collects every doubt. A node it does not know is one."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.doubts: list[Doubt] = []

    def _add(self, reason: str, node: Node) -> None:
        self.doubts.append(Doubt(reason, self.source.span(node)))

    def visit(self, node: Node, places: Places, depth: int) -> _Ways:
        """Judge a statement that may start in any of `places`, and say where it may end."""
        ways = _Ways(places, places)
        if depth > _DEEPEST:
            self._add("is nested too deeply to judge", node)
            return ways
        match node.type:
            case "program":
                ways = self._sequence(node.children, places, depth)
            case "list":
                ways = self._list(node, places, depth)
            case "pipeline":
                ways = self._pipeline(node, places, depth)
            case "command":
                ways = self._command(node, [], places)
            case "redirected_statement":
                ways = self._redirected(node, places, depth)
            case "compound_statement":
                ways = self._enclosed(node, "{", "}", places, depth)
            case "negated_command" if node.child_count == 2 and node.children[0].type == "!":
                inner = self.visit(node.children[1], places, depth + 1)
                ways = _Ways(inner.failed, inner.worked)
            case "subshell":
                self._enclosed(node, "(", ")", places, depth)
            case "test_command":
                self._test(node, places)
            case kind:
                self._add(_REASONS.get(kind, UNSURE), node)
        return ways

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
        """Judge one redirect. The words after its target are the command's own."""
        targets = node.children_by_field_name("destination") if node.type == "file_redirect" else []
        operator = next((child.type for child in node.children if not child.is_named), "")
        if node.type != "file_redirect" or (not targets and operator not in {">&-", "<&-"}):
            self._add(_REASONS.get(node.type, UNSURE), node)
        elif targets:
            word = read_word(self.source, targets[0])
            if (doubt := self._target_doubt(operator, word, node, places)) is not None:
                self.doubts.append(doubt)
        return [read_word(self.source, target) for target in targets[1:]]

    def _target_doubt(self, operator: str, word: Word, node: Node, places: Places) -> Doubt | None:
        if word.doubt or word.glob:
            return Doubt(word.doubt or "opens a file by a wildcard", word.span)
        match operator:
            case ">&" | "<&" if word.text.isascii() and word.text.isdigit():
                return None
            case "<":
                return places.path_doubt(word.text, word.span)
            case ">" | ">>" | ">|" | "&>" | "&>>" if word.text == "/dev/null":
                return None
            case _:
                return Doubt(f"writes to {word.text}", self.source.span(node))

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
        doubt = _chosen_by(words[0]) or program_doubt(words, places)
        if doubt is not None:
            self.doubts.append(doubt)
        elif words[0].text == "cd":
            return _Ways(places.entered(words[1]), places)
        return _Ways(places, places)

    def _test(self, node: Node, places: Places) -> None:
        inner = node.children
        if len(inner) < 3 or inner[0].type != "[" or inner[-1].type != "]":
            self._add(UNSURE, node)
            return
        words = [Word("[", self.source.span(inner[0]))]
        stack = list(reversed(inner[1:-1]))
        while stack:
            part = stack.pop()
            if part.is_named and part.type in _WORDS:
                words.append(read_word(self.source, part))
            elif part.child_count == 0:
                words.append(self._token(part))
            else:
                stack.extend(reversed(part.children))
        if (doubt := test_doubt(words, places)) is not None:
            self.doubts.append(doubt)

    def _token(self, node: Node) -> Word:
        text = self.source.of(node)
        known = node.type == "test_operator" or text in {"=", "==", "!=", "!"}
        return Word(text, self.source.span(node), "" if known else UNSURE)


def _chosen_by(name: Word) -> Doubt | None:
    """Why it cannot be told which program a command starts."""
    if name.doubt or name.glob:
        return Doubt(name.doubt or "chooses its program by a wildcard", name.span)
    return None
