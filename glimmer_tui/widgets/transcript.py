"""The conversation: blocks under each other, of which only the newest are kept on the screen."""

from typing import ClassVar

from textual import events
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from glimmer_tui.widgets.block import Block, Fold

MOST_BLOCKS = 80
"""Blocks kept on the screen once older ones are taken out."""
SLACK = 20
"""Blocks over the limit before any is taken out, so that it happens rarely."""
MOST_WIDGETS = 1_500
PAGE = 40
"""Blocks that come back at a time."""


class EarlierLine(Static, can_focus=True):
    """Stands for the blocks that were taken out. Enter or a click brings a page of them back."""

    BINDINGS: ClassVar[list[BindingType]] = [("enter,space", "restore")]

    def __init__(self) -> None:
        super().__init__(markup=False)

    async def action_restore(self) -> None:
        if isinstance(self.parent, Transcript):
            await self.parent.restore()

    async def on_click(self, event: events.Click) -> None:
        event.stop()
        await self.action_restore()


class Transcript(VerticalScroll, can_focus=False):
    """Follows its end until the person scrolls away, and again once they are back."""

    def __init__(self) -> None:
        super().__init__()
        self._earlier: list[Block] = []
        self._earlier_line = EarlierLine()

    def on_mount(self) -> None:
        self.anchor()

    @property
    def blocks(self) -> list[Block]:
        """The blocks on the screen, oldest first."""
        return [child for child in self.children if isinstance(child, Block)]

    @property
    def folds(self) -> list[Fold]:
        return [block for block in self.blocks if isinstance(block, Fold)]

    @property
    def earlier(self) -> int:
        """How many blocks were taken out."""
        return len(self._earlier)

    @property
    def follows(self) -> bool:
        """Whether new blocks are scrolled into sight."""
        return self.scroll_y >= self.max_scroll_y

    async def add(self, block: Block) -> None:
        """Put a block at the end."""
        block.set_class(not (self.children and isinstance(self.children[-1], Fold)), "-first")
        await self.mount(block)
        await self._prune()

    async def clear(self) -> None:
        """Take everything out for good."""
        self._earlier.clear()
        await self.remove_children()
        self.anchor()

    async def restore(self) -> None:
        """Bring back the newest page of what was taken out, and stay where the person is reading."""
        page = self._earlier[-PAGE:]
        if not page:
            return
        del self._earlier[-PAGE:]
        first = self.blocks[0] if self.blocks else None
        below = self.max_scroll_y - self.scroll_y
        with self.app.batch_update():
            await self.mount_all(page, before=first)
            await self._show_earlier()
        self._stay(below)

    def _stay(self, below: float) -> None:
        """Keep what is being read in its place: `below` rows away from the end."""
        self.call_after_refresh(lambda: self.scroll_to(y=self.max_scroll_y - below, animate=False))

    async def _prune(self) -> None:
        blocks = self.blocks
        excess = len(blocks) - MOST_BLOCKS
        heavy = len(self.query("*")) > MOST_WIDGETS
        if not heavy and (excess <= SLACK or (excess <= SLACK * 4 and not self.follows)):
            return
        if heavy:
            excess = max(excess, len(blocks) // 2)
        old: list[Block] = []
        for block in blocks[:excess]:
            if block.live:
                break
            old.append(block)
        if not old:
            return
        self._earlier += [block.copy() for block in old]
        below = None if self.follows else self.max_scroll_y - self.scroll_y
        with self.app.batch_update():
            await self.remove_children(old)
            await self._show_earlier()
        if below is not None:
            self._stay(below)

    async def _show_earlier(self) -> None:
        count = len(self._earlier)
        if count == 0:
            await self._earlier_line.remove()
            self._earlier_line = EarlierLine()
            return
        if not self._earlier_line.is_attached:
            await self.mount(self._earlier_line, before=0)
        self._earlier_line.update(Content(f"… {count} earlier message{'s' if count != 1 else ''}"))
