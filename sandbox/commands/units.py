"""A command as the separate commands it is made of, so that an approval can be held to exactly those."""

from tree_sitter import Node

from sandbox.commands.words import Source, names, parse, read_word

Unit = tuple[str, ...]
WHOLE = "|"
_STATEFUL = names(
    "cd pushd popd dirs export declare typeset local readonly unset set shopt alias unalias source . eval "
    "exec trap umask ulimit hash enable read mapfile readarray getopts shift return exit break continue "
    "wait bg fg jobs disown printf let builtin command complete compgen bind history fc logout suspend "
    "times coproc time"
)


def units(command: str) -> tuple[Unit, ...]:
    """The commands of a list joined by `&&`, `||`, `;` or line breaks, each as its exact words.

    A pipeline is one unit, its parts joined by "|", because what a program is fed decides what it does. A
    command with anything beyond plain words (expansions, files written, variables, changes to the shell
    itself) is one unit too: WHOLE and its text.
    """
    source = parse(command)
    whole = ((WHOLE, command),)
    if source.tree.root_node.has_error or "\\\n" in command:
        return whole
    return _collected(source) or whole


def _collected(source: Source) -> tuple[Unit, ...]:
    """The units in their order, none when one of them is not plain. No recursion: lists nest deeply."""
    found: list[Unit] = []
    stack = [source.tree.root_node]
    while stack:
        node = stack.pop()
        match node.type:
            case "program" | "list":
                allowed = {"&&", "||", ";", "\n", "comment"}
                stack.extend(child for child in reversed(node.children) if child.type not in allowed)
            case "pipeline" | "command" | "redirected_statement":
                unit = _pipeline(source, node)
                if unit is None:
                    return ()
                found.append(unit)
            case _:
                return ()
    return tuple(found)


def _pipeline(source: Source, node: Node) -> Unit | None:
    if node.type != "pipeline":
        unit = _simple(source, node)
        return None if unit is None else _told_apart(unit)
    words: list[str] = []
    for child in node.children:
        if child.type in {"|", "|&"}:
            words.append(child.type)
            continue
        unit = _simple(source, child)
        if unit is None or unit == ():
            return None
        words.extend(_told_apart(unit))
    return tuple(words)


def _told_apart(unit: Unit) -> Unit:
    """The words with those that could pass for a mark of ours escaped."""
    return tuple(f"\\{word}" if word.startswith(("|", "\\")) else word for word in unit)


def _simple(source: Source, node: Node) -> Unit | None:
    """One command's words. A redirect to /dev/null or between open files changes nothing and is left out."""
    extra: list[Node] = []
    body = node
    if node.type == "redirected_statement":
        inner = node.child_by_field_name("body")
        if inner is None:
            return None
        body = inner
        for child in node.children:
            if child != body and not _harmless(source, child):
                return None
            extra.extend(child.children_by_field_name("destination")[1:])
    if body.type != "command":
        return None
    words = [read_word(source, child) for child in [*body.children, *extra]]
    if any(word.doubt for word in words) or words[0].text in _STATEFUL:
        return None
    if any(word.glob for word in words):
        return None
    return tuple(word.text for word in words)


def varies(command: str) -> bool:
    """Whether the same text may do something else next time: it holds a wildcard, a variable or the like."""
    source = parse(command)
    stack = [source.tree.root_node]
    while stack:
        node = stack.pop()
        if node.type in {"word", "string", "concatenation"}:
            word = read_word(source, node)
            if word.glob or word.doubt:
                return True
        elif node.type.endswith(("expansion", "substitution")):
            return True
        stack.extend(node.named_children)
    return False


def _harmless(source: Source, node: Node) -> bool:
    targets = node.children_by_field_name("destination")
    if node.type != "file_redirect" or not targets:
        return False
    word = read_word(source, targets[0])
    operator = next((child.type for child in node.children if not child.is_named), "")
    if word.doubt or word.glob:
        return False
    return (operator in {">", ">>", "&>"} and word.text == "/dev/null") or (
        operator == ">&" and word.text.isdigit()
    )
