"""Blocks of plain words: what the person wrote, notices, failures, how a turn ended, the greeting."""

from textual.content import Content

from glimmer_tui.agent.events import Notice, TurnFailed
from glimmer_tui.widgets.block import TextBlock
from glimmer_tui.widgets.safe_text import one_line, printable


def user_block(text: str, steering: bool) -> TextBlock:
    """The person's own message, set apart quietly."""
    return TextBlock(Content(printable(text).rstrip()), "user-block -steering" if steering else "user-block")


def notice_block(notice: Notice) -> TextBlock:
    """A sentence for the person."""
    level = notice.level if notice.level in ("warning", "error") else "info"
    mark = {"warning": "! ", "error": "✗ "}.get(level, "· ")
    return TextBlock(Content(mark + printable(notice.text).rstrip()), f"notice-block -{level}")


def failure_block(failed: TurnFailed) -> TextBlock:
    """What happened, why, and what to do, a line each."""
    parts = [Content.styled("✗ " + printable(failed.what), "bold $error")]
    parts += [
        Content.styled("  " + printable(text), "$foreground") for text in (failed.why, failed.todo) if text
    ]
    return TextBlock(Content("\n").join(parts), "failure-block")


def end_block(stop: str, changed: tuple[str, ...], tokens: int, rate: float) -> TextBlock:
    """One quiet line under a turn: how it ended if that needs a word, what it changed, how fast it was."""
    words: list[str] = []
    if stop == "cancelled":
        words.append("stopped")
    elif stop == "length":
        words.append("cut off: the answer reached its token limit")
    elif stop == "context_full":
        words.append("cut off: the context is full, /new starts again")
    if changed:
        names = ", ".join(one_line(path, 60) for path in changed[:3])
        more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
        words.append(f"changed {names}{more}")
    if tokens:
        words.append(f"{tokens} tokens")
    if rate > 0:
        words.append(f"{rate:.0f} tok/s")
    return TextBlock(Content(" · ".join(words) or "done"), "end-block")


def restored_block(paths: tuple[str, ...], redo: bool) -> TextBlock:
    """What an undo or a redo put back."""
    names = ", ".join(one_line(path, 60) for path in paths) or "nothing"
    verb = "brought back" if redo else "put back"
    return TextBlock(Content(f"{'↷' if redo else '↶'} {verb} {names}"), "notice-block -info")


def greeting_block() -> TextBlock:
    """The first thing to see."""
    return TextBlock(
        Content.assemble(
            ("✦ Glimmer", "bold $accent"),
            ("  a local coding agent\n", "$muted"),
            ("/", "bold"),
            (" commands  ", "$muted"),
            ("?", "bold"),
            (" help  ", "$muted"),
            ("Shift+Tab", "bold"),
            (" mode", "$muted"),
        ),
        "greeting-block",
    )


def demo_block() -> TextBlock:
    """Says plainly that the bundled model is a demonstration."""
    return TextBlock(
        Content.assemble(
            ("Demonstration model. ", "bold $accent"),
            ("It mends small Python bugs and knows little else.\nAsk it: ", ""),
            ("Fix the failing test", "bold"),
            (". Real model: ", ""),
            ("glimmer --model PATH", "bold"),
            (" (README).", ""),
        ),
        "demo-block",
    )
