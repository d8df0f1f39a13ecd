"""`diff`: what changed in the project since the conversation began."""

from collections.abc import Callable, Sequence

from pydantic import BaseModel, ConfigDict

from sandbox.actions import Action
from tools.base import Display, FileChange, Plan, Result, Running
from tools.shown import head_and_tail, shown
from tools.unified import unified

LONGEST = 20_000


class DiffArguments(BaseModel):
    """`diff` takes nothing."""

    model_config = ConfigDict(extra="forbid")


class DiffTool:
    """Shows changes as a unified diff. `changes` gives them; a deleted file has the text "" after."""

    name = "diff"
    arguments = DiffArguments

    def __init__(self, changes: Callable[[], Sequence[FileChange]]) -> None:
        self._changes = changes

    def prepare(self, arguments: DiffArguments) -> Plan | Result:
        """Nothing to check."""
        return Plan((Action("read", "."),))

    def apply(self, plan: Plan, running: Running) -> Result:
        """Compare."""
        changed = [change for change in self._changes() if change.before != change.after]
        if not changed:
            return Result("No changes.", Display("No changes."))
        whole = "\n".join(unified(shown(one.path), one.before, one.after) for one in changed)
        text = head_and_tail(whole, LONGEST, " not shown; read the files")
        title = f"{len(changed)} changed file{'' if len(changed) == 1 else 's'}"
        return Result(text, Display(title, whole, "diff"))
