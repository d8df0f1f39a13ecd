"""What isolation costs. `python -m benchmarks.isolation`.

For every kind of isolation this machine offers and for none: the time until a shell's first command is done,
the time of each further command, and of one that starts a program. Medians, in milliseconds. The bar: at most
20 ms a command more than without.
"""

import argparse
import os
import platform
import statistics
import tempfile
import threading
import time
from pathlib import Path

from sandbox.env import child_environment
from sandbox.isolation.confinement import Confinement
from sandbox.isolation.probe import facts
from sandbox.isolation.status import IsolationKind, IsolationStatus, available
from sandbox.shell import Shell

BAR = 20.0


def shell(kind: IsolationKind, root: Path) -> Shell:
    """A shell that is confined in one way, not started yet."""
    confined = Confinement(root, child_environment(os.environ), IsolationStatus(kind), facts())
    return Shell(root, None, "", confined)


def timed(opened: Shell, command: str, *, network: bool = False) -> float:
    """Milliseconds until a command's result is there."""
    began = time.perf_counter()
    done = opened.run(command, 60, lambda _chunk: None, threading.Event(), network=network)
    if done.exit_code != 0:
        raise SystemExit(f"{command}: {done.text}")
    return (time.perf_counter() - began) * 1000


def measure(kind: IsolationKind, root: Path, rounds: int) -> dict[str, float]:
    """The medians for one kind."""
    first: list[float] = []
    further: dict[str, list[float]] = {"builtin": [], "program": []}
    for _ in range(rounds):
        opened = shell(kind, root)
        first.append(timed(opened, ":"))
        for _ in range(5):
            further["builtin"].append(timed(opened, ":"))
            further["program"].append(timed(opened, "/bin/true"))
        if kind != "none":
            further.setdefault("with the network", []).append(timed(opened, ":", network=True))
        opened.close()
    return {"first": statistics.median(first)} | {
        name: statistics.median(values) for name, values in further.items()
    }


def main() -> None:
    """Print the table, and whether the bar is met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    rounds: int = parser.parse_args().rounds
    machine = f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}"
    print(f"{machine}; median of {rounds} shells, in ms\n")
    print(f"{'':12}{'first':>10}{'builtin':>10}{'program':>10}{'with the network':>18}")
    found: dict[IsolationKind, dict[str, float]] = {}
    kinds: tuple[IsolationKind, ...] = ("none", *available(facts()))
    with tempfile.TemporaryDirectory() as folder:
        for kind in kinds:
            found[kind] = measure(kind, Path(folder).resolve(), rounds)
            row = found[kind]
            network = f"{row['with the network']:18.1f}" if "with the network" in row else ""
            print(f"{kind:12}{row['first']:10.1f}{row['builtin']:10.1f}{row['program']:10.1f}{network}")
    for kind in kinds[1:]:
        more = max(found[kind][name] - found["none"][name] for name in ("builtin", "program"))
        start = found[kind]["first"] - found["none"]["first"]
        verdict = "met" if more <= BAR else "missed"
        print(f"\n{kind}: {more:.1f} ms a command, {start:.1f} ms once a shell; the bar is {verdict}")


if __name__ == "__main__":
    main()
