"""The keys and commands, on one page."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from glimmer_tui.agent.commands import COMMANDS, Command

KEYS: tuple[tuple[str, str], ...] = (
    ("Enter", "send"),
    ("Ctrl+J  Alt+Enter", "new line"),
    ("Up  Down", "what you sent before"),
    ("Ctrl+V", "put the clipboard's picture, or text, into the message"),
    ("Backspace", "take the last picture away, at the start of the text"),
    ("Esc", "stop the running turn"),
    ("Shift+Tab", "next mode"),
    ("Tab", "to the question or the blocks above, and back"),
    ("Ctrl+O", "open or close all output and reasoning"),
    ("PgUp  PgDn", "scroll the conversation"),
    ("Home  End", "its start and end, in an empty composer"),
    ("?", "this page, in an empty composer"),
    ("Ctrl+C", "copy a selection, else clear, stop, twice: quit"),
)
BLOCK_KEYS: tuple[tuple[str, str], ...] = (
    ("Up  Down", "the block before or after"),
    ("Enter", "open or close it"),
    ("Right  Left", "into its text and back"),
    ("o", "a picture: open it in the system's viewer"),
    ("Esc", "back to writing"),
)
MODES: tuple[tuple[str, str], ...] = (
    ("read-only", "nothing is changed and nothing is run"),
    ("ask", "you are asked before every change"),
    ("auto-edit", "files are edited without asking, commands are not run"),
    ("auto", "what the rules allow runs without asking"),
)


class HelpScreen(ModalScreen[None]):
    """Any of Escape, q, ? and Enter closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [("escape,q,enter,question_mark,f1,ctrl+c", "close")]

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="help"):
            yield Static(help_text(), markup=False)

    def on_mount(self) -> None:
        self.query_one("#help").focus()

    def action_close(self) -> None:
        self.dismiss(None)


def help_text() -> Content:
    """The whole page."""
    commands = tuple((command.name, _told(command)) for command in COMMANDS)
    parts = [Content.styled("✦ Glimmer", "bold $accent")]
    for title, rows in (("Keys", KEYS), ("Commands", commands), ("In a block", BLOCK_KEYS), ("Modes", MODES)):
        parts.append(Content.styled(f"\n{title}", "bold"))
        width = max(len(left) for left, _ in rows)
        for left, right in rows:
            parts.append(Content.assemble("  ", (left.ljust(width), "$accent"), "  ", (right, "$muted")))
    parts.append(Content.styled("\nEsc closes this page.", "$muted"))
    return Content("\n").join(parts)


def _told(command: Command) -> str:
    words = command.help[:1].lower() + command.help[1:]
    return f"{words}: {command.argument.replace('|', ', ')}" if command.argument else words
