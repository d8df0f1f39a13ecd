"""`glimmer doctor`: what Glimmer finds on this machine, and what to do where something lacks."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from engine.devices import devices
from engine.errors import EngineError, ModelError
from engine.features import SYMBOLS, missing_symbols
from engine.identity import file_identity
from engine.loading import EngineOptions, find_files, plan_loading
from sandbox.isolation.probe import status
from tools.programs import find_outside

Mark = Literal["ok", "note", "missing"]
_SIGNS: dict[Mark, str] = {"ok": "✓", "note": "·", "missing": "✗"}

_CLIPBOARD = {"wl-paste": "wl-clipboard", "xclip": "xclip"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One line. `missing` is something that Glimmer needs."""

    mark: Mark
    name: str
    text: str
    todo: str = ""


def examine(model: Path, options: EngineOptions) -> Iterator[Finding]:
    """Everything, in the order of the report. Never raises."""
    yield Finding("ok", "Python", f"{sys.version.split()[0]} on {sys.platform}")
    yield from _devices()
    yield from _model(model, options)
    yield from _drafting()
    yield from _programs()
    yield from _terminal()


def as_text(findings: list[Finding]) -> str:
    """The report."""
    width = max(len(finding.name) for finding in findings)
    rows: list[str] = []
    for finding in findings:
        rows.append(f"{_SIGNS[finding.mark]} {finding.name:<{width}}  {finding.text}")
        if finding.todo:
            rows.append(f"  {'':<{width}}  → {finding.todo}")
    return "\n".join(rows) + "\n"


def _devices() -> Iterator[Finding]:
    found = devices()
    for device in found:
        text = f"{device.total / 2**30:.1f} GiB, {device.free / 2**30:.1f} GiB free"
        name = "Memory" if device.kind == "cpu" else f"GPU {device.name}"
        yield Finding("ok", name, f"{text}{', shared with the CPU' if device.is_shared else ''}")
    if all(device.kind == "cpu" for device in found):
        yield Finding("note", "GPU", "none that this build of llama.cpp can use", "README.md, With a GPU")
    cores = os.cpu_count() or 1
    yield Finding("ok", "Processor", f"{cores} cores")


def _model(model: Path, options: EngineOptions) -> Iterator[Finding]:
    try:
        files, notices = find_files(model, options)
    except ModelError as problem:
        yield Finding("missing", "Model", f"{problem.what} {problem.why}", problem.todo)
        return
    size = model.stat().st_size / 2**20
    name = f"{files.model.name}, {size:,.1f} MiB, {file_identity(model)[:12]}, {model}"
    if files.model.is_demo:
        yield Finding("note", "Model", f"{name} (demonstration model)", "README.md, The real model")
    else:
        yield Finding("ok", "Model", name)
    if files.drafter is None:
        todo = "Put the model's dflash-*.gguf beside it: replies come faster, and nothing else changes."
        yield Finding("note", "Drafter", "none beside the model", todo)
    else:
        path = files.drafter.path
        yield Finding("ok", "Drafter", f"{files.drafter.name}, {file_identity(path)[:12]}, {path}")
    for notice in notices:
        yield Finding("note", "Notice", notice)
    try:
        plan = plan_loading(files, options)
    except EngineError as problem:
        yield Finding("missing", "Plan", f"{problem.what} {problem.why}", problem.todo)
        return
    yield Finding("ok", "Plan", plan.summary)
    for given_up in plan.given_up:
        yield Finding("note", "Given up", given_up)


def _drafting() -> Iterator[Finding]:
    if missing := missing_symbols():
        todo = "Install llama-cpp-python 0.3.36; without it replies are the same, only slower."
        yield Finding("note", "Drafting", f"llama.cpp lacks {', '.join(missing)}", todo)
    else:
        yield Finding("ok", "Drafting", f"llama.cpp has all {len(SYMBOLS)} functions for it")


def _programs() -> Iterator[Finding]:
    yield _program("bash", "commands cannot be run", needed=True)
    yield _program("git", "there is no undo", needed=True)
    yield _program("rg", "searching is slower", needed=False)
    yield _isolation()
    if sys.platform == "linux":
        found = [program for program in _CLIPBOARD if shutil.which(program)]
        if found:
            yield Finding("ok", "Clipboard", ", ".join(found))
        else:
            todo = "Install wl-clipboard (Wayland) or xclip (X11) to paste pictures."
            yield Finding("note", "Clipboard", "no program to read pictures from it", todo)


def _isolation() -> Finding:
    found = status()
    if found.kind == "none":
        todo = "Every command that may do more than read asks (docs/safety.md, Isolation)."
        return Finding("note", "Isolation", found.why, todo)
    if found.why:
        return Finding("note", "Isolation", found.why, "Install bubblewrap (docs/safety.md, Isolation).")
    untested = ", not tried on this system by its authors" if found.kind == "seatbelt" else ""
    return Finding("ok", "Isolation", f"commands run in {found.kind}, without the network{untested}")


def _program(name: str, without: str, *, needed: bool) -> Finding:
    path = find_outside(name, Path.cwd()) or _beside_python(name)
    if path is None:
        return Finding("missing" if needed else "note", name, f"not found: {without}", f"Install {name}.")
    try:
        done = subprocess.run(
            (path, "--version"),
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        version = (done.stdout or done.stderr).strip().splitlines()[:1]
    except (OSError, subprocess.SubprocessError):
        version = []
    return Finding("ok", name, f"{version[0] if version else 'version unknown'}, {path}")


def _beside_python(name: str) -> str | None:
    path = Path(sys.executable).with_name(name)
    return str(path) if os.access(path, os.X_OK) else None


def _terminal() -> Iterator[Finding]:
    if not sys.stdout.isatty():
        yield Finding("note", "Terminal", "none: output goes to a file or another program")
        return
    size = shutil.get_terminal_size()
    colours = (
        "true colour" if os.environ.get("COLORTERM") in ("truecolor", "24bit") else "256 colours or fewer"
    )
    within = [
        name
        for name, variable in (("tmux", "TMUX"), ("screen", "STY"), ("ssh", "SSH_TTY"))
        if os.environ.get(variable)
    ]
    inside = f", inside {' and '.join(within)}" if within else ""
    text = f"{os.environ.get('TERM', 'unknown')}, {size.columns}x{size.lines}, {colours}{inside}"
    if size.columns < 40 or size.lines < 12:
        yield Finding("note", "Terminal", text, "Make it at least 40x12.")
    else:
        yield Finding("ok", "Terminal", text)
