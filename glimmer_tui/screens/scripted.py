"""A session that plays a script instead of running a model: for tests and for pictures of the screen."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING

from engine.messages import Image, Strength
from glimmer_tui.agent import events
from glimmer_tui.agent.events import Event
from glimmer_tui.agent.sight import Expired
from sandbox.actions import Decision, Mode

if TYPE_CHECKING:
    from sandbox.recorded_files import Restored

Script = Callable[[str], Sequence[Event | float]]
"""What follows a message of the person's: events, and pauses in seconds between them."""


class ScriptedSession:
    """Plays `script` for each message. An `ApprovalRequested` in it waits for its answer.

    Every call of the screen's is kept in `calls`, in order, as its name and its arguments.
    """

    def __init__(
        self, script: Script, opening: Sequence[Event] = (), undoable: "Sequence[Restored]" = ()
    ) -> None:
        self._script = script
        self._opening = opening
        self._undoable = undoable
        self._outbox: asyncio.Queue[Event | None] = asyncio.Queue()
        self._answers: dict[str, asyncio.Future[Decision]] = {}
        self._playing: asyncio.Task[None] | None = None
        self._waiting: list[tuple[str, tuple[Image, ...]]] = []
        self._awaited = False
        self._status = events.StatusChanged("ask", "medium", 0, 8192, "main")
        self.calls: list[tuple[object, ...]] = []
        self.expired = Expired(0, 0)
        """What `expire` will say."""

    @property
    def busy(self) -> bool:
        return self._playing is not None and not self._playing.done()

    def emit(self, event: Event) -> None:
        """Publish an event that is not in the script."""
        self._outbox.put_nowait(event)

    def drained(self) -> bool:
        """Whether every published event was taken and the next one is awaited."""
        return self._outbox.empty() and self._awaited

    async def events(self) -> AsyncIterator[Event]:
        while True:
            self._awaited = True
            event = await self._outbox.get()
            if event is None:
                return
            self._awaited = False
            yield event

    async def start(self) -> None:
        self.calls.append(("start",))
        for event in self._opening:
            self.emit(event)
        self.emit(self._status)

    def submit(self, text: str, images: Sequence[Image] = ()) -> None:
        self.calls.append(("submit", text, *images))
        if self.busy:
            self._waiting.append((text, tuple(images)))
            self.emit(events.MessageQueued(text))
            return
        self._playing = asyncio.create_task(self._play(text, tuple(images)))

    def reply(self, approval_id: str, decision: Decision) -> None:
        self.calls.append(("reply", approval_id, decision))
        future = self._answers.pop(approval_id, None)
        if future is not None and not future.done():
            self.emit(events.ApprovalResolved(approval_id, decision.verdict, decision.note))
            future.set_result(decision)

    def cancel(self) -> None:
        self.calls.append(("cancel",))
        if self._playing is None or self._playing.done():
            return
        self._playing.cancel()
        for approval_id in tuple(self._answers):
            self.reply(approval_id, Decision("deny"))
        self.emit(events.TurnFinished("cancelled", ""))

    def set_mode(self, mode: Mode) -> None:
        self.calls.append(("set_mode", mode))
        status = self._status
        self._status = events.StatusChanged(
            mode, status.strength, status.context_used, status.context_size, status.branch
        )
        self.emit(self._status)

    def set_reasoning(self, strength: Strength) -> None:
        self.calls.append(("set_reasoning", strength))
        status = self._status
        self._status = events.StatusChanged(
            status.mode, strength, status.context_used, status.context_size, status.branch
        )
        self.emit(self._status)

    async def new_conversation(self) -> None:
        self.calls.append(("new_conversation",))
        self.emit(events.ConversationCleared())

    def expire(self) -> Expired:
        self.calls.append(("expire",))
        return self.expired

    async def pass_over(self) -> None:
        self.calls.append(("pass_over",))

    async def preview_undo(self) -> "Sequence[Restored]":
        self.calls.append(("preview_undo",))
        return self._undoable

    async def undo(self, force: bool = False) -> None:
        self.calls.append(("undo", "force") if force else ("undo",))
        self.emit(events.FilesRestored(tuple(file.path.as_posix() for file in self._undoable)))

    async def redo(self) -> None:
        self.calls.append(("redo",))
        self.emit(events.FilesRestored(tuple(file.path.as_posix() for file in self._undoable), redo=True))

    async def close(self) -> None:
        self.calls.append(("close",))
        if self._playing is not None:
            self._playing.cancel()
        self._outbox.put_nowait(None)

    async def _play(self, text: str, images: tuple[Image, ...]) -> None:
        while True:
            self.emit(events.UserMessage(text, images=images, message_id=f"message {len(self.calls)}"))
            for step in self._script(text):
                if isinstance(step, int | float):
                    await asyncio.sleep(step)
                    continue
                self.emit(step)
                if isinstance(step, events.ApprovalRequested):
                    self._answers[step.id] = asyncio.get_running_loop().create_future()
                    await self._answers[step.id]
            if not self._waiting:
                return
            text, images = self._waiting.pop(0)
