"""The model's answer: Markdown that grows. Only its last block is ever parsed again."""

import asyncio
import time

from markdown_it import MarkdownIt
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Markdown
from textual.widgets.markdown import MarkdownFence

from glimmer_tui.widgets.block import Block
from glimmer_tui.widgets.pace import Pace
from glimmer_tui.widgets.safe_text import printable
from glimmer_tui.widgets.syntax import highlighted

HIDING_RULES = (
    "link",
    "image",
    "autolink",
    "entity",
    "reference",
    "linkify",
    "html_inline",
    "html_block",
)


def _parser() -> MarkdownIt:
    """Markdown without anything that hides what was written.

    A link would hide where it leads, raw HTML would vanish, an entity could smuggle in a control character:
    all of them are shown as they were typed.
    """
    parser = MarkdownIt("gfm-like", {"html": False, "linkify": False})
    return parser.disable(list(HIDING_RULES))


class CodeFence(MarkdownFence):
    """A code block in the theme's own colours."""

    @classmethod
    def highlight(cls, code: str, language: str, ansi: bool = False, dark: bool = False) -> Content:
        return highlighted(code.expandtabs(4), language=language.split(" ", 1)[0])


_BLOCKS = {**Markdown.BLOCKS, "fence": CodeFence, "code_block": CodeFence}


class GlimmerMarkdown(Markdown):
    """Markdown with our code blocks; nothing in it can be clicked."""

    BLOCKS = _BLOCKS

    def __init__(self, text: str) -> None:
        super().__init__(text or None, parser_factory=_parser, open_links=False)


class AnswerBlock(Block):
    """An answer. `feed` takes its pieces as they come; `finish` when it is whole."""

    def __init__(self, text: str = "") -> None:
        super().__init__()
        self._text = printable(text)
        self._markdown = GlimmerMarkdown(self._text)
        self._pending: list[str] = []
        self._flushing: asyncio.Task[None] | None = None
        self._pace = Pace()
        self._done = bool(text)

    def compose(self) -> ComposeResult:
        yield self._markdown

    @property
    def live(self) -> bool:
        return not self._done

    @property
    def text(self) -> str:
        """All that was said so far."""
        return self._text + "".join(self._pending)

    def copy(self) -> "AnswerBlock":
        return AnswerBlock(self.text)

    def feed(self, text: str) -> None:
        """Take a piece; it is drawn soon, together with others."""
        self._pending.append(text)
        if self._flushing is None or self._flushing.done():
            self._flushing = asyncio.create_task(self._flush_soon())

    async def finish(self) -> None:
        """Draw what is left."""
        self._done = True
        if self._flushing is not None:
            await self._flushing
        await self._flush()

    async def _flush_soon(self) -> None:
        while self._pending and not self._done:
            await self._flush()
            await asyncio.sleep(self._pace.wait)

    async def _flush(self) -> None:
        if not self._pending or not self._markdown.is_attached:
            return
        text = printable("".join(self._pending))
        self._pending.clear()
        self._text += text
        started = time.perf_counter()
        await self._markdown.append(text)
        self._pace.spent(time.perf_counter() - started)
