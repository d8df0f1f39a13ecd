"""Messages that wait until the running turn takes them up."""

from textual.content import Content
from textual.widgets import Static

from glimmer_tui.widgets.safe_text import one_line

MOST_SHOWN = 3


class Queued(Static):
    """A dim line for each waiting message."""

    def __init__(self) -> None:
        super().__init__(markup=False)
        self._texts: list[str] = []
        self.display = False

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(self._texts)

    def add(self, text: str) -> None:
        """A message waits."""
        self._texts.append(text)
        self._draw()

    def take(self, text: str) -> None:
        """A message was taken up, if it waited at all."""
        if text in self._texts:
            self._texts.remove(text)
            self._draw()

    def clear(self) -> None:
        """No message waits any more."""
        self._texts.clear()
        self._draw()

    def _draw(self) -> None:
        self.display = bool(self._texts)
        rows = [
            Content.assemble(("queued  ", "$accent"), one_line(text, 200))
            for text in self._texts[:MOST_SHOWN]
        ]
        if len(self._texts) > MOST_SHOWN:
            rows.append(Content(f"… and {len(self._texts) - MOST_SHOWN} more"))
        self.update(Content("\n").join(rows))
