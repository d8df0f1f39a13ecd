"""Every event of the session, put on the screen. The matches are exhaustive: no event is forgotten."""

from typing import assert_never

from engine.messages import Image
from glimmer_tui.agent import events
from glimmer_tui.screens.main import MainScreen
from glimmer_tui.widgets import sayings
from glimmer_tui.widgets.answer import AnswerBlock
from glimmer_tui.widgets.attachments import tokens_of
from glimmer_tui.widgets.picture_block import PictureBlock
from glimmer_tui.widgets.reasoning import ReasoningBlock
from glimmer_tui.widgets.status import WAITING, short
from glimmer_tui.widgets.tool_block import ToolBlock

LOADING = "loading the model"
ACTIVITIES = {
    "diff": "reading the changes",
    "edit": "editing",
    "list": "looking around",
    "outline": "reading",
    "read": "reading",
    "run": "running a command",
    "search": "searching",
    "test": "running tests",
    "write": "writing a file",
}

Stream = events.TextDelta | events.ReasoningDelta
OfTurn = (
    events.UserMessage
    | events.MessageQueued
    | events.TurnStarted
    | events.Prefilling
    | events.Looking
    | events.OutOfView
    | events.SpanEvicted
    | events.StepFinished
    | events.TurnFinished
    | events.TurnFailed
)
OfTool = events.ToolStarted | events.ToolOutput | events.ToolFinished
OfApproval = events.ApprovalRequested | events.ApprovalResolved


