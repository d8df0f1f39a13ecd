"""Where open approvals wait for the person."""

import asyncio

from glimmer_tui.agent.events import ApprovalRequested, ApprovalResolved
from glimmer_tui.agent.outbox import Emit
from sandbox.actions import Decision


class ApprovalDesk:
    """Asks, and hands the answer to whoever asked. Each is answered once; later answers are ignored."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._open: dict[str, asyncio.Future[Decision]] = {}

    async def ask(self, request: ApprovalRequested) -> Decision:
        """Publish the request and wait for its answer."""
        future: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()
        self._open[request.id] = future
        self._emit(request)
        try:
            return await future
        finally:
            self._open.pop(request.id, None)

    def reply(self, approval_id: str, decision: Decision) -> bool:
        """Answer an open approval; False when there is none of that id."""
        future = self._open.pop(approval_id, None)
        if future is None or future.done():
            return False
        self._emit(ApprovalResolved(approval_id, decision.verdict, decision.note))
        future.set_result(decision)
        return True

    def deny_all(self) -> None:
        """Answer every open approval with no."""
        for approval_id in tuple(self._open):
            self.reply(approval_id, Decision("deny"))
