"""A unified diff of two texts, bounded."""

from difflib import unified_diff

from tools.text_file import split_lines

MOST_LINES = 10_000
LONGEST = 200_000


def unified(name: str, before: str | None, after: str | None) -> str:
    """The diff with three lines of context. None stands for a file that is not there."""
    old, new = _lines(before or ""), _lines(after or "")
    if len(old) + len(new) > MOST_LINES:
        return f"{name}: too long to compare line by line ({len(old)} and {len(new)} lines)."
    source = "/dev/null" if before is None else f"a/{name}"
    target = "/dev/null" if after is None else f"b/{name}"
    text = "\n".join(unified_diff(old, new, source, target, lineterm=""))
    return text if len(text) <= LONGEST else text[:LONGEST] + "\n[cut: the rest of this diff]"


def _lines(text: str) -> list[str]:
    lines = split_lines(text)
    if lines and not text.endswith("\n"):
        lines[-1] += "\n\\ No newline at end of file"
    return lines
