"""Code with its colours, as Textual content. Names of styles are the theme's `$syntax-…` variables."""

from functools import lru_cache
from typing import TYPE_CHECKING

from textual.content import Content, Span

if TYPE_CHECKING:
    from pygments.lexer import Lexer

LARGEST = 200_000
"""Characters of code beyond which colours are left out: they would cost more time than they give."""
LONGEST_LINE = 2_000

_STYLES: tuple[tuple[str, str], ...] = (
    ("Token.Comment", "$syntax-comment italic"),
    ("Token.Keyword.Constant", "$syntax-number"),
    ("Token.Keyword", "$syntax-keyword"),
    ("Token.Operator.Word", "$syntax-keyword"),
    ("Token.Literal.String", "$syntax-string"),
    ("Token.Literal.Number", "$syntax-number"),
    ("Token.Name.Function", "$syntax-name"),
    ("Token.Name.Decorator", "$syntax-name"),
    ("Token.Name.Tag", "$syntax-name"),
    ("Token.Name.Class", "$syntax-type"),
    ("Token.Name.Exception", "$syntax-type"),
    ("Token.Name.Builtin", "$syntax-type"),
    ("Token.Name.Attribute", "$syntax-type"),
    ("Token.Generic.Heading", "bold"),
)


def highlighted(code: str, *, path: str = "", language: str = "") -> Content:
    """Printable `code` coloured by its file name or language; plain when neither is known."""
    plain = Content(code)
    if len(code) > LARGEST or any(len(line) > LONGEST_LINE for line in code.split("\n")):
        return plain
    lexer = _lexer(path, language.strip().lower())
    if lexer is None:
        return plain
    spans: list[Span] = []
    start = 0
    for _, kind, value in lexer.get_tokens_unprocessed(code):
        end = start + len(value)
        if (style := _style(str(kind))) and value:
            spans.append(Span(start, end, style))
        start = end
    return Content(code, spans)


def lines_of(content: Content) -> list[Content]:
    """The content cut at its line feeds; one empty line for empty content."""
    return list(content.split("\n", allow_blank=True)) or [Content("")]


@lru_cache(maxsize=64)
def _lexer(path: str, language: str) -> "Lexer | None":
    # Pygments is loaded with the first piece of code, not with the application.
    from pygments.lexers import find_lexer_class_for_filename, get_lexer_by_name
    from pygments.util import ClassNotFound

    if path:
        found = find_lexer_class_for_filename(path)
        return found() if found is not None else None
    if not language:
        return None
    try:
        return get_lexer_by_name(language)
    except ClassNotFound:
        return None


@lru_cache(maxsize=256)
def _style(kind: str) -> str:
    for prefix, style in _STYLES:
        if kind == prefix or kind.startswith(prefix + "."):
            return style
    return ""
