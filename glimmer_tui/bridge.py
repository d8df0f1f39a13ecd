"""Every event of the session, put on the screen in one match."""

from typing import assert_never

from glimmer_tui.agent import events
from glimmer_tui.screens.main import MainScreen
from glimmer_tui.widgets.answer import AnswerBlock
from glimmer_tui.widgets.reasoning import ReasoningBlock
from glimmer_tui.widgets.sayings import (
    demo_block,
    end_block,
    failure_block,
    notice_block,
    restored_block,
    user_block,
)
from glimmer_tui.widgets.status import WAITING, short
from glimmer_tui.widgets.tool_block import ToolBlock

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


class Bridge:
    """Consumes a session's events, one after the other."""

    def __init__(self, screen: MainScreen) -> None:
        self._screen = screen
        self._answer: AnswerBlock | None = None
        self._reasoning: ReasoningBlock | None = None
        self._tools: dict[str, ToolBlock] = {}
        self._asked: dict[str, str] = {}
        self._tokens = 0
        self._seconds = 0.0

    async def handle(self, event: events.Event) -> None:
        """Show one event. Returns when it is on the screen; deltas are drawn a moment later."""
        screen, transcript, status = self._screen, self._screen.transcript, self._screen.status
        match event:
            case events.ModelLoaded(capabilities):
                status.show(
                    activity="" if status.status.activity == LOADING else status.status.activity,
                    model=capabilities.model_name,
                    demo=capabilities.is_demo,
                    context_size=capabilities.context_size,
                )
                if capabilities.is_demo:
                    await transcript.add(demo_block())
            case events.UserMessage(text, steering):
                await self._close_stream()
                screen.queued.take(text)
                await transcript.add(user_block(text, steering))
            case events.MessageQueued(text):
                screen.queued.add(text)
            case events.TurnStarted():
                self._tokens, self._seconds = 0, 0.0
                status.show(activity="thinking" if status.status.model else LOADING)
            case events.Prefilling(done, total):
                share = f" {done * 100 // total}%" if total else ""
                status.show(activity=f"reading {short(total)} tokens{share}")
            case events.TextDelta(text):
                await self._write(text)
            case events.ReasoningDelta(text):
                await self._think(text)
            case events.StepFinished(usage, timings):
                self._tokens += usage.generated
                self._seconds += timings.decode_s
                rate = usage.generated / timings.decode_s if timings.decode_s > 0 else 0.0
                status.show(context_used=usage.context_used, context_size=usage.context_size, rate=rate)
            case events.ToolStarted(call_id, name, summary):
                await self._close_stream()
                block = ToolBlock(name, summary, is_open=screen.opens_output)
                self._tools[call_id] = block
                await transcript.add(block)
                status.show(activity=ACTIVITIES.get(name, "using a tool"))
            case events.ApprovalRequested(id=id, call_id=call_id):
                self._asked[id] = call_id
                if call_id in self._tools:
                    self._tools[call_id].set_state("waiting")
                status.show(activity=WAITING)
                await screen.ask(event)
            case events.ApprovalResolved(id, verdict):
                call_id = self._asked.pop(id, "")
                if call_id in self._tools and verdict != "deny":
                    self._tools[call_id].set_state("running")
                await screen.settle(id)
                if not self._asked:
                    status.show(activity="working" if verdict != "deny" else "thinking")
            case events.SnapshotTaken():
                pass  # undo tells of it when it is wanted
            case events.ToolOutput(call_id, chunk):
                if call_id in self._tools:
                    self._tools[call_id].write(chunk)
            case events.ToolFinished(call_id, name, display, error):
                block = self._tools.pop(call_id, None)
                if block is None:
                    block = ToolBlock(name, name, is_open=screen.opens_output)
                    await transcript.add(block)
                block.finish(display, error)
                if not self._tools:
                    status.show(activity="thinking")
            case events.Notice():
                await self._close_stream()
                await transcript.add(notice_block(event))
            case events.StatusChanged(mode, strength, used, size, branch):
                status.show(mode=mode, reasoning=strength, context_used=used, context_size=size, branch=branch)
            case events.FilesRestored(paths, redo):
                await transcript.add(restored_block(paths, redo))
            case events.ConversationCleared():
                await self._close_stream()
                self._tools.clear()
                screen.queued.clear()
                await transcript.clear()
                await screen.greet()
            case events.TurnFinished(stop, _, changed):
                await self._close_stream()
                rate = self._tokens / self._seconds if self._seconds > 0 else 0.0
                await transcript.add(end_block(stop, changed, self._tokens, rate))
                status.show(activity="")
            case events.TurnFailed():
                await self._close_stream()
                await transcript.add(failure_block(event))
                status.show(activity="")
            case _:
                assert_never(event)

    async def _write(self, text: str) -> None:
        if self._reasoning is not None:
            self._reasoning.finish()
            self._reasoning = None
        if self._answer is None:
            if not text.strip():
                return
            self._answer = AnswerBlock()
            await self._screen.transcript.add(self._answer)
        self._answer.feed(text)
        self._screen.status.show(activity="writing")

    async def _think(self, text: str) -> None:
        if self._reasoning is None:
            await self._close_stream()
            self._reasoning = ReasoningBlock(self._screen.clock, is_open=self._screen.opens_output)
            await self._screen.transcript.add(self._reasoning)
        self._reasoning.feed(text)
        self._screen.status.show(activity="thinking")

    async def _close_stream(self) -> None:
        """What streamed until now is whole; something else follows."""
        if self._reasoning is not None:
            self._reasoning.finish()
            self._reasoning = None
        if self._answer is not None:
            await self._answer.finish()
            self._answer = None


LOADING = "loading the model"
