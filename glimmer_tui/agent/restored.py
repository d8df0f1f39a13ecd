"""What an undo or a redo came to: for the person as events, for the model as a note."""

from collections.abc import Iterator, Sequence

from engine.messages import Message
from glimmer_tui.agent.events import Event, FilesRestored, Notice
from glimmer_tui.agent.prompt import note_message
from sandbox.snapshots import Restored


def restored_events(restored: Sequence[Restored], redo: bool) -> Iterator[Event]:
    """The files that were put back, and a notice for each that was not."""
    if not restored:
        yield Notice("Nothing to redo." if redo else "Nothing to undo.")
        return
    paths = _paths(restored)
    if paths:
        yield FilesRestored(paths, redo)
    for item in restored:
        if item.outcome in ("conflict", "unrecorded"):
            yield Notice(f"{item.path.as_posix()} was left alone: {item.reason}", "warning")
    if not paths and all(item.outcome == "unchanged" for item in restored):
        yield Notice("The files were as they should be already.")


def restored_note(restored: Sequence[Restored], redo: bool) -> Message | None:
    """Tells the model which files are no longer as it left them; None when nothing changed."""
    paths = _paths(restored)
    if not paths:
        return None
    did = "brought back" if redo else "undid"
    return note_message(
        f"The user {did} your last changes to {', '.join(paths)}. Read a file again before you edit it."
    )


def _paths(restored: Sequence[Restored]) -> tuple[str, ...]:
    return tuple(item.path.as_posix() for item in restored if item.outcome in ("write", "remove"))
