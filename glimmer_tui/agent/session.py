"""A conversation at work: what the person says goes in, one ordered stream of events comes out."""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace

from engine.errors import EngineError
from engine.messages import Image, Strength
from engine.protocol import Capabilities, Engine, Usage
from glimmer_tui.agent import events
from glimmer_tui.agent.dispatch import Dispatcher
from glimmer_tui.agent.events import Event, Notice, TurnFailed, UserMessage
from glimmer_tui.agent.history import History, open_calls, results_for
from glimmer_tui.agent.outbox import Outbox
from glimmer_tui.agent.outcome import CANCELLED
from glimmer_tui.agent.prompt import user_message
from glimmer_tui.agent.restored import restored_events, restored_note
from glimmer_tui.agent.settings import SessionSettings
from glimmer_tui.agent.sight import Expired, Sight, cannot_see
from glimmer_tui.agent.store import Store
from glimmer_tui.agent.turn import Turn, TurnEnd, failure
from sandbox.actions import Decision, Mode
from sandbox.snapshots import Restored, SnapshotError

_log = logging.getLogger(__name__)

NOT_RUN = "Not run: the turn ended before it."


@dataclass(frozen=True, slots=True)
class _Said:
    text: str
    images: tuple[Image, ...]


class Session:
    """One engine, one project, one conversation at a time. All methods belong to the event loop's thread.

    `release` is called once at the end and gives back what the tools hold; it may block.
    """

    def __init__(
        self,
        engine: Engine,
        dispatcher: Dispatcher,
        store: Store,
        outbox: Outbox,
        settings: SessionSettings,
        release: Callable[[], None],
    ) -> None:
        self._engine = engine
        self._dispatcher = dispatcher
        self._store = store
        self._outbox = outbox
        self._settings = settings
        self._release = release
        self._capabilities: Capabilities | None = None
        self._history = self._new_history()
        self._queue: deque[_Said] = deque()
        self._loading: asyncio.Task[TurnFailed | None] | None = None
        self._work: asyncio.Task[None] | None = None
        self._turn: Turn | None = None
        self._stop_next = False
        self._turns = 0
        self._usage = Usage()
        self._branch = ""
        self._instructed = False
        self._files_at_rest = asyncio.Lock()
        """Held by turns and by undo: a turn that is sent while files are put back waits for them."""

    @property
    def busy(self) -> bool:
        """Whether a turn runs or is about to."""
        return self._work is not None and not self._work.done()

    @property
    def history(self) -> History:
        return self._history

    def events(self) -> AsyncIterator[Event]:
        """Everything that happens, in order, until `close`. One consumer."""
        return self._outbox.events()

    async def start(self) -> None:
        """Begin to load the model and return; ModelLoaded or TurnFailed follows."""
        for notice in self._settings.notices:
            self._outbox.put(Notice(notice, "warning"))
        self._loading = asyncio.create_task(self._load())
        self._branch = await asyncio.to_thread(self._dispatcher.records.branch)
        self._publish_status()
        await self._dispatcher.records.start_conversation()

    def submit(self, text: str, images: Sequence[Image] = ()) -> None:
        """Say something. While a turn runs it is queued, and taken up before the next model step."""
        self._queue.append(_Said(text, tuple(images)))
        if self.busy:
            self._outbox.put(events.MessageQueued(text))
            return
        self._work = asyncio.create_task(self._work_off_queue())

    def reply(self, approval_id: str, decision: Decision) -> None:
        """Answer an approval. An answer to one that is no longer open is ignored."""
        self._dispatcher.desk.reply(approval_id, decision)

    def cancel(self) -> None:
        """Stop the turn that runs or is about to, at the next safe point. Does nothing when there is none."""
        if self._turn is None:
            self._stop_next = self.busy
            return
        self._turn.stop.set()
        self._dispatcher.desk.deny_all()
        self._engine.cancel()

    def set_mode(self, mode: Mode) -> None:
        """Change what may happen unasked, from the next call on."""
        self._dispatcher.permissions.mode = mode
        self._publish_status()

    def set_reasoning(self, strength: Strength) -> None:
        """Change how much the model thinks, from the next turn on."""
        self._settings = replace(self._settings, strength=strength)
        self._publish_status()

    async def new_conversation(self) -> None:
        """Forget what was said. Files stay as they are, and so does what can be undone."""
        if self._refuse_while_busy():
            return
        self._history = self._new_history()
        self._instructed = False
        self._usage = Usage()
        self._outbox.put(events.ConversationCleared())
        self._publish_status()
        await self._dispatcher.records.start_conversation()
        try:
            await self._engine.reset()
        except EngineError as problem:
            self._outbox.put(Notice(str(problem), "error"))

    def expire(self) -> Expired:
        """Take old pictures and long results out of the model's view, from the next step on."""
        expired = self._history.expire()
        self._tell_what_is_gone()
        return expired

    async def preview_undo(self) -> tuple[Restored, ...]:
        """What `undo` would do to each file of the last turn; () when there is nothing to undo."""
        return await self._dispatcher.records.preview(redo=False)

    async def undo(self, force: bool = False) -> tuple[Restored, ...]:
        """Put the files of the last turn back. FilesRestored or a Notice tells what came of it.

        A file that was changed since is left alone unless `force`.
        """
        return await self._restore(redo=False, force=force)

    async def pass_over(self) -> None:
        """Keep the files of the last turn and make the turn before it the next to undo."""
        if self._refuse_while_busy():
            return
        try:
            async with self._files_at_rest:
                await self._dispatcher.records.pass_over()
        except (SnapshotError, OSError) as problem:
            self._outbox.put(Notice(str(problem), "error"))
            return
        self._outbox.put(Notice("The last turn is kept. /undo now means the one before it."))

    async def redo(self, force: bool = False) -> tuple[Restored, ...]:
        """Bring back what the last undo took away, as `undo` does."""
        return await self._restore(redo=True, force=force)

    async def close(self) -> None:
        """Stop what runs, free the model and end `events`."""
        self._queue.clear()
        self.cancel()
        if self._work is not None:
            await asyncio.gather(self._work, return_exceptions=True)
        if self._loading is not None:
            await asyncio.gather(self._loading, return_exceptions=True)
        try:
            with contextlib.suppress(EngineError):
                await self._engine.close()
            await asyncio.to_thread(self._release)
        finally:
            self._outbox.close()

    async def _load(self) -> TurnFailed | None:
        """Load the model. A failure is published here only when no turn waits to tell it."""
        try:
            capabilities = await self._engine.load()
        except EngineError as problem:
            failed = failure(problem)
            if not self.busy:
                self._outbox.put(failed)
            return failed
        self._usage = replace(self._usage, context_size=capabilities.context_size)
        self._meet(capabilities)
        self._outbox.put(events.ModelLoaded(capabilities))
        for notice in capabilities.notices:
            self._outbox.put(Notice(notice))
        self._publish_status()
        return None

    def _meet(self, model: Capabilities) -> None:
        """Let the history and the tools fit what the model can do."""
        self._capabilities = model
        if not model.vision:
            self._history.show_no_pictures()
        elif not model.is_demo:
            self._dispatcher.toolbox.offer_pictures()

    async def _loaded(self, turn: Turn) -> TurnEnd | None:
        """Wait for the model; None once it is ready. A load that failed before is tried again."""
        loading = self._loading
        if loading is None or (loading.done() and loading.result() is not None):
            loading = self._loading = asyncio.create_task(self._load())
        if not await turn.stop.race(loading):
            return events.TurnFinished("cancelled", "")
        return loading.result()

    async def _work_off_queue(self) -> None:
        steering = False
        async with self._files_at_rest:
            while self._queue:
                await self._run_turn(self._queue.popleft(), steering)
                steering = True

    async def _run_turn(self, said: _Said, steering: bool) -> None:
        turn = Turn(self._engine, self._dispatcher, self._history, self._settings, self._outbox.put)
        self._turn = turn
        self._turns += 1
        if self._stop_next:
            turn.stop.set()
            self._stop_next = False
        try:
            await self._enter(said, steering)
            self._outbox.put(events.TurnStarted(self._turns))
            await self._dispatcher.records.begin(said.text)
            end = await self._loaded(turn)
            if end is None:
                self._tell_unseen(said)
                end = await turn.run(self._steer)
            self._usage = turn.usage or self._usage
        except Exception as problem:
            _log.exception("a turn failed")
            end = _internal(problem)
        try:
            await self._settle(turn)
        except Exception as problem:
            _log.exception("a turn could not be closed")
            end = _internal(problem)
        self._turn = None
        self._publish_status()
        self._outbox.put(end)

    async def _settle(self, turn: Turn) -> None:
        """Leave a valid history and a closed record behind, however the turn ended."""
        words = CANCELLED if turn.stop.is_set else NOT_RUN
        await self._history.add(*results_for(open_calls(self._history.messages), words))
        await self._dispatcher.records.finish()
        self._branch = await asyncio.to_thread(self._dispatcher.records.branch)

    async def _steer(self) -> None:
        while self._queue:
            await self._enter(self._queue.popleft(), steering=True)

    async def _enter(self, said: _Said, steering: bool) -> None:
        """A message of the person's enters the history; the first one carries the project's instructions."""
        instructions = None if self._instructed else self._settings.instructions
        self._instructed = True
        message = user_message(said.text, said.images, instructions)
        self._outbox.put(UserMessage(said.text, steering, said.images, message.id))
        await self._history.add(message)

    def _tell_unseen(self, said: _Said) -> None:
        """A picture that was sent before it was known that the model sees none."""
        model = self._capabilities
        if said.images and model is not None and not model.vision:
            self._outbox.put(Notice(f"{cannot_see(model.is_demo)} It reads your words alone.", "warning"))

    def _tell_what_is_gone(self) -> None:
        if gone := self._history.gone(self._history.seen):
            self._outbox.put(events.OutOfView(gone))

    async def _restore(self, redo: bool, force: bool) -> tuple[Restored, ...]:
        if self._refuse_while_busy():
            return ()
        async with self._files_at_rest:
            try:
                restored = await self._dispatcher.records.restore(redo, force)
            except (SnapshotError, OSError) as problem:
                self._outbox.put(Notice(str(problem), "error"))
                return ()
            for event in restored_events(restored, redo):
                self._outbox.put(event)
            note = restored_note(restored, redo)
            if note is not None and self._history.messages:
                await self._history.add(note)
            return restored

    def _refuse_while_busy(self) -> bool:
        if self.busy:
            self._outbox.put(Notice("A turn is running. Wait for it, or press Esc to stop it.", "warning"))
        return self.busy

    def _new_history(self) -> History:
        history = History(self._store.create(), self._unsaved, Sight(self._settings.pictures_kept))
        if self._capabilities is not None and not self._capabilities.vision:
            history.show_no_pictures()
        return history

    def _unsaved(self, problem: OSError) -> None:
        self._outbox.put(
            Notice(f"This conversation cannot be saved: {problem.strerror or problem}.", "warning")
        )

    def _publish_status(self) -> None:
        mode, strength = self._dispatcher.permissions.mode, self._settings.strength
        used, size = self._usage.context_used, self._usage.context_size
        self._outbox.put(events.StatusChanged(mode, strength, used, size, self._branch))


def _internal(problem: Exception) -> TurnFailed:
    why = f"{type(problem).__name__}: {problem}"
    return TurnFailed("Something went wrong inside Glimmer.", why, "The log has the details.", "internal")
