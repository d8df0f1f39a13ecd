"""Whether a syntax tree accounts for the whole of a command. A parser that skips a character hides it."""

from tree_sitter import Node

from sandbox.commands.words import Source


def error_span(source: Source) -> tuple[int, int]:
    """Where the first part is that is no valid shell syntax."""
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


def gap(source: Source) -> tuple[int, int] | None:
    """A stretch of text that no part of the tree stands for, blanks apart."""
    at = 0
    for leaf in [*_leaves(source), None]:
        start = len(source.data) if leaf is None else leaf.start_byte
        if start > at and source.data[at:start].strip(b" \t\n"):
            return source.starts[at], source.starts[start]
        at = max(at, start if leaf is None else leaf.end_byte)
    return None
