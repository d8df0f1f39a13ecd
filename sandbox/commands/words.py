"""The words of a command as bash will read them, or the reason why that cannot be known beforehand."""

import re
from dataclasses import dataclass
from functools import cache

import tree_sitter_bash
from tree_sitter import Language, Node, Parser, Tree

UNSURE = "uses syntax that cannot be judged beforehand"
VARIABLE = "uses a variable, whose value cannot be known beforehand"
_OPERATORS = frozenset(" \t\n\r'\"`$&|;<>()")
_KINDS = {
    "command_substitution": "runs a command inside another",
    "process_substitution": "runs a command inside another",
    "arithmetic_expansion": "calculates, which can run a command",
    "expansion": "uses a parameter expansion, which can run a command",
    "ansi_c_string": "uses $'...' quoting, which can hide what it says",
    "translated_string": 'uses $"..." quoting, which can change what it says',
    "brace_expression": "uses a brace expansion",
}
_SIMPLE_ESCAPES = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "E": "\x1b",
    "f": "\f",
    "v": "\v",
}
_ANSI_ESCAPE = re.compile(
    r"\\(x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|U[0-9a-fA-F]{1,8}|[0-7]{1,3}|.)", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why a command is not a plain reader, and the range that shows it. `secret`: one may be read."""

    reason: str
    span: tuple[int, int]
    secret: bool = False


@dataclass(frozen=True, slots=True)
class Word:
    """One word after quote removal.

    `doubt` says why the value is not literal; `text` is then the best guess, good enough to find what would
    destroy. `glob`: it holds an unquoted wildcard. `home`: it begins with the home folder, written `~`.
    """

    text: str
    span: tuple[int, int]
    doubt: str = ""
    glob: bool = False
    home: bool = False


@dataclass(frozen=True, slots=True)
class Source:
    """A command and its syntax tree. Byte offsets of the tree are turned into character offsets."""

    text: str
    data: bytes
    starts: tuple[int, ...]
    tree: Tree

    def of(self, node: Node) -> str:
        return self.data[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def between(self, start: int, end: int) -> str:
        return self.data[start:end].decode("utf-8", "replace")

    def span(self, node: Node) -> tuple[int, int]:
        return self.starts[node.start_byte], self.starts[node.end_byte]


@cache
def _language() -> Language:
    return Language(tree_sitter_bash.language())


def parse(text: str) -> Source:
    """The syntax tree of a command. Never raises, whatever the text is."""
    data = text.encode("utf-8", "surrogatepass")
    starts: list[int] = []
    for index, char in enumerate(text):
        starts.extend([index] * len(char.encode("utf-8", "surrogatepass")))
    starts.append(len(text))
    return Source(text, data, tuple(starts), Parser(_language()).parse(data))


@dataclass(frozen=True, slots=True)
class _Piece:
    text: str
    doubt: str = ""
    glob: bool = False
    home: bool = False


def read_word(source: Source, node: Node) -> Word:
    """The word a node stands for."""
    piece = _piece(source, node)
    return Word(piece.text, source.span(node), piece.doubt, piece.glob, piece.home)


def _piece(source: Source, node: Node) -> _Piece:
    raw = source.of(node)
    match node.type:
        case "word" | "number" | "command_name" if node.named_child_count == 0:
            piece = _bare(raw)
        case "command_name" if node.child_count == 1:
            piece = _piece(source, node.children[0])
        case "raw_string" if len(raw) >= 2:
            piece = _Piece(raw[1:-1])
        case "string" if len(raw) >= 2:
            piece = _quoted(source, node)
        case "concatenation":
            piece = _joined(source, node)
        case "simple_expansion" | "expansion":
            piece = _expansion(raw, node.type)
        case "ansi_c_string":
            piece = _Piece(_ANSI_ESCAPE.sub(_ansi, raw[2:-1]), _KINDS["ansi_c_string"])
        case kind:
            piece = _Piece(raw, _KINDS.get(kind, UNSURE))
    return piece


def _ansi(match: re.Match[str]) -> str:
    code = match.group(1)
    if code[0] in "xuU" and len(code) > 1:
        return chr(min(int(code[1:], 16), 0x10FFFF))
    if code[0] in "01234567":
        return chr(int(code, 8) & 0xFF)
    return _SIMPLE_ESCAPES.get(code, code)


def _bare(raw: str) -> _Piece:
    out: list[str] = []
    doubt = ""
    glob = False
    braces: list[str] = []
    index = 0
    while index < len(raw):
        char = raw[index]
        if char == "\\":
            index += 1
            if index >= len(raw) or raw[index] == "\n":
                doubt = doubt or UNSURE
            out.append(raw[index : index + 1])
        else:
            if char in _OPERATORS or (char == "#" and index == 0):
                doubt = doubt or UNSURE
            if char == "~" and (index == 0 or raw[index - 1] in "=:"):
                doubt = doubt or "names the home folder"
            glob = glob or char in "*?["
            if char in "{}":
                braces.append(raw[index - 1 : index] + char)
            out.append(char)
        index += 1
    if braces and (
        any(pair[-1] == "{" and pair not in {"@{", "^{"} for pair in braces) or "," in raw or ".." in raw
    ):
        doubt = doubt or "uses a brace expansion"
    if "}" in raw and "{" not in raw:
        doubt = doubt or "uses a brace expansion"
    return _Piece("".join(out), doubt, glob, raw.startswith("~"))


def _quoted(source: Source, node: Node) -> _Piece:
    out: list[str] = []
    doubt = ""
    home = False
    at = node.start_byte + 1
    for child in node.children:
        if child.type in {'"', "string_content"}:
            continue
        out.append(_unescaped(source.between(at, child.start_byte)))
        piece = _piece(source, child)
        home = home or (piece.home and "".join(out) == "")
        out.append(piece.text)
        doubt = doubt or piece.doubt or UNSURE
        at = child.end_byte
    out.append(_unescaped(source.between(at, node.end_byte - 1)))
    inside = source.between(node.start_byte + 1, node.end_byte - 1)
    if not doubt and re.search(r"(?<!\\)(?:\\\\)*[$`]", inside):
        doubt = UNSURE
    return _Piece("".join(out), doubt, False, home)


def _unescaped(text: str) -> str:
    return re.sub(r'\\([\\"$`])', r"\1", text.replace("\\\n", ""))


def _joined(source: Source, node: Node) -> _Piece:
    pieces: list[_Piece] = []
    doubt = ""
    at = node.start_byte
    for child in node.children:
        if child.start_byte != at or not child.is_named:
            doubt = UNSURE
        pieces.append(_piece(source, child))
        at = child.end_byte
    raw = source.of(node)
    if at != node.end_byte:
        doubt = UNSURE
    outer = "".join(source.of(child) for child in node.children if child.type == "word")
    if "{" in outer or "}" in outer:
        if "," in raw or ".." in raw or not ("@{" in raw or "^{" in raw):
            doubt = doubt or "uses a brace expansion"
        pieces = [
            _Piece(
                piece.text,
                "" if piece.doubt == "uses a brace expansion" else piece.doubt,
                piece.glob,
                piece.home,
            )
            for piece in pieces
        ]
    doubt = doubt or next((piece.doubt for piece in pieces if piece.doubt), "")
    text = "".join(piece.text for piece in pieces)
    return _Piece(text, doubt, any(piece.glob for piece in pieces), pieces[0].home if pieces else False)


def _expansion(raw: str, kind: str) -> _Piece:
    name = raw.strip("${}")
    if name == "HOME":
        return _Piece("~", VARIABLE, False, True)
    if kind == "simple_expansion" or re.fullmatch(r"\$\{\w+\}", raw):
        return _Piece(raw, VARIABLE, True)
    return _Piece(raw, _KINDS["expansion"], True)


def names(text: str) -> frozenset[str]:
    """The names of a list written with blanks between them."""
    return frozenset(text.split())
