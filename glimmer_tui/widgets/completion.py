"""The commands that fit what is being written, above the composer."""

from textual.content import Content
from textual.widgets import Static

from glimmer_tui.agent.commands import Command, complete
from glimmer_tui.widgets.composer import MARK


class Completion(Static):
    """A short list with one row chosen. Hidden when nothing fits."""

    def __init__(self) -> None:
        super().__init__(markup=False)
        self._rows: list[tuple[str, str]] = []
        self._chosen = 0
        self.display = False

    @property
    def choice(self) -> str:
        """The text the chosen row stands for; "" when there is none."""
        return self._rows[self._chosen][0] if self._rows else ""

    def match(self, text: str) -> bool:
        """Show what fits `text`; True when there is something to choose."""
        rows = _rows(text) if "\n" not in text else []
        if rows != self._rows:
            self._rows, self._chosen = rows, 0
        self._draw()
        return bool(rows)

    def step(self, by: int) -> None:
        """Choose the row after (1) or before (-1)."""
        if self._rows:
            self._chosen = (self._chosen + by) % len(self._rows)
            self._draw()

    def close(self) -> None:
        """Hide until something else fits."""
        self._rows = []
        self._draw()

    def _draw(self) -> None:
        self.display = bool(self._rows)
        width = max((len(text) for text, _ in self._rows), default=0)
        lines = [
            Content.assemble(
                (f"{MARK} " if index == self._chosen else "  ", "bold $accent"),
                (text.ljust(width), "bold $accent" if index == self._chosen else "$foreground"),
                (f"  {words}", "$muted"),
            )
            for index, (text, words) in enumerate(self._rows)
        ]
        self.update(Content("\n").join(lines))


def _rows(text: str) -> list[tuple[str, str]]:
    name, space, argument = text.partition(" ")
    if not space:
        return [(command.name, command.help) for command in complete(text)]
    for command in complete(name):
        if command.name == name and command.argument:
            return [
                (f"{name} {value}", "")
                for value in values(command)
                if value.startswith(argument) and value != argument
            ]
    return []


def values(command: Command) -> tuple[str, ...]:
    """The values a command's argument may take."""
    if not command.argument or is_optional(command):
        return ()
    return tuple(command.argument.split("|"))


def is_optional(command: Command) -> bool:
    """Whether the command means something without its argument."""
    return command.argument.startswith("[")
