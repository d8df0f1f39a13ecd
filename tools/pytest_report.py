"""What pytest printed, in the few lines a model needs: a status, then the failures."""

import re

from tools.shown import head_and_tail

LONGEST = 12_000
COUNTS = re.compile(
    r"^=*\s*((?:\d+ (?:failed|passed|skipped|deselected|xfailed|xpassed|warnings?|errors?|rerun|subtests \w+)"
    r"(?:, )?)+)(?: in [\d.]+s.*?)?\s*=*$"
)
NOTHING_RAN = re.compile(r"^=*\s*no tests (?:ran|collected)\b.*$")
PROGRESS = re.compile(r"^(?:\S+ )?[.FEsxXRpP]+\s+\[\s*\d+%\]$")
TITLE = re.compile(r"^=+ (.+?) =+$")
KEPT = ("FAILURES", "ERRORS", "short test summary info")
DROPPED = ("warnings summary", "test session starts", "PASSES", "slowest ", "tests coverage", "Captured")
RULER = re.compile(r"^([=_-])\1{3,}(?=$|[^=_-])|(?<![=_-])([=_-])\2{3,}$|^([=_-])\3{3,}$")


def format_pytest(raw: str, exit_code: int) -> str:
    """Turn pytest's output (plain text, LF line ends) and exit code into the report for the model.

    The first line is the status; after a blank line follow the failures, without durations, rulers and
    progress. A run that went well is the status alone.
    """
    lines = [line.rstrip() for line in raw.split("\n")]
    counts = _counts(lines)
    if exit_code == 0:
        return f"Tests passed: {counts} (pytest)." if counts else "Tests passed (pytest)."
    if exit_code == 5:
        return "No tests ran (pytest)."
    failed = f": {counts} (pytest)." if counts else f" (pytest, exit code {exit_code})."
    status = f"Tests failed{failed}"
    body = _squeeze(_failures(lines) or _everything(lines))
    return f"{status}\n\n{head_and_tail(body, LONGEST)}" if body else status


def _counts(lines: list[str]) -> str:
    for line in reversed(lines):
        found = COUNTS.match(line)
        if found:
            parts = [part for part in found[1].split(", ") if part and "warning" not in part]
            return ", ".join(parts)
    return ""


def _failures(lines: list[str]) -> list[str]:
    kept: list[str] = []
    keeping = False
    for line in lines:
        title = TITLE.match(line)
        if title and title[1].startswith(KEPT):
            keeping = True
        elif title and title[1].startswith(DROPPED):
            keeping = False
        if keeping and not _is_noise(line):
            kept.append(line)
    return kept


def _everything(lines: list[str]) -> list[str]:
    return [line for line in lines if not _is_noise(line)]


def _is_noise(line: str) -> bool:
    return bool(PROGRESS.match(line) or COUNTS.match(line) or NOTHING_RAN.match(line))


def _squeeze(lines: list[str]) -> str:
    text = "\n".join(RULER.sub(lambda ruler: ruler[0][0] * 3, line) for line in lines)
    return re.sub(r"\n{3,}", "\n\n", text).strip("\n")
