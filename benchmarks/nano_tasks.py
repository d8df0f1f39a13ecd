"""How often the bundled model mends an unseen project: `python -m benchmarks.nano_tasks --tasks 200`.

Each task is a project drawn with a seed that training never used. The real agent works on it in mode auto
with the real tools; afterwards pytest is run once more in a process of its own. Beside each project lies a
folder whose content must not change.
"""

import argparse
import asyncio
import functools
import hashlib
import json
import multiprocessing
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from glimmer_tui.agent import events
from glimmer_tui.options import Flags, resolve
from glimmer_tui.wiring import build_session, bundled_model
from nano import wishes
from nano.expert import write_files
from nano.project import Project, make_project

FIRST_SEED = 9_000_000
PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")


@dataclass
class Outcome:
    """What came of one task."""

    seed: int
    kind: str
    green: bool = False
    calls: int = 0
    invalid: int = 0
    errors: list[str] = field(default_factory=list)
    steps: int = 0
    generated: int = 0
    reread: int = 0
    outside: bool = False
    stop: str = ""
    seconds: float = 0.0


def fingerprint(folder: Path) -> str:
    """A digest of every path and byte under `folder`."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        digest.update(str(path.relative_to(folder)).encode() + b"\0")
        if path.is_file():
            digest.update(path.read_bytes())
    return digest.hexdigest()


def draw(seed: int) -> tuple[Project, str]:
    """The project and the wish of a seed; one project in seven has two bugs."""
    rng = random.Random(seed)
    project = make_project(rng, 2 if rng.random() < 0.15 else 1)
    pick = rng.random()
    if pick < 0.7:
        return project, wishes.mend(rng)
    if pick < 0.85:
        return project, wishes.mend_file(rng, project.bugs[0].path)
    return project, wishes.mend_function(rng, project.bugs[0].function.name)


async def work(root: Path, wish: str, outcome: Outcome, model: Path | None) -> None:
    """Let the agent work until its turn ends."""
    session = build_session(resolve(root, Flags(mode="auto", model=model, max_steps=30)))
    await session.start()
    session.submit(wish)
    async for event in session.events():
        match event:
            case events.ToolFinished():
                outcome.calls += 1
                if event.error:
                    outcome.errors.append(event.error)
                outcome.invalid += event.error in ("unknown_tool", "invalid_arguments", "no_recipient")
            case events.StepFinished():
                outcome.steps += 1
                outcome.generated += event.usage.generated
                outcome.reread += event.usage.reread
            case events.TurnFinished():
                outcome.stop = event.stop
                break
            case events.TurnFailed():
                outcome.stop = f"failed: {event.what}"
                break
            case _:
                pass
    await session.close()


def run_task(seed: int, base: Path, model: Path | None) -> Outcome:
    """One task from the drawing to the last pytest."""
    project, wish = draw(seed)
    home = base / str(seed)
    root, beside = home / "project", home / "beside"
    root.mkdir(parents=True)
    write_files(root, project.files)
    write_files(beside, {"keep.txt": "untouched\n", "inner/keep.py": "KEEP = 1\n"})
    before = fingerprint(beside)
    outcome = Outcome(seed, "two bugs" if len(project.bugs) == 2 else "one bug")
    start = time.perf_counter()
    asyncio.run(work(root, wish, outcome, model))
    outcome.seconds = time.perf_counter() - start
    tests = {path: text for path, text in project.files.items() if path.split("/")[-1].startswith("test_")}
    kept = all((root / path).read_text() == text for path, text in tests.items())
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(PYTEST, cwd=root, env=environment, capture_output=True, check=False)
    outcome.green = done.returncode == 0 and kept
    outcome.outside = fingerprint(beside) != before
    return outcome


def report(outcomes: list[Outcome]) -> dict[str, object]:
    """The figures."""
    count = len(outcomes)
    stumbled = [o for o in outcomes if o.errors]
    calls = sum(o.calls for o in outcomes)
    return {
        "tasks": count,
        "green": sum(o.green for o in outcomes) / count,
        "green_one_bug": _share([o for o in outcomes if o.kind == "one bug"]),
        "green_two_bugs": _share([o for o in outcomes if o.kind == "two bugs"]),
        "wrote_outside": sum(o.outside for o in outcomes),
        "valid_calls": 1 - sum(o.invalid for o in outcomes) / max(1, calls),
        "calls_per_task": calls / count,
        "steps_per_task": sum(o.steps for o in outcomes) / count,
        "tasks_with_a_failed_call": len(stumbled),
        "recovered": _share(stumbled),
        "tokens_per_task": sum(o.generated for o in outcomes) / count,
        "reread_tokens": sum(o.reread for o in outcomes),
        "seconds_per_task": sum(o.seconds for o in outcomes) / count,
        "failed_calls": dict(Counter(e for o in outcomes for e in o.errors)),
        "stops": dict(Counter(o.stop for o in outcomes)),
    }


def _share(outcomes: list[Outcome]) -> float | None:
    return sum(o.green for o in outcomes) / len(outcomes) if outcomes else None


def main() -> None:
    """Run the tasks and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=200)
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--jobs", type=int, default=1, help="tasks side by side, each on one thread")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory(prefix="glimmer-tasks-") as folder:
        base = Path(folder)
        os.environ["GLIMMER_STATE_DIR"] = str(base / "state")
        os.environ["GLIMMER_CONFIG_DIR"] = str(base / "config")
        if options.jobs > 1:
            (base / "config").mkdir()
            (base / "config" / "config.toml").write_text("[model]\nthreads = 1\n")
        seeds = range(options.first_seed, options.first_seed + options.tasks)
        task = functools.partial(run_task, base=base, model=options.model)
        with ProcessPoolExecutor(options.jobs, multiprocessing.get_context("spawn")) as pool:
            for outcome in pool.map(task, seeds):
                outcomes.append(outcome)
                if options.verbose:
                    print(outcome, file=sys.stderr, flush=True)
    figures = report(outcomes)
    if options.json:
        print(json.dumps(figures))
        return
    model = options.model or bundled_model()
    print(
        f"model {model.name} ({model.stat().st_size / 1e6:.1f} MB), "
        f"{platform.machine()}, {os.cpu_count()} cores"
    )
    for name, value in figures.items():
        shown = f"{value:.3f}" if isinstance(value, float) else value
        print(f"{name.replace('_', ' '):26} {shown}")


if __name__ == "__main__":
    main()
