"""A unified diff of two texts, bounded."""

from difflib import unified_diff

MOST_LINES = 20_000
LONGEST = 200_000


def unified(name: str, before: str | None, after: str | None) -> str:
    """The diff with three lines of context. None stands for a file that is not there."""
    old, new = (before or "").split("\n"), (after or "").split("\n")
    if len(old) + len(new) > MOST_LINES:
        return f"{name}: too long to compare line by line ({len(old)} and {len(new)} lines)."
    source = "/dev/null" if before is None else f"a/{name}"
    target = "/dev/null" if after is None else f"b/{name}"
    text = "\n".join(unified_diff(old, new, source, target, lineterm=""))
    return text if len(text) <= LONGEST else text[:LONGEST] + "\n[cut: the rest of this diff]"
