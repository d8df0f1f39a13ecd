"""What came of one prompt, gathered from its events."""

from dataclasses import dataclass, field
from typing import Any

from engine.protocol import Usage
from glimmer_tui.agent import events
from glimmer_tui.agent.events import Event

OK, FAILED, NO_MODEL, UNANSWERED, INTERRUPTED = 0, 1, 3, 4, 130

_REASONS = {
    OK: "ok",
    FAILED: "turn_failed",
    NO_MODEL: "model_unusable",
    UNANSWERED: "approval_needed",
    INTERRUPTED: "interrupted",
}


@dataclass(slots=True)
class Report:
    """Fed with every event of a run; complete after the turn's last one."""

    calls: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    needed: list[str] = field(default_factory=list[str])
    notices: list[str] = field(default_factory=list[str])
    changed: dict[str, None] = field(default_factory=dict[str, None])
    generated_tokens: int = 0
    usage: Usage = field(default_factory=Usage)
    end: events.TurnFinished | events.TurnFailed | None = None
    interrupted: bool = False

    def add(self, event: Event) -> None:
        match event:
            case events.ToolStarted(call_id, name, summary):
                self.calls[call_id] = {"id": call_id, "name": name, "summary": summary, "error": ""}
            case events.ToolFinished(call_id, _, _, error, changed):
                self.calls[call_id]["error"] = error
                self.changed.update(dict.fromkeys(changed))
            case events.ApprovalRequested(call_id=call_id):
                self.needed.append(self.calls[call_id]["summary"])
            case events.Notice(text):
                self.notices.append(text)
            case events.StepFinished(usage):
                self.usage = usage
                self.generated_tokens += usage.generated
            case events.TurnFinished() | events.TurnFailed():
                self.end = event
            case _:
                pass

    @property
    def exit_code(self) -> int:
        match self.end:
            case _ if self.interrupted:
                return INTERRUPTED
            case events.TurnFailed(kind="model"):
                return NO_MODEL
            case events.TurnFinished() if self.needed:
                return UNANSWERED
            case events.TurnFinished():
                return OK
            case _:
                return FAILED

    def to_json(self) -> dict[str, Any]:
        """The one object of `--output json`."""
        end = self.end
        finished = end if isinstance(end, events.TurnFinished) else None
        failed = end if isinstance(end, events.TurnFailed) else None
        return {
            "answer": finished.answer if finished else "",
            "stop": finished.stop if finished else "failed",
            "exit_code": self.exit_code,
            "exit_reason": _REASONS[self.exit_code],
            "error": _error(failed) if failed else None,
            "usage": {
                "generated": self.generated_tokens,
                "context_used": self.usage.context_used,
                "context_size": self.usage.context_size,
            },
            "changed": list(self.changed),
            "tool_calls": list(self.calls.values()),
            "approvals_needed": self.needed,
            "notices": self.notices,
        }


def _error(failed: events.TurnFailed) -> dict[str, str]:
    return {"kind": failed.kind, "what": failed.what, "why": failed.why, "todo": failed.todo}
