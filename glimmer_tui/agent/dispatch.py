"""Carries out calls: prepare, judge, ask, record, apply. What was approved is exactly what runs."""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from engine.messages import ToolCall, new_id
from engine.protocol import ToolCallFailed, ToolCallReady
from glimmer_tui.agent import outcome
from glimmer_tui.agent.desk import ApprovalDesk
from glimmer_tui.agent.draft import WrittenCall
from glimmer_tui.agent.events import ApprovalRequested, Notice, ToolFinished, ToolOutput, ToolStarted
from glimmer_tui.agent.outbox import Emit
from glimmer_tui.agent.outcome import Outcome
from glimmer_tui.agent.permissions import Permissions
from glimmer_tui.agent.records import Records
from glimmer_tui.agent.stop import Stop
from glimmer_tui.agent.summary import summarize
from glimmer_tui.agent.toolbox import Toolbox
from sandbox.actions import Decision, Ruling
from sandbox.snapshots import SnapshotError
from tools.base import Plan, Result, Running, Tool

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A call whose plan was made and judged."""

    call: ToolCall
    tool: Tool
    plan: Plan
    ruling: Ruling

    @property
    def runs_beside_others(self) -> bool:
        only_reads = all(action.kind == "read" for action in self.plan.actions)
        return only_reads and self.ruling.verdict == "allow"


class Dispatcher:
    """Runs the calls of a reply. Nothing it is given makes it raise: whatever happens is a result."""

    def __init__(
        self, toolbox: Toolbox, permissions: Permissions, desk: ApprovalDesk, records: Records, emit: Emit
    ) -> None:
        self.toolbox = toolbox
        self.permissions = permissions
        self.desk = desk
        self.records = records
        self._emit = emit

    async def run(self, calls: Sequence[WrittenCall], stop: Stop) -> AsyncIterator[Outcome]:
        """One outcome for each call, in the order of the calls.

        Reads run side by side. Anything else waits for the calls before it, and the calls after it wait.
        """
        reads: deque[asyncio.Task[Outcome]] = deque()
        try:
            for written in calls:
                prepared = await self._prepare(written, stop)
                if isinstance(prepared, _Prepared) and not prepared.runs_beside_others:
                    while reads:
                        yield await reads.popleft()
                    yield await self._carry_out(prepared, stop)
                else:
                    reads.append(asyncio.create_task(self._read(prepared, stop)))
            while reads:
                yield await reads.popleft()
        finally:
            await asyncio.gather(*reads, return_exceptions=True)

    async def _prepare(self, written: WrittenCall, stop: Stop) -> _Prepared | Outcome:
        call = written.call
        if call.name:
            self._emit(ToolStarted(call.id, call.name, summarize(call.name, call.arguments)))
        if stop.is_set:
            return self._finish(call, outcome.cancelled())
        match written:
            case ToolCallFailed():
                return self._finish(call, outcome.unreadable(written))
            case ToolCallReady():
                pass
        try:
            prepared = await asyncio.to_thread(self._plan, call)
        except Exception as problem:
            return self._finish(call, self._broken(call, problem))
        return self._finish(call, prepared) if isinstance(prepared, Result) else prepared

    def _plan(self, call: ToolCall) -> _Prepared | Result:
        """Plan the call and judge the plan. Blocks: both look at files."""
        planned = self.toolbox.plan(call)
        if isinstance(planned, Result):
            return planned
        return _Prepared(call, planned.tool, planned.plan, self._judge(planned.plan))

    def _judge(self, plan: Plan) -> Ruling:
        ruling = self.permissions.judge(plan.actions)
        if ruling.verdict == "allow" and self.records.no_undo_for(plan):
            return Ruling("ask", "Undo is not available in this folder.")
        return ruling

    async def _read(self, prepared: _Prepared | Outcome, stop: Stop) -> Outcome:
        return prepared if isinstance(prepared, Outcome) else await self._carry_out(prepared, stop)

    async def _carry_out(self, prepared: _Prepared, stop: Stop) -> Outcome:
        call, plan = prepared.call, prepared.plan
        refused = await self._refused(prepared, stop) or await self._record(call, plan, stop)
        if stop.is_set:
            refused = outcome.cancelled()
        if refused is not None:
            return self._finish(call, refused)
        result = await self._apply(prepared, stop)
        await self.records.done(call, result)
        return self._finish(call, result)

    async def _refused(self, prepared: _Prepared, stop: Stop) -> Result | None:
        """Settle whether the call may run; a result when it may not."""
        call, plan, ruling = prepared.call, prepared.plan, prepared.ruling
        if stop.is_set:
            return outcome.cancelled()
        if ruling.verdict == "deny":
            await self.records.judged(call, plan, "not_allowed", ruling.reason)
            return outcome.not_allowed(ruling.reason)
        if ruling.verdict == "allow":
            await self.records.judged(call, plan, "allowed", ruling.reason)
            return None
        undoable = not self.records.no_undo_for(plan)
        decision = await self._ask(call, plan, ruling.reason, stop, undoable=undoable)
        if stop.is_set:
            return outcome.cancelled()
        await self.records.judged(call, plan, decision.verdict, decision.note)
        return outcome.declined(decision.note) if decision.verdict == "deny" else None

    async def _ask(
        self, call: ToolCall, plan: Plan, reason: str, stop: Stop, *, undoable: bool = True
    ) -> Decision:
        """Ask the person. Once the turn is stopped nobody is asked: no answer would be waited for.

        "Always" is not offered for what cannot be undone, because that is asked for each time.
        """
        always = await asyncio.to_thread(self.permissions.always, plan.actions) if undoable else ""
        if stop.is_set:
            return Decision("deny")
        request = ApprovalRequested(new_id(), call.id, call.name, plan.preview, reason, always)
        decision = await self.desk.ask(request)
        if decision.verdict == "allow_always":
            await asyncio.to_thread(self.permissions.remember, plan.actions)
        return decision

    async def _record(self, call: ToolCall, plan: Plan, stop: Stop) -> Result | None:
        """Record the files for undo; a result instead when the call must not go on."""
        try:
            unrecorded = await self.records.before(call, plan)
        except (SnapshotError, OSError) as problem:
            _log.exception("files could not be recorded")
            self._emit(Notice(f"The files could not be recorded for undo: {problem}", "error"))
            await self.records.judged(call, plan, "not_run", f"could not be recorded for undo: {problem}")
            return outcome.unrecorded()
        if not unrecorded:
            return None
        why = "; ".join(f"{item.path}: {item.reason}" for item in unrecorded)
        reason = f"This could not be undone. {why}"
        decision = await self._ask(call, plan, reason, stop, undoable=False)
        if stop.is_set:
            return outcome.cancelled()
        await self.records.judged(call, plan, decision.verdict, decision.note or reason)
        return outcome.declined(decision.note) if decision.verdict == "deny" else None

    async def _apply(self, prepared: _Prepared, stop: Stop) -> Result:
        loop = asyncio.get_running_loop()

        def output(chunk: str) -> None:
            loop.call_soon_threadsafe(self._emit, ToolOutput(prepared.call.id, chunk))

        try:
            result = await asyncio.to_thread(prepared.tool.apply, prepared.plan, Running(output, stop.flag))
        except Exception as problem:
            return self._broken(prepared.call, problem)
        return result

    def _broken(self, call: ToolCall, problem: Exception) -> Result:
        _log.exception("the tool %s failed", call.name, exc_info=problem)
        self._emit(Notice(f"The tool {call.name} itself failed; the log has the details.", "error"))
        return outcome.broken(problem)

    def _finish(self, call: ToolCall, result: Result) -> Outcome:
        done = Outcome(call, result)
        if call.name:
            shown = (result.display, result.error, done.changed, result.images)
            self._emit(ToolFinished(call.id, call.name, *shown, message_id=done.message.id))
        else:
            self._emit(Notice("The model wrote a call to nobody and was told so.", "warning"))
        return done
