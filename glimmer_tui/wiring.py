"""The one place that builds things: a session out of an engine, tools, policy, snapshots and a store."""

import logging
import os
from collections.abc import Callable
from dataclasses import replace
from importlib.resources import files
from logging.handlers import RotatingFileHandler
from pathlib import Path

from engine.embedded import EmbeddedEngine
from engine.errors import ModelError
from engine.loading import EngineOptions
from engine.messages import ToolSchema
from engine.protocol import Engine
from glimmer_tui.agent.desk import ApprovalDesk
from glimmer_tui.agent.dispatch import Dispatcher
from glimmer_tui.agent.outbox import Outbox
from glimmer_tui.agent.permissions import Permissions
from glimmer_tui.agent.records import Records
from glimmer_tui.agent.session import Session
from glimmer_tui.agent.store import Store, project_key
from glimmer_tui.agent.toolbox import Toolbox
from glimmer_tui.changes import as_texts
from glimmer_tui.options import Options
from sandbox.approvals import Approvals
from sandbox.audit import AuditLog, AuditUnavailable
from sandbox.paths import Workspace
from sandbox.shell import Shell
from sandbox.snapshots import Snapshots, SnapshotsUnavailable
from tools.base import Tool
from tools.diff import DiffTool
from tools.edit import EditTool
from tools.list_files import ListTool
from tools.outline import OutlineTool
from tools.plan import PlanTool
from tools.read import ReadTool
from tools.registry import Registry
from tools.run_command import RunTool
from tools.run_tests import TestTool
from tools.screenshot import ScreenshotTool
from tools.search import SearchTool
from tools.write import WriteTool

BUNDLED_MODEL = Path("models", "glimmer-nano.gguf")
LOG_FILE = "glimmer.log"
LOG_BYTES = 1_000_000


def build_session(options: Options, engine: Engine | None = None) -> Session:
    """A session, ready to `start`. Without an engine it runs the model that the options name.

    Raises ModelError when there is no such model file.
    """
    engine = engine or _engine(options)
    _keep_log(options.state)
    outbox = Outbox()
    notices = list(options.session.notices)
    snapshots = _snapshots(options, notices.append)
    audit = _audit(options, notices.append)
    shell = Shell(options.root)
    if shell.isolation.why:
        notices.append(shell.isolation.notice)
    records = Records(options.root, snapshots, audit, outbox.put)

    def release() -> None:
        try:
            shell.close()
        finally:
            records.close()

    return Session(
        engine,
        Dispatcher(
            _toolbox(options.root, shell, snapshots),
            Permissions(
                options.mode,
                Approvals(),
                options.root,
                lambda: Path(shell.cwd),
                isolated=shell.isolation.isolated,
            ),
            ApprovalDesk(outbox.put),
            records,
            outbox.put,
        ),
        Store(options.state / "sessions" / project_key(options.root)),
        outbox,
        replace(options.session, notices=tuple(notices)),
        release,
    )


def bundled_model() -> Path:
    """Where the model that comes with Glimmer lies, whether or not it is there."""
    return Path(str(files("glimmer_tui"))) / BUNDLED_MODEL


def model_to_load(options: Options) -> tuple[Path, EngineOptions]:
    """The model file that the options name, and how it is to be loaded. Raises ModelError."""
    model = options.model or bundled_model()
    if options.model is None and not model.is_file():
        raise ModelError(
            "This installation has no bundled model.",
            f"There is no file {model}.",
            "Install Glimmer again, or name a GGUF file with --model.",
        )
    if not model.is_file():
        todo = "Check the path after --model, or model.path in config.toml."
        raise ModelError(f"There is no model file {model}.", "", todo)
    wanted = options.engine
    return model, EngineOptions(
        context_size=wanted.context_size,
        threads=wanted.threads,
        gpu_layers=wanted.gpu_layers,
        drafter=Path(wanted.drafter).expanduser() if wanted.drafter else None,
        drafts=None if wanted.draft else 0,
        projector=Path(wanted.projector).expanduser() if wanted.projector else None,
        sees=wanted.see_pictures,
        picture_tokens=wanted.picture_tokens,
        picture_folder=options.state / "pictures",
        constrains=wanted.constrain_calls,
        state_folder=options.state / "cache",
        log_file=options.state / "engine.log",
    )


def _engine(options: Options) -> EmbeddedEngine:
    return EmbeddedEngine(*model_to_load(options))


def tool_schemas(root: Path) -> tuple[ToolSchema, ...]:
    """The tools as the model is told of them; nothing is started."""
    return _toolbox(root, Shell(root), None).schemas


def _toolbox(root: Path, shell: Shell, snapshots: Snapshots | None) -> Toolbox:
    """The tools, in the order in which the model is told of them: a model is trained on this order."""
    workspace = Workspace(root)
    tools: tuple[Tool, ...] = (
        ReadTool(workspace),
        ListTool(workspace),
        SearchTool(workspace),
        OutlineTool(workspace),
        EditTool(workspace),
        WriteTool(workspace),
        TestTool(workspace, shell),
        RunTool(shell),
        DiffTool(lambda: as_texts(snapshots.changes()) if snapshots is not None else []),
        PlanTool(),
        ScreenshotTool(shell, root),
    )
    return Toolbox(Registry(tools), Registry(tools, sees_pictures=True))


def _snapshots(options: Options, tell: Callable[[str], None]) -> Snapshots | None:
    try:
        return Snapshots(options.root, options.state)
    except SnapshotsUnavailable as problem:
        tell(f"Undo is not available, so every change to a file is asked for. {problem}")
        return None


def _audit(options: Options, tell: Callable[[str], None]) -> AuditLog | None:
    try:
        return AuditLog(options.state / "audit.jsonl")
    except AuditUnavailable as problem:
        tell(str(problem))
        return None


def _keep_log(state: Path) -> None:
    """Send what goes wrong inside Glimmer to a file of the person's alone, and nowhere else."""
    logger = logging.getLogger("glimmer_tui")
    logger.propagate = False
    for handler in logger.handlers[:]:
        logger.removeHandler(handler)
        handler.close()
    try:
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = state / LOG_FILE
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600))
        handler = RotatingFileHandler(path, maxBytes=LOG_BYTES, backupCount=1, delay=True, encoding="utf-8")
    except OSError:
        logger.addHandler(logging.NullHandler())
        return
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logger.addHandler(handler)
