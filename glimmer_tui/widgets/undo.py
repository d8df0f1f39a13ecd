"""The undo prompt: which files would go back to what they were, then the person's answer."""

from collections.abc import Callable, Sequence

from textual.app import ComposeResult
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from glimmer_tui.widgets.lines import Line
from glimmer_tui.widgets.prompt import Prompt
from glimmer_tui.widgets.sheet import Sheet


class UndoPrompt(Prompt):
    """Shows what an undo will change. Posts `Confirmed`, `PassedOver` or `Dismissed`.

    Files that were changed since are left alone, unless the person says to overwrite them. As long as one is
    left, older turns wait behind this one; passing over it makes way for them.
    """

    class Confirmed(Message):
        """The person wants it; with `force`, also where a file was changed since."""

        def __init__(self, force: bool = False) -> None:
            super().__init__()
            self.force = force

    class PassedOver(Message):
        """The person wants this turn kept and the one before it to be next."""

    class Dismissed(Message):
        """The person does not want it."""

    def __init__(self, lines: Sequence[Line], in_conflict: bool, clock: Callable[[], float]) -> None:
        super().__init__(clock, "undo")
        self._lines = lines
        self._in_conflict = in_conflict

    def compose(self) -> ComposeResult:
        yield Static(
            Content.styled("Undo the last turn's changes?", "bold $accent"),
            classes="prompt--title",
            markup=False,
        )
        yield Sheet(self._lines)
        yield Static(
            Content.assemble(*self._keys()),
            classes="prompt--keys",
            markup=False,
        )

    def _keys(self) -> list[str | tuple[str, str]]:
        choices = [("y", "put these files back"), ("n", "leave them")]
        if self._in_conflict:
            choices[1:1] = [("o", "overwrite what was changed since, too"), ("s", "skip this turn")]
        parts: list[str | tuple[str, str]] = []
        for key, words in choices:
            parts += [(key, "bold $accent"), f" {words}   "]
        return parts

    def answer(self, key: str) -> bool:
        match key:
            case "y" | "Y":
                self.post_message(self.Confirmed())
            case "o" | "O" if self._in_conflict:
                self.post_message(self.Confirmed(force=True))
            case "s" | "S" if self._in_conflict:
                self.post_message(self.PassedOver())
            case "n" | "N" | "escape":
                self.post_message(self.Dismissed())
            case _:
                return False
        return True
