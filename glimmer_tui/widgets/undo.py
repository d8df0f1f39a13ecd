"""The undo prompt: which files would go back to what they were, then yes or no."""

from collections.abc import Callable, Sequence

from textual.app import ComposeResult
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from glimmer_tui.widgets.lines import Line
from glimmer_tui.widgets.prompt import Prompt
from glimmer_tui.widgets.sheet import Sheet


class UndoPrompt(Prompt):
    """Shows what an undo will change. Posts `Confirmed` or `Dismissed`."""

    class Confirmed(Message):
        """The person wants it."""

    class Dismissed(Message):
        """The person does not want it."""

    def __init__(self, lines: Sequence[Line], clock: Callable[[], float]) -> None:
        super().__init__(clock, "undo")
        self._lines = lines

    def compose(self) -> ComposeResult:
        yield Static(
            Content.styled("Undo the last turn's changes?", "bold $accent"),
            classes="prompt--title",
            markup=False,
        )
        yield Sheet(self._lines)
        yield Static(
            Content.assemble(
                ("y", "bold $accent"), " put these files back   ", ("n", "bold $accent"), " leave them"
            ),
            classes="prompt--keys",
            markup=False,
        )

    def answer(self, key: str) -> bool:
        match key:
            case "y" | "Y":
                self.post_message(self.Confirmed())
            case "n" | "N" | "escape":
                self.post_message(self.Dismissed())
            case _:
                return False
        return True
