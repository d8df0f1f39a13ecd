"""Globs as git and ripgrep read them, compiled to regular expressions."""

import re
from collections.abc import Callable
from functools import lru_cache

BRACES = re.compile(r"\{([^{}]*)\}")


def glob_filter(glob: str, folder: str = "") -> Callable[[str], bool]:
    """A test for workspace-relative POSIX paths.

    Without a slash the glob is for the file's name, anywhere. With one it is for the whole path, seen from
    the project's root or from `folder`.
    """
    glob = glob.removeprefix("./").lstrip("/") or "*"
    if glob.endswith("/"):
        glob += "**"
    named = "/" not in glob
    pattern = compile_glob(glob)
    prefix = f"{folder}/" if folder not in ("", ".") else ""

    def fits(path: str) -> bool:
        if named:
            return pattern(path.rpartition("/")[2])
        return pattern(path) or (path.startswith(prefix) and pattern(path.removeprefix(prefix)))

    return fits


@lru_cache(maxsize=256)
def compile_glob(glob: str) -> Callable[[str], bool]:
    """A whole-string test for one glob with `*`, `**`, `?`, `[...]` and `{a,b}`."""
    expression = re.compile("|".join(f"(?:{translate(one)})" for one in expand(glob)), re.DOTALL)
    return lambda text: expression.fullmatch(text) is not None


def expand(glob: str, limit: int = 64) -> list[str]:
    """The globs that `{a,b}` groups stand for, at most `limit`."""
    ready: list[str] = []
    waiting = [glob]
    while waiting and len(ready) + len(waiting) <= limit:
        one = waiting.pop()
        found = BRACES.search(one)
        if not found:
            ready.append(one)
            continue
        waiting += [
            one[: found.start()] + choice + one[found.end() :] for choice in reversed(found[1].split(","))
        ]
    return ready + waiting


def translate(glob: str) -> str:
    """One glob without groups as a regular expression. `*` and `?` stop at a slash, `**` does not."""
    parts: list[str] = []
    at = 0
    while at < len(glob):
        char = glob[at]
        if glob.startswith("**/", at) and (at == 0 or glob[at - 1] == "/"):
            parts.append("(?:[^/]+/)*")
            at += 3
        elif glob.startswith("**", at) and at + 2 == len(glob) and (at == 0 or glob[at - 1] == "/"):
            parts.append(".+")
            at += 2
        elif char == "*":
            while glob.startswith("*", at + 1):
                at += 1
            parts.append("[^/]*")
            at += 1
        elif char == "?":
            parts.append("[^/]")
            at += 1
        elif char == "[" and (close := glob.find("]", at + 2)) > 0:
            parts.append(_character_class(glob[at + 1 : close]))
            at = close + 1
        elif char == "\\" and at + 1 < len(glob):
            parts.append(re.escape(glob[at + 1]))
            at += 2
        else:
            parts.append(re.escape(char))
            at += 1
    return "".join(parts)


def _character_class(inside: str) -> str:
    negated = inside[0] in "!^"
    members = inside[1:] if negated else inside
    members = re.sub(r"([\\\[\]&~|^])", r"\\\1", members)
    group = f"(?!/)[{'^' if negated else ''}{members}]"
    try:
        re.compile(group)
    except re.error:
        return re.escape(f"[{inside}]")
    return group