class Bridge:
    """Consumes a session's events, one after the other."""

    def __init__(self, screen: MainScreen) -> None:
        self._screen = screen
        self._transcript = screen.transcript
        self._status = screen.status
        self._answer: AnswerBlock | None = None
        self._reasoning: ReasoningBlock | None = None
        self._tools: dict[str, ToolBlock] = {}
        self._pictures: dict[str, list[PictureBlock]] = {}
        self._asked: dict[str, str] = {}
        self._tokens = 0
        self._seconds = 0.0
        self._evicted = 0

    async def handle(self, event: events.Event) -> None:
        """Show one event. Returns when it is on the screen; deltas are drawn a moment later."""
        match event:
            case events.TextDelta() | events.ReasoningDelta():
                await self._stream(event)
            case events.ToolStarted() | events.ToolOutput() | events.ToolFinished():
                await self._tool(event)
            case events.ApprovalRequested() | events.ApprovalResolved():
                await self._approval(event)
            case events.ModelLoaded(capabilities):
                if self._status.status.activity == LOADING:
                    self._status.show(activity="thinking" if self._screen.busy else "")
                self._status.show(
                    model=capabilities.model_name,
                    demo=capabilities.is_demo,
                    context_size=capabilities.context_size,
                )
                if capabilities.is_demo:
                    await self._transcript.add(sayings.demo_block())
                await self._screen.meet(capabilities)
            case events.Notice():
                await self._close_stream()
                await self._transcript.add(sayings.notice_block(event))
            case events.StatusChanged(mode, strength, used, size, branch):
                self._status.show(mode=mode, reasoning=strength, context_used=used, branch=branch)
                self._status.show(context_size=size or self._status.status.context_size)
            case events.FilesRestored(paths, redo):
                await self._transcript.add(sayings.restored_block(paths, redo))
            case events.ConversationCleared():
                await self._start_again()
            case events.SnapshotTaken():
                pass  # undo tells of it when it is wanted
            case _:
                await self._of_turn(event)

    async def _of_turn(self, event: OfTurn) -> None:
        match event:
            case events.UserMessage(text, steering, images, message_id):
                await self._close_stream()
                self._screen.queued.take(text)
                await self._transcript.add(sayings.user_block(text, steering))
                await self._show_pictures(images, message_id)
            case events.MessageQueued(text):
                self._screen.queued.add(text)
            case events.TurnStarted():
                self._tokens, self._seconds = 0, 0.0
                self._status.show(activity="thinking" if self._status.status.model else LOADING)
            case events.Prefilling(done, total):
                share = f" {done * 100 // total}%" if total else ""
                self._status.show(activity=f"reading {short(total)} tokens{share}")
            case events.Looking(done, total):
                self._status.show(activity=f"looking at the picture {done} of {total}")
            case events.OutOfView(message_ids):
                self._mark(message_ids)
            case events.SpanEvicted(_, tokens):
                self._evicted += tokens
            case events.StepFinished(usage, timings):
                await self._tell_evicted()
                self._tokens += usage.generated
                self._seconds += timings.decode_s
                rate = usage.generated / timings.decode_s if timings.decode_s > 0 else 0.0
                self._status.show(context_used=usage.context_used, context_size=usage.context_size, rate=rate)
                self._status.show(pictures=usage.pictures)
            case events.TurnFinished(stop, _, changed):
                await self._close_stream()
                rate = self._tokens / self._seconds if self._seconds > 0 else 0.0
                await self._transcript.add(sayings.end_block(stop, changed, self._tokens, rate))
                self._status.show(activity="")
            case events.TurnFailed():
                await self._close_stream()
                await self._transcript.add(sayings.failure_block(event))
                self._status.show(activity="")
            case _:
                assert_never(event)

    async def _tell_evicted(self) -> None:
        """Say what the model no longer sees, once a step."""
        tokens, self._evicted = self._evicted, 0
        if tokens:
            said = f"To make room, the model forgot {short(tokens)} tokens of its oldest messages."
            await self._transcript.add(sayings.notice_block(events.Notice(said)))

    async def _stream(self, event: Stream) -> None:
        match event:
            case events.TextDelta(text):
                if self._answer is None:
                    if not text.strip():
                        return
                    await self._close_stream()
                    self._answer = AnswerBlock()
                    await self._transcript.add(self._answer)
                self._answer.feed(text)
                self._status.show(activity="writing")
            case events.ReasoningDelta(text):
                if self._reasoning is None:
                    await self._close_stream()
                    self._reasoning = ReasoningBlock(self._screen.clock, is_open=self._screen.opens_output)
                    await self._transcript.add(self._reasoning)
                self._reasoning.feed(text)
                self._status.show(activity="thinking")
            case _:
                assert_never(event)

    async def _tool(self, event: OfTool) -> None:
        match event:
            case events.ToolStarted(call_id, name, summary):
                await self._close_stream()
                await self._add_tool(call_id, name, summary)
                self._status.show(activity=ACTIVITIES.get(name, "using a tool"))
            case events.ToolOutput(call_id, chunk):
                if call_id in self._tools:
                    self._tools[call_id].write(chunk)
            case events.ToolFinished(call_id, name, display, error):
                if call_id not in self._tools:
                    await self._add_tool(call_id, name, name)
                self._tools.pop(call_id).finish(display, error)
                images = tuple(Image(shown.data, shown.width, shown.height) for shown in event.images)
                await self._show_pictures(images, event.message_id)
                if not self._tools:
                    self._status.show(activity="thinking")
            case _:
                assert_never(event)

    async def _approval(self, event: OfApproval) -> None:
        match event:
            case events.ApprovalRequested(id=id, call_id=call_id):
                self._asked[id] = call_id
                if call_id in self._tools:
                    self._tools[call_id].set_state("waiting")
                self._status.show(activity=WAITING)
                await self._screen.ask(event)
            case events.ApprovalResolved(id=id):
                block = self._tools.get(self._asked.pop(id, ""))
                if block is not None:
                    block.set_state("running")
                await self._screen.settle(id)
                if not self._asked:
                    self._status.show(activity=ACTIVITIES.get(block.tool, "working") if block else "working")
            case _:
                assert_never(event)

    async def _add_tool(self, call_id: str, name: str, summary: str) -> None:
        block = ToolBlock(name, summary, is_open=self._screen.opens_output)
        self._tools[call_id] = block
        await self._transcript.add(block)

    async def _show_pictures(self, images: tuple[Image, ...], message_id: str) -> None:
        cap = self._screen.picture_tokens
        blocks = [
            PictureBlock(image, f"image {number}", tokens_of(image, cap))
            for number, image in enumerate(images, 1)
        ]
        for block in blocks:
            await self._transcript.add(block)
        if blocks:
            self._pictures[message_id] = blocks

    def _mark(self, message_ids: tuple[str, ...]) -> None:
        """The pictures of these messages are no longer seen."""
        for name in message_ids:
            for block in self._pictures.get(name, ()):
                block.mark_gone()

    async def _start_again(self) -> None:
        await self._close_stream()
        self._tools.clear()
        self._pictures.clear()
        self._screen.queued.clear()
        self._status.show(pictures=0)
        await self._transcript.clear()
        await self._screen.greet()

    async def _close_stream(self) -> None:
        """What streamed until now is whole; something else follows."""
        if self._reasoning is not None:
            self._reasoning.finish()
            self._reasoning = None
        if self._answer is not None:
            await self._answer.finish()
            self._answer = None
