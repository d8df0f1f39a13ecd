"""What may happen unasked: the mode, and what the person allowed for good."""

from collections.abc import Callable
from pathlib import Path

from sandbox.actions import Action, Mode, Ruling
from sandbox.approvals import Approvals
from sandbox.policy import rule


class Permissions:
    """Judges plans of one project by the current mode. Fails closed: what cannot be judged is asked.

    `cwd` tells the folder the next command would run in, by default the project's; `isolated` whether the
    operating system confines commands.
    """

    def __init__(
        self,
        mode: Mode,
        approvals: Approvals,
        root: Path,
        cwd: Callable[[], Path] | None = None,
        *,
        isolated: bool = True,
    ) -> None:
        self.mode: Mode = mode
        self._approvals = approvals
        self._root = root
        self._isolated = isolated
        self._cwd = cwd or (lambda: root)

    def judge(self, actions: tuple[Action, ...]) -> Ruling:
        """The ruling on a plan. Blocks: links and wildcards are looked up on disk."""
        return rule(actions, self.mode, self._approvals, self._root, self._cwd(), isolated=self._isolated)

    def always(self, actions: tuple[Action, ...]) -> str:
        """What "always" would allow, in words."""
        return self._approvals.describe(actions)

    def remember(self, actions: tuple[Action, ...]) -> None:
        self._approvals.remember(actions, self._cwd())
