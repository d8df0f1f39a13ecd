"""One turn: the model, its calls, the model again, until it is done or something stops it."""

import json
from collections.abc import Awaitable, Callable

from engine.errors import ContextFull, EngineError, ModelError
from engine.protocol import (
    Delta,
    Engine,
    EngineNotice,
    PictureProgress,
    PrefillProgress,
    ReasoningDelta,
    Request,
    SamplingWish,
    SpanEvicted,
    StopReason,
    TextDelta,
    Usage,
)
from glimmer_tui.agent import events
from glimmer_tui.agent.dead_ends import DeadEnds
from glimmer_tui.agent.dispatch import Dispatcher
from glimmer_tui.agent.draft import Draft
from glimmer_tui.agent.events import Notice, TurnFailed, TurnFinished
from glimmer_tui.agent.history import History
from glimmer_tui.agent.loop_guard import LoopGuard
from glimmer_tui.agent.outbox import Emit
from glimmer_tui.agent.outcome import Outcome
from glimmer_tui.agent.prompt import system_message
from glimmer_tui.agent.settings import SessionSettings
from glimmer_tui.agent.stop import Stop

TurnEnd = TurnFinished | TurnFailed


class Turn:
    """Runs once. Whole messages enter the history; calls stay open only when the turn was stopped."""

    def __init__(
        self, engine: Engine, dispatcher: Dispatcher, history: History, settings: SessionSettings, emit: Emit
    ) -> None:
        self._engine = engine
        self._dispatcher = dispatcher
        self._history = history
        self._settings = settings
        self._emit = emit
        self._guard = LoopGuard()
        self._dead_ends = DeadEnds()
        self._goes_back = False
        self._changed: dict[str, None] = {}
        self.stop = Stop()
        self.usage: Usage | None = None
        """What the last model step used."""

    async def run(self, steer: Callable[[], Awaitable[None]]) -> TurnEnd:
        """Work until the model ends its turn. `steer` takes up what the person wrote meanwhile."""
        for _ in range(self._settings.max_steps):
            await steer()
            draft = Draft()
            failed = await self._generate(draft)
            message = draft.message()
            if message is not None:
                await self._history.add(message)
            end = failed or self._ended(draft)
            if end is not None:
                return end
            is_looping = await self._run_calls(draft)
            if self.stop.is_set:
                return self._finished("cancelled", draft.answer)
            self._goes_back = self._go_back()
            if is_looping and not self._goes_back:
                return _looping()
        return _too_long(self._settings.max_steps)

    async def _generate(self, draft: Draft) -> TurnFailed | None:
        """Stream one reply into `draft`. What came before a failure is kept."""
        if self.stop.is_set:
            return None
        seen = self._history.seen
        if gone := self._history.gone(seen):
            self._emit(events.OutOfView(gone))
        request = Request(
            messages=(system_message(), *seen),
            tools=self._dispatcher.toolbox.schemas,
            strength=self._settings.strength,
            sampling=self._sampling(),
            max_tokens=self._settings.max_tokens,
            reasoning_tokens=self._settings.reasoning_limit,
            reply_id=draft.reply_id,
        )
        try:
            async for delta in self._engine.generate(request):
                draft.add(delta)
                self._show(delta)
                if self.stop.is_set:
                    self._engine.cancel()
        except EngineError as problem:
            return failure(problem)
        if draft.done is not None:
            self.usage = draft.done.usage
            self._emit(events.StepFinished(draft.done.usage, draft.done.timings))
        return None

    def _show(self, delta: Delta) -> None:
        match delta:
            case PrefillProgress(done, total):
                self._emit(events.Prefilling(done, total))
            case PictureProgress(done, total):
                self._emit(events.Looking(done, total))
            case EngineNotice(text):
                self._emit(Notice(text, "warning"))
            case SpanEvicted(message_id, tokens):
                self._emit(events.SpanEvicted(message_id, tokens))
            case TextDelta(text):
                self._emit(events.TextDelta(text))
            case ReasoningDelta(text):
                self._emit(events.ReasoningDelta(text))
            case _:
                pass

    def _ended(self, draft: Draft) -> TurnEnd | None:
        """How the reply ends the turn; None when its calls are to be run."""
        reason = draft.done.stop if draft.done is not None else "cancelled"
        if self.stop.is_set or reason == "cancelled":
            return self._finished("cancelled", draft.answer)
        if reason == "context_full":
            return _context_full(None)
        if draft.is_empty:
            return _empty(draft, reason == "length")
        if reason == "length":
            self._emit(Notice("The reply reached its token limit and was cut off there.", "warning"))
        if draft.calls:
            return None
        return self._finished(reason, draft.answer)

    async def _run_calls(self, draft: Draft) -> bool:
        """Run the calls and keep each result as it comes; True when the model goes round in circles."""
        looping = False
        outcomes: list[tuple[str, Outcome]] = []
        async for outcome in self._dispatcher.run(tuple(draft.calls), self.stop):
            await self._history.add(outcome.message)
            self._changed.update(dict.fromkeys(outcome.changed))
            outcomes.append((_call_text(outcome), outcome))
            looping = self._guard.add(outcomes[-1][0], outcome.told) or looping
        self._dead_ends.add((draft.reply_id, *(outcome.message.id for _, outcome in outcomes)), outcomes)
        return looping

    def _go_back(self) -> bool:
        """Leave a dead end, if this is one that can be left."""
        forgotten = self._dead_ends.leave()
        if not forgotten:
            return False
        self._history.forget(forgotten)
        self._guard = LoopGuard()
        self._emit(
            Notice("The same call failed again. The model forgets that and tries another way.", "info")
        )
        return True

    def _sampling(self) -> SamplingWish | None:
        wish = self._settings.sampling
        return self._dead_ends.warmer(wish) if self._goes_back else wish

    def _finished(self, stop: StopReason, answer: str) -> TurnFinished:
        return TurnFinished(stop, answer.strip(), tuple(self._changed))


def failure(problem: EngineError) -> TurnFailed:
    """An engine's failure as the end of a turn."""
    match problem:
        case ContextFull():
            return _context_full(problem)
        case ModelError():
            return TurnFailed(problem.what, problem.why, problem.todo, "model")
        case _:
            return TurnFailed(problem.what, problem.why, problem.todo, "engine")


def _call_text(outcome: Outcome) -> str:
    arguments = json.dumps(outcome.call.arguments, sort_keys=True, default=repr)
    return f"{outcome.call.name} {arguments}"


def _looping() -> TurnFailed:
    return TurnFailed(
        "Stopped: the model went round in circles.",
        "It made the same call, or the same few calls, three times and got the same results.",
        "Tell it what to do differently, or start again with /new.",
        "loop",
    )


def _too_long(steps: int) -> TurnFailed:
    return TurnFailed(
        f"Stopped after {steps} steps.",
        "A turn may take no more steps than that.",
        "Send another message to let it go on, or raise max_steps in the settings.",
        "steps",
    )


def _context_full(problem: ContextFull | None) -> TurnFailed:
    what = "The conversation no longer fits the context window."
    return TurnFailed(
        what, problem.why if problem else "", "Start a new conversation with /new.", "context_full"
    )


def _empty(draft: Draft, cut: bool) -> TurnFailed:
    if cut:
        why = "It reached its token limit before it answered."
    elif draft.has_reasoning:
        why = "It thought, but it neither said nor did anything."
    else:
        why = "It wrote nothing at all."
    return TurnFailed(
        "The model gave no answer.", why, "Send the message again, or say it differently.", "empty"
    )
