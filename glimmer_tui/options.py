"""What a run is to be: the command line over the project's settings over the person's."""

from dataclasses import dataclass
from pathlib import Path

from engine.messages import Strength
from engine.protocol import SamplingWish
from glimmer_tui.agent.prompt import Instructions, read_instructions
from glimmer_tui.agent.settings import SessionSettings
from glimmer_tui.config import (
    CONFIG_FILE,
    AgentSettings,
    ModelSettings,
    ProjectConfig,
    load_config,
    load_project_config,
)
from glimmer_tui.folders import config_folder, state_folder
from glimmer_tui.trust import PROJECT_SETTINGS, Trust, unused_files
from sandbox.actions import Mode


class FolderRefused(Exception):
    """Glimmer cannot work in the folder. The message is for the person."""


@dataclass(frozen=True, slots=True)
class Flags:
    """What the command line says; None where it says nothing."""

    model: Path | None = None
    mode: Mode | None = None
    reasoning: Strength | None = None
    seed: int | None = None
    temperature: float | None = None
    max_steps: int | None = None
    trust: bool = False


@dataclass(frozen=True, slots=True)
class Options:
    """Everything `build_session` needs to know. `model` None is the bundled one."""

    root: Path
    state: Path
    model: Path | None
    mode: Mode
    engine: ModelSettings
    session: SessionSettings
    theme: str = "glimmer-dark"


def resolve(folder: Path, flags: Flags) -> Options:
    """Read the settings and decide. Raises ConfigError or FolderRefused."""
    root = _root(folder)
    config = load_config(config_folder() / CONFIG_FILE)
    state = state_folder()
    trusted = _trusted(root, Trust(state, config.trusted_projects), flags.trust)
    project = load_project_config(root / PROJECT_SETTINGS) if trusted else ProjectConfig()
    model = flags.model or (Path(config.model.path).expanduser() if config.model.path else None)
    return Options(
        root=root,
        state=state,
        model=model,
        mode=flags.mode or config.agent.mode,
        engine=config.model,
        session=SessionSettings(
            strength=_strength(flags, project, config.agent, bundled=model is None),
            sampling=_sampling(flags, config.model, bundled=model is None),
            max_tokens=project.agent.max_tokens or config.agent.max_tokens,
            max_steps=flags.max_steps or project.agent.max_steps or config.agent.max_steps,
            pictures_kept=config.model.pictures_kept,
            instructions=_instructions(root) if trusted else None,
            notices=() if trusted else _untrusted(root),
        ),
        theme=config.theme,
    )


def _root(folder: Path) -> Path:
    try:
        root = folder.expanduser().resolve(strict=True)
    except (OSError, RuntimeError) as problem:
        raise FolderRefused(f"{folder} cannot be opened: {problem}.") from problem
    if not root.is_dir():
        raise FolderRefused(f"{folder} is not a folder.")
    return root


def _trusted(root: Path, trust: Trust, asked: bool) -> bool:
    if asked and root not in trust:
        try:
            trust.add(root)
        except OSError as problem:
            raise FolderRefused(f"The trust in {root} cannot be saved: {problem.strerror}.") from problem
    return root in trust


def _untrusted(root: Path) -> tuple[str, ...]:
    unused = unused_files(root)
    if not unused:
        return ()
    names = " and ".join(unused)
    return (f"This folder is not trusted, so its {names} is not used. Trust it with: glimmer --trust",)


def _instructions(root: Path) -> Instructions | None:
    try:
        return read_instructions(root)
    except OSError as problem:
        raise FolderRefused(f"AGENTS.md cannot be read: {problem.strerror}.") from problem


def _strength(flags: Flags, project: ProjectConfig, agent: AgentSettings, bundled: bool) -> Strength:
    return flags.reasoning or project.agent.reasoning or agent.reasoning or ("low" if bundled else "high")


def _sampling(flags: Flags, model: ModelSettings, bundled: bool) -> SamplingWish:
    """What is not wished stays the model's own; the bundled model is greedy unless told otherwise."""
    temperature = model.temperature if flags.temperature is None else flags.temperature
    if temperature is None and bundled:
        temperature = 0.0
    return SamplingWish(
        temperature, model.top_p, model.top_k, model.seed if flags.seed is None else flags.seed
    )
