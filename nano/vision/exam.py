"""Unseen screens: what pytest really prints in a project whose failing test has a name kept from training."""

import random
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from nano.expert import write_files
from nano.project import Project, make_project
from nano.quick_pytest import run_pytest
from nano.vision.drawing import Setting, draw, draw_face, draw_theme, faces_in
from nano.vision.screens import Line, Span, is_apart, other_commands, plain_line

COLUMNS = 80
MOST_ROWS = 30


@dataclass(frozen=True, slots=True)
class Question:
    """A picture [height, width, 3], and the failing function that it shows as `test_NAME`."""

    picture: npt.NDArray[np.uint8]
    name: str
    wide: int
    """Pixels a character is wide."""


def questions(seed: int, fonts: Path | None, count: int) -> Iterator[Question]:
    """The same questions for the same seed and fonts."""
    rng = random.Random(seed)
    faces = faces_in(fonts)
    for _ in range(count):
        project = _project(rng)
        with tempfile.TemporaryDirectory() as folder:
            write_files(Path(folder), project.files)
            report, _ = run_pytest(Path(folder))
        yield _asked(rng, report, project.bugs[0].function.name, faces)


def _project(rng: random.Random) -> Project:
    while True:
        project = make_project(rng, 1)
        if is_apart(project.bugs[0].function.name):
            return project


def _asked(
    rng: random.Random, report: str, name: str, faces: list[tuple[Path | None, Path | None]]
) -> Question:
    coloured = rng.random() < 0.6
    told = [styled(row) if coloured else plain_line(row) for row in report.rstrip("\n").split("\n")]
    command: Line = (Span("$ ", "green" if coloured else "plain"), Span("pytest -q --tb=short"))
    lines = [*other_commands(rng), command, *told, *other_commands(rng)]
    rows = min(MOST_ROWS, max(len(lines), rng.choice((18, 24, 30))))
    lines = lines[-rows:]
    face = draw_face(rng, faces, rng.choice((7, 8, 9, 10)))
    pad = rng.choice((0, 0, rng.randint(0, 14)))
    setting = Setting(face, draw_theme(rng), pad, pad, rng.choice((0.0, 0.0, 4.0)))
    picture = draw(lines, setting, COLUMNS * face.wide + 2 * pad, rows * face.high + 2 * pad)
    return Question(picture, name, face.wide)


def styled(row: str) -> Line:
    """A line of pytest in its colours."""
    if row.startswith("FAILED "):
        at = row.find("::") + 2
        end = row.find(" - ", at)
        end = end if end >= 0 else len(row)
        return Span("FAILED", "red"), Span(row[6:at]), Span(row[at:end], "bold"), Span(row[end:])
    if row.startswith("E "):
        return (Span(row, "red"),)
    if row.startswith("___"):
        return (Span(row, "bright"),)
    if row.startswith("=") and "summary" in row:
        return (Span(row, "cyan"),)
    return (Span(row, "red" if " failed" in row and " in " in row else "plain"),)
