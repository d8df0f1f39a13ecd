"""The one screen: the conversation, what waits for an answer, the composer, the status row."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, cast

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Static, TextArea

from engine.messages import STRENGTHS, Strength
from engine.protocol import Capabilities
from glimmer_tui.agent.commands import Invocation, UnknownCommand, parse
from glimmer_tui.agent.events import ApprovalRequested, Notice
from glimmer_tui.pictures.viewer import Viewer
from glimmer_tui.screens.attaching import Attaching
from glimmer_tui.screens.port import Conversation
from glimmer_tui.widgets.approval import ApprovalPrompt
from glimmer_tui.widgets.block import Fold
from glimmer_tui.widgets.completion import Completion, is_optional
from glimmer_tui.widgets.composer import MARK, Composer
from glimmer_tui.widgets.lines import Line
from glimmer_tui.widgets.picture_block import PictureBlock
from glimmer_tui.widgets.prompt import Prompt
from glimmer_tui.widgets.queued import Queued
from glimmer_tui.widgets.sayings import greeting_block, notice_block
from glimmer_tui.widgets.sheet import Sheet
from glimmer_tui.widgets.status import StatusLine
from glimmer_tui.widgets.transcript import EarlierLine, Transcript
from glimmer_tui.widgets.undo import UndoPrompt
from sandbox.actions import MODES, Decision, Mode

if TYPE_CHECKING:
    from sandbox.recorded_files import Restored

QUIT_AGAIN_SECONDS = 2.0


class MainScreen(Screen[None]):
    """Turns keys into calls of the session. What the session publishes comes in through the bridge."""

    AUTO_FOCUS = "Composer"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "tab", show=False),
        Binding("shift+tab", "cycle_mode", show=False),
        Binding("escape", "escape", show=False),
        Binding("ctrl+c", "interrupt", show=False, priority=True),
        Binding("ctrl+o", "toggle_output", show=False, priority=True),
        Binding("f1", "help", show=False),
        Binding("pageup", "scroll_page(-1)", show=False, priority=True),
        Binding("pagedown", "scroll_page(1)", show=False, priority=True),
        Binding("ctrl+home", "scroll_edge(-1)", show=False, priority=True),
        Binding("ctrl+end", "scroll_edge(1)", show=False, priority=True),
    ]

    def __init__(self, session: Conversation, clock: Callable[[], float], root: Path) -> None:
        """`clock` counts seconds. `root` is the project's folder, where paths that are typed start."""
        super().__init__()
        self._session = session
        self.clock = clock
        self.transcript = Transcript()
        self.composer = Composer()
        self.status = StatusLine()
        self.queued = Queued()
        self.viewer = Viewer(root)
        self.attaching = Attaching(session, root, self.composer, self.status, self.say)
        self._completion = Completion()
        self._slot = Vertical(id="slot")
        self._waiting: list[ApprovalRequested] = []
        self._all_open = False
        self._interrupted_at = -QUIT_AGAIN_SECONDS

    def compose(self) -> ComposeResult:
        yield self.transcript
        with Vertical(id="foot"):
            yield self.queued
            yield self._slot
            yield self._completion
            yield self.attaching.row
            with Horizontal(id="composer-row"):
                yield Static(MARK, id="composer-mark", markup=False)
                yield self.composer
            yield self.status

    async def on_mount(self) -> None:
        await self.greet()

    async def greet(self) -> None:
        """The first block of a conversation."""
        await self.transcript.add(greeting_block())

    @property
    def busy(self) -> bool:
        """Whether a turn runs."""
        return self._session.busy

    @property
    def opens_output(self) -> bool:
        """Whether new blocks begin open."""
        return self._all_open

    async def meet(self, model: Capabilities) -> None:
        """The model is loaded."""
        await self.attaching.meet(model)

    @property
    def picture_tokens(self) -> int:
        """The most tokens of one picture; 0 while the model is not known."""
        return self.attaching.row.cap

    async def say(self, text: str, level: str = "info") -> None:
        """A sentence of the screen's own."""
        await self.transcript.add(notice_block(Notice(text, level)))

    def on_resize(self, event: events.Resize) -> None:
        self._fit(event.size.height)

    def _fit(self, height: int) -> None:
        """Bound what may grow, in cells: a share of the screen does not bound a box of automatic height."""
        self.composer.styles.max_height = max(height // 3, 1)
        for sheet in self._slot.query(Sheet):
            sheet.styles.max_height = max(height // 4, 3) if height < 18 else height * 2 // 5

    # What waits for an answer

    async def ask(self, request: ApprovalRequested) -> None:
        """Show an approval, or line it up behind the one that is shown."""
        self._waiting.append(request)
        if len(self._waiting) == 1:
            await self._show(ApprovalPrompt(request, self.clock))

    async def settle(self, approval_id: str) -> None:
        """An approval was answered: take its prompt away and show the next."""
        first = bool(self._waiting) and self._waiting[0].id == approval_id
        self._waiting = [request for request in self._waiting if request.id != approval_id]
        if not first:
            return
        await self._close_prompt()
        if self._waiting:
            await self._show(ApprovalPrompt(self._waiting[0], self.clock))

    @property
    def prompt(self) -> Prompt | None:
        """What waits for an answer now."""
        return next((child for child in self._slot.children if isinstance(child, Prompt)), None)

    async def _show(self, prompt: Prompt) -> None:
        writing = self.composer.has_focus and bool(self.composer.text)
        await self._slot.remove_children()
        await self._slot.mount(prompt)
        self._fit(self.size.height)
        if not writing:
            prompt.focus()

    async def _close_prompt(self) -> None:
        held_focus = self.focused is not None and self._slot in self.focused.ancestors
        await self._slot.remove_children()
        if held_focus or self.focused is None:
            self.composer.focus()

    def on_approval_prompt_answered(self, event: ApprovalPrompt.Answered) -> None:
        self._session.reply(event.approval_id, event.decision)

    def on_approval_prompt_stopped(self, event: ApprovalPrompt.Stopped) -> None:
        self._session.reply(event.approval_id, Decision("deny"))
        self._stop()

    async def on_undo_prompt_confirmed(self, event: UndoPrompt.Confirmed) -> None:
        await self._close_prompt()
        self.run_worker(self._undo(event.force), group="files")

    async def on_undo_prompt_passed_over(self) -> None:
        await self._close_prompt()
        self.run_worker(self._pass_over(), group="files")

    async def on_undo_prompt_dismissed(self) -> None:
        await self._close_prompt()

    # Writing

    async def on_composer_submitted(self, event: Composer.Submitted) -> None:
        self._complete("")
        self.transcript.anchor()
        match parse(event.text):
            case Invocation() as invocation:
                await self._run_command(invocation)
            case UnknownCommand(name):
                await self.say(f"There is no command {name}. /help lists them.", "warning")
            case None:
                self._send(event.text)

    def _send(self, text: str) -> None:
        if (sending := self.attaching.send(text)) is not None:
            self.run_worker(sending, group="sending")

    def on_composer_emptied(self) -> None:
        self.attaching.drop_last()

    def on_composer_clipboard_wanted(self) -> None:
        self.run_worker(self.attaching.add_clipboard(), group="pictures")

    def on_composer_dropped(self, event: Composer.Dropped) -> None:
        self.run_worker(self.attaching.add_dropped(event.text), group="pictures")

    def on_picture_block_wanted(self, event: PictureBlock.Wanted) -> None:
        self.run_worker(self._open_outside(event.data), group="viewer")

    async def _open_outside(self, data: bytes) -> None:
        if told := await asyncio.to_thread(self.viewer.show, data):
            self.transcript.anchor()
            await self.say(told)

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        if event.text_area is self.composer:
            self._complete(self.composer.text)

    def on_composer_steered(self, event: Composer.Steered) -> None:
        match event.key:
            case "up":
                self._completion.step(-1)
            case "down":
                self._completion.step(1)
            case "close":
                self._complete("")
            case "accept":
                self._accept(goes_on=True)
            case _:
                self._accept(goes_on=False)
                if self.composer.text.strip() == self.composer.text:
                    self.composer.send()

    def _complete(self, text: str) -> None:
        self.composer.completing = self._completion.match(text)

    def _accept(self, goes_on: bool) -> None:
        """Take the chosen row, with room behind it where an argument is needed, or wanted (`goes_on`)."""
        choice = self._completion.choice
        invocation = parse(choice)
        if isinstance(invocation, Invocation) and invocation.command.argument and not invocation.argument:
            choice += " " if goes_on or not is_optional(invocation.command) else ""
        self.composer.load_text(choice)
        self.composer.move_cursor(self.composer.document.end)

    async def _run_command(self, invocation: Invocation) -> None:
        match invocation.command.action:
            case "help":
                self.action_help()
            case "quit":
                self.app.exit()
            case "new":
                self.run_worker(self._session.new_conversation(), group="session")
            case "undo":
                self.run_worker(self._preview_undo(), group="files")
            case "redo":
                self.run_worker(self._redo(), group="files")
            case "image" if invocation.argument:
                self.run_worker(self.attaching.add_file(invocation.argument), group="pictures")
            case "image":
                self.run_worker(self.attaching.add_clipboard(), group="pictures")
            case "expire":
                await self._expire()
            case "mode":
                await self._set_mode(invocation.argument)
            case "reasoning":
                await self._set_reasoning(invocation.argument)

    async def _expire(self) -> None:
        expired = self._session.expire()
        pictures, results = _counted(expired.pictures, "picture"), _counted(expired.results, "result")
        told = " and ".join(part for part in (pictures, results) if part)
        if not told:
            await self.say("There is nothing old in the model's view.")
            return
        verb = "leaves" if expired.pictures + expired.results == 1 else "leave"
        await self.say(f"{told} {verb} the model's view with its next step.")

    async def _set_mode(self, value: str) -> None:
        if value in MODES:
            self._session.set_mode(cast(Mode, value))
        else:
            await self.say(f"/mode takes one of: {', '.join(MODES)}.", "warning")

    async def _set_reasoning(self, value: str) -> None:
        if value in STRENGTHS:
            self._session.set_reasoning(cast(Strength, value))
        else:
            await self.say(f"/reasoning takes one of: {', '.join(STRENGTHS)}.", "warning")

    async def _preview_undo(self) -> None:
        if self._session.busy:
            await self.say("A turn is running. Wait for it, or press Esc to stop it.", "warning")
            return
        try:
            files = await self._session.preview_undo()
        except Exception as problem:
            await self.say(f"What an undo would do cannot be read: {problem}", "error")
            return
        if not files:
            await self.say("Nothing to undo.")
            return
        if self.prompt is None:
            in_conflict = any(file.outcome == "conflict" for file in files)
            await self._show(UndoPrompt([undo_line(file) for file in files], in_conflict, self.clock))

    async def _undo(self, force: bool) -> None:
        await self._session.undo(force)

    async def _pass_over(self) -> None:
        await self._session.pass_over()

    async def _redo(self) -> None:
        await self._session.redo()

    # Keys

    def action_tab(self) -> None:
        """From the composer to the question, or to the newest block that opens; and back."""
        if self.focused is not self.composer:
            self.composer.focus()
        elif self.prompt is not None:
            self.prompt.focus()
        elif self.transcript.folds:
            self._focus_block(self.transcript.folds[-1])

    def on_fold_stepped(self, event: Fold.Stepped) -> None:
        stops = [child for child in self.transcript.children if isinstance(child, Fold | EarlierLine)]
        if event.block not in stops:
            return
        at = stops.index(event.block) + event.step
        if at >= len(stops):
            self.composer.focus()
        elif at >= 0:
            self._focus_block(stops[at])

    def _focus_block(self, block: Fold | EarlierLine) -> None:
        block.focus(scroll_visible=False)
        self.transcript.scroll_to_widget(block, animate=False)

    def action_cycle_mode(self) -> None:
        mode = self.status.status.mode
        at = MODES.index(mode) if mode in MODES else -1
        self._session.set_mode(MODES[(at + 1) % len(MODES)])

    def action_escape(self) -> None:
        if self.focused is not self.composer:
            self.composer.focus()
            return
        self._stop()

    def action_interrupt(self) -> None:
        """Copy a selection; else clear what is written; else stop the turn; else, pressed twice, quit."""
        if (selected := self.get_selected_text()) is not None:
            self.app.copy_to_clipboard(selected)
            self.clear_selection()
            return
        if self.composer.text:
            self.composer.clear()
            return
        if self.attaching.row.pictures:
            self.attaching.clear()
            return
        if self._session.busy:
            self._stop()
            return
        if self.clock() - self._interrupted_at < QUIT_AGAIN_SECONDS:
            self.app.exit()
            return
        self._interrupted_at = self.clock()
        self.status.show(hint="Ctrl+C again to quit")
        self.set_timer(QUIT_AGAIN_SECONDS, lambda: self.status.show(hint=""))

    def action_toggle_output(self) -> None:
        folds = [fold for fold in self.transcript.folds if fold.is_output]
        self._all_open = not any(fold.is_open for fold in folds) if folds else not self._all_open
        with self.app.batch_update():
            for fold in folds:
                fold.set_open(self._all_open)

    def action_help(self) -> None:
        # The page is read in only when somebody asks for it.
        from glimmer_tui.screens.help import HelpScreen

        self.app.push_screen(HelpScreen())

    def action_scroll_page(self, by: int) -> None:
        if self.prompt is not None and self.prompt.has_focus:
            self.prompt.action_scroll(by * 10)
        elif by < 0:
            self.transcript.scroll_page_up(animate=False)
        else:
            self.transcript.scroll_page_down(animate=False)

    def action_scroll_edge(self, by: int) -> None:
        if by < 0:
            self.transcript.scroll_home(animate=False)
        else:
            self.transcript.anchor()

    def on_key(self, event: events.Key) -> None:
        """Keys the composer left alone because it is empty, and typing that began elsewhere."""
        if self.focused is self.composer or self.focused is None:
            return
        outside = isinstance(self.focused, Fold | EarlierLine)
        if event.key == "o" and isinstance(self.focused, PictureBlock):
            return
        if (
            outside
            and event.is_printable
            and event.character
            and event.key not in ("space", "j", "k", "l", "h")
        ):
            event.stop()
            self.composer.focus()
            self.composer.insert(event.character)

    def on_composer_edge(self, event: Composer.Edge) -> None:
        match event.key:
            case "home":
                self.action_scroll_edge(-1)
            case "end":
                self.action_scroll_edge(1)
            case _:
                self.action_help()

    def _stop(self) -> None:
        if self._session.busy:
            self.status.show(activity="stopping")
            self._session.cancel()


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}" if count else ""


def undo_line(file: "Restored") -> Line:
    """What an undo would do to one file, in words."""
    from glimmer_tui.widgets.safe_text import one_line

    path = one_line(file.path.as_posix())
    words = {
        "write": f"{path}  goes back to what it was",
        "remove": f"{path}  is removed: it was new",
        "unchanged": f"{path}  is as it was already",
    }
    left = f"{path}  is left alone: {one_line(file.reason)}"
    return Line(Content(words.get(file.outcome, left)), "  ")
