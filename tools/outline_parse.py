"""Definitions found by a tree-sitter query, with how deep each lies in the others."""

from dataclasses import dataclass
from functools import cache

from tree_sitter import Language as Grammar
from tree_sitter import Node, Parser, Query, QueryCursor

from tools.outline_languages import Language
from tools.shown import shortened

LONGEST_SIGNATURE = 200
# The keyword of these stands outside their node.
_KEYWORDS = {"type_spec": "type ", "type_alias": "type "}


@dataclass(frozen=True, slots=True)
class Definition:
    """A class, function or type: its line from 1, its nesting from 0, its signature on one line."""

    line: int
    depth: int
    signature: str


def definitions(language: Language, text: str) -> list[Definition]:
    """The definitions of a text, in order. A text with errors gives those that can be recognised."""
    source = text.encode("utf-8", "replace")
    grammar, query = _loaded(language)
    tree = Parser(grammar).parse(source)
    captured = QueryCursor(query).captures(tree.root_node)
    nodes = sorted(captured.get("d", []), key=lambda node: (node.start_byte, -node.end_byte))
    found: list[Definition] = []
    open_ends: list[int] = []
    for node in nodes:
        while open_ends and open_ends[-1] <= node.start_byte:
            open_ends.pop()
        line = _named_at(node).start_point.row + 1
        found.append(Definition(line, len(open_ends), _signature(node, source)))
        open_ends.append(node.end_byte)
    return found


@cache
def _loaded(language: Language) -> tuple[Grammar, Query]:
    grammar = Grammar(language.load())
    return grammar, Query(grammar, language.query)


def _named_at(node: Node) -> Node:
    """Where the reader looks for it: the name, when annotations or attributes stand above it."""
    return node.child_by_field_name("name") or node.child_by_field_name("declarator") or node


def _signature(node: Node, source: bytes) -> str:
    if node.type == "type_definition":
        names = node.children_by_field_name("declarator")
        return "typedef " + ", ".join((name.text or b"").decode("utf-8", "replace") for name in names)
    body = node.child_by_field_name("body")
    value = node.child_by_field_name("value")
    if body is None and value is not None:
        body = value.child_by_field_name("body")
    start = node.start_byte
    modifiers = next((child for child in node.children if child.type == "modifiers"), None)
    if modifiers is not None:
        notes = [child for child in modifiers.children if "annotation" in child.type]
        start = max([start, *(child.end_byte for child in notes)])
    end = body.start_byte if body is not None else node.end_byte
    whole = source[start:end].decode("utf-8", "replace")
    if body is None:
        whole = whole.partition("\n")[0]
    signature = " ".join(whole.split()).rstrip(" {:;").removesuffix("=>").rstrip(" =")
    return shortened(_KEYWORDS.get(node.type, "") + signature, LONGEST_SIGNATURE)
