"""The approval prompt: exactly what would happen, why it is asked, and the keys that answer."""

from collections.abc import Callable

from textual import events
from textual.app import ComposeResult
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static

from glimmer_tui.agent.events import ApprovalRequested
from glimmer_tui.widgets.lines import Line, change_lines, count_changes
from glimmer_tui.widgets.prompt import Prompt
from glimmer_tui.widgets.safe_text import one_line
from glimmer_tui.widgets.sheet import Sheet
from sandbox.actions import Decision
from sandbox.visible import escaped
from tools.base import CommandLine, FileChange

KEYS_WIDTH = 40
"""Cells the keys take beside the words for "always"."""


class ApprovalPrompt(Prompt):
    """Asks about one plan. Posts `Answered`, or `Stopped` for Escape."""

    class Answered(Message):
        """The person decided."""

        def __init__(self, approval_id: str, decision: Decision) -> None:
            super().__init__()
            self.approval_id = approval_id
            self.decision = decision

    class Stopped(Message):
        """The person wants neither this nor the rest of the turn."""

        def __init__(self, approval_id: str) -> None:
            super().__init__()
            self.approval_id = approval_id

    def __init__(self, request: ApprovalRequested, clock: Callable[[], float]) -> None:
        super().__init__(clock, "approval")
        self._request = request
        self._note = NoteField(placeholder="What should it do instead? Enter sends, Esc goes back")
        self._note.cursor_blink = False
        self._keys = Static(classes="prompt--keys", markup=False)

    @property
    def request(self) -> ApprovalRequested:
        return self._request

    def compose(self) -> ComposeResult:
        title, lines = _shown(self._request)
        yield Static(title, classes="prompt--title", markup=False)
        if lines:
            yield PromptSheet(lines)
        if self._request.reason:
            yield Static(reason_text(self._request.reason), classes="prompt--reason", markup=False)
        self._note.display = False
        yield self._note
        yield self._keys

    def on_mount(self) -> None:
        super().on_mount()
        self.watch(self, "has_focus", self._draw_keys)
        self.watch(self._note, "has_focus", self._draw_keys)

    def on_resize(self) -> None:
        self._draw_keys()

    def answer(self, key: str) -> bool:
        match key:
            case "y" | "Y":
                self.post_message(self.Answered(self._request.id, Decision("allow")))
            case "a" | "A" if self._request.always:
                self.post_message(self.Answered(self._request.id, Decision("allow_always")))
            case "n" | "N":
                self._note.display = True
                self._note.focus()
            case "escape":
                self.post_message(self.Stopped(self._request.id))
            case _:
                return False
        return True

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.post_message(self.Answered(self._request.id, Decision("deny", event.value.strip())))

    def on_note_field_left(self) -> None:
        self._note.display = False
        self.focus()

    def _draw_keys(self) -> None:
        if self._note.has_focus:
            self._keys.update(_keys(("Enter", "send"), ("Esc", "back")))
            return
        if not self.has_focus:
            self._keys.update(_keys(("Tab", "to answer, once you are done writing")))
            return
        always = one_line(self._request.always, 120)
        wide = self.size.width >= KEYS_WIDTH + len(always)
        keys = [("y", "yes"), ("n", "no"), ("Esc", "stop")]
        if always:
            keys.insert(1, ("a", f"always: {always}" if wide else "always"))
        shown = _keys(*keys)
        if always and not wide:
            shown += Content.styled(f"\na: {always}", "$muted")
        self._keys.update(shown)


def _keys(*keys: tuple[str, str]) -> Content:
    """Keys and what they do, on one line."""
    parts = [Content.assemble((key, "bold $accent"), f" {words}") for key, words in keys]
    return Content("   ").join(parts)


class NoteField(Input):
    """One line for the model when the person says no."""

    class Left(Message):
        """The person wants no note after all."""

    def on_key(self, event: events.Key) -> None:
        if event.key == "escape":
            event.stop()
            event.prevent_default()
            self.post_message(self.Left())


class PromptSheet(Sheet, can_focus=False):
    """What is being approved; the prompt itself scrolls it. It begins at the first change."""

    def on_resize(self) -> None:
        self.call_after_refresh(self.show_first_change)


def _shown(request: ApprovalRequested) -> tuple[Content, list[Line]]:
    match request.preview:
        case FileChange(path=path, before=before):
            lines = change_lines(request.preview, escaped)
            added, removed = count_changes(lines)
            verb = "Create" if before is None else "Change"
            title = Content.assemble(
                (f"{verb} ", "bold $accent"),
                (escaped(path), "bold"),
                (f"   +{added}", "$success"),
                (f" -{removed}" if removed else "", "$error"),
            )
            return title, lines
        case CommandLine(command=command, cwd=cwd, timeout=timeout):
            place = "" if cwd in ("", ".") else f"in {escaped(cwd)}, "
            title = Content.assemble(
                ("Run this command", "bold $accent"), (f"   {place}at most {timeout:.0f} s", "$muted")
            )
            return title, [Line(Content(part), "  ") for part in command_rows(command)]
        case None:
            return Content.assemble(("Allow ", "bold $accent"), (one_line(request.tool), "bold"), "?"), []


def command_rows(command: str) -> list[str]:
    """The command with every character visible, a row for each of its lines."""
    return escaped(command).split("\n")


def reason_text(reason: str) -> Content:
    """Why it asks. What stands between the only two backticks is shown as code; more of them may be part of a
    name, and then nothing is left out."""
    match one_line(reason).split("`"):
        case [before, code, after]:
            return Content.assemble(before, (code, "$foreground"), after)
        case parts:
            return Content("`".join(parts))
