"""What the screen asks of a session, and nothing more."""

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Protocol

from engine.messages import Image, Strength
from glimmer_tui.agent.events import Event
from glimmer_tui.agent.sight import Expired
from sandbox.actions import Decision, Mode

if TYPE_CHECKING:
    from sandbox.recorded_files import Restored


class Conversation(Protocol):
    """A session as the screen sees it. `glimmer_tui.agent.session.Session` is one."""

    @property
    def busy(self) -> bool:
        """Whether a turn runs."""
        ...

    def events(self) -> AsyncIterator[Event]:
        """Everything that happens, in order, until `close`."""
        ...

    async def start(self) -> None:
        """Begin to load the model and return."""
        ...

    def submit(self, text: str, images: Sequence[Image] = ()) -> None:
        """Say something, and show pictures with it; it is queued while a turn runs."""
        ...

    def reply(self, approval_id: str, decision: Decision) -> None:
        """Answer an approval."""
        ...

    def cancel(self) -> None:
        """Stop the running turn."""
        ...

    def set_mode(self, mode: Mode) -> None:
        """Change what may happen unasked."""
        ...

    def set_reasoning(self, strength: Strength) -> None:
        """Change how much the model thinks."""
        ...

    async def new_conversation(self) -> None:
        """Forget what was said."""
        ...

    def expire(self) -> Expired:
        """Take old pictures and long results out of the model's view."""
        ...

    async def preview_undo(self) -> "Sequence[Restored]":
        """What `undo` would do to each file."""
        ...

    async def undo(self, force: bool = False) -> object:
        """Put the files of the last turn back; with `force`, those changed since as well."""
        ...

    async def pass_over(self) -> None:
        """Keep the last turn's files and make the turn before it the next to undo."""
        ...

    async def redo(self) -> object:
        """Bring back what the last undo took away."""
        ...

    async def close(self) -> None:
        """Stop what runs and free the model."""
        ...
