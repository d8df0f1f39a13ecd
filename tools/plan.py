"""`plan`: the steps of a longer task, noted where the person can see them."""

from pydantic import BaseModel, ConfigDict

from sandbox.actions import Action
from tools.base import Display, Plan, Result, Running
from tools.failure import failure

MOST_ITEMS = 50
STATUSES = ("pending", "active", "done")
MARKS = {"pending": " ", "active": ">", "done": "x"}


class PlanItem(BaseModel):
    """One step. `status` is pending, active or done."""

    model_config = ConfigDict(extra="forbid")

    text: str
    status: str


class PlanArguments(BaseModel):
    """What `plan` takes: the whole list, every time."""

    model_config = ConfigDict(extra="forbid")

    items: list[PlanItem]


class PlanTool:
    """Keeps the latest list."""

    name = "plan"
    arguments = PlanArguments

    def __init__(self) -> None:
        self._items: tuple[PlanItem, ...] = ()

    @property
    def items(self) -> tuple[PlanItem, ...]:
        """The steps as last noted."""
        return self._items

    def prepare(self, arguments: PlanArguments) -> Plan | Result:
        """Check the list."""
        if not arguments.items or len(arguments.items) > MOST_ITEMS:
            return failure("invalid_arguments", f"items must hold from 1 to {MOST_ITEMS} steps.")
        for item in arguments.items:
            if item.status not in STATUSES:
                return failure("invalid_arguments", "status must be pending, active or done.")
            if not item.text.strip():
                return failure("invalid_arguments", "Every step needs a text.")
        return Plan((Action("read", "."),), payload=tuple(arguments.items))

    def apply(self, plan: Plan, running: Running) -> Result:
        """Note the list."""
        self._items = plan.payload
        done = sum(item.status == "done" for item in self._items)
        lines = [f"[{MARKS[item.status]}] {' '.join(item.text.split())}" for item in self._items]
        title = f"{done} of {len(lines)} done"
        return Result(f"Plan noted: {title}.", Display(f"Plan: {title}", "\n".join(lines)))
