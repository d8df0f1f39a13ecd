"""Settings: typed, from the person's `config.toml` and from that of a trusted project.

```toml
theme = "glimmer-dark"
trusted_projects = ["~/code/shop"]

[model]
path = "~/models/glimmer.gguf"
context_size = 32768

[agent]
mode = "ask"
reasoning = "high"
max_steps = 50
```
"""

import re
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

CONFIG_FILE = "config.toml"
ModeName = Literal["read-only", "ask", "auto-edit", "auto"]
StrengthName = Literal["low", "medium", "high", "xhigh"]


class ConfigError(Exception):
    """A settings file that cannot be used: which file, which line, which key, and why."""


def _expands(path: str) -> str:
    if "\0" in path:
        raise ValueError("a path cannot hold a NUL character")
    try:
        Path(path).expanduser()
    except RuntimeError as problem:
        raise ValueError("the home folder it names is not known") from problem
    return path


_PathText = Annotated[str, AfterValidator(_expands)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ModelSettings(_Table):
    """Which model runs, and how. What is not given is left to the model and the machine."""

    path: _PathText | None = None
    """A GGUF file; the bundled model when not given."""
    context_size: int | None = Field(default=None, ge=512)
    """Tokens of context."""
    gpu_layers: int | None = Field(default=None, ge=-1)
    """Layers kept on the GPU; -1 for all."""
    threads: int | None = Field(default=None, ge=1)
    drafter: _PathText | None = None
    """The drafter's GGUF file; the one beside the model when not given."""
    draft: bool = True
    """Whether tokens are drafted, which changes the speed alone."""
    projector: _PathText | None = None
    """The vision projector's GGUF file; the one beside the model when not given."""
    see_pictures: bool = True
    """Whether the vision projector is loaded."""
    picture_tokens: int = Field(default=1196, ge=1, le=4096)
    """The most tokens of one picture."""
    pictures_kept: int = Field(default=3, ge=1, le=100)
    """Pictures the model keeps in sight; older ones are taken out of its context."""
    constrain_calls: bool = True
    """Whether tool calls are kept well formed while they are written."""
    temperature: float | None = Field(default=None, ge=0, le=5)
    """0 always takes the likeliest token."""
    top_p: float | None = Field(default=None, gt=0, le=1)
    top_k: int | None = Field(default=None, ge=0)
    seed: int | None = Field(default=None, ge=0, lt=2**32)


class AgentSettings(_Table):
    """How the agent works."""

    mode: ModeName = "ask"
    """What may happen without asking."""
    reasoning: StrengthName | None = None
    """How much the model thinks first."""
    max_steps: int = Field(default=50, ge=1, le=1000)
    """Model steps of one turn."""
    max_tokens: int | None = Field(default=None, ge=1)
    """Tokens of one reply."""


class Config(_Table):
    """Everything that can be set in a file."""

    theme: str = "glimmer-dark"
    trusted_projects: tuple[_PathText, ...] = Field(default=(), strict=False)
    """Folders whose AGENTS.md and settings are used."""
    model: ModelSettings = ModelSettings()
    agent: AgentSettings = AgentSettings()


class ProjectAgentSettings(_Table):
    """How the agent works in one project."""

    reasoning: StrengthName | None = None
    max_steps: int | None = Field(default=None, ge=1, le=1000)
    max_tokens: int | None = Field(default=None, ge=1)


class ProjectConfig(_Table):
    """What a trusted project may set. Trust, the model and what runs unasked stay with the person."""

    agent: ProjectAgentSettings = ProjectAgentSettings()


def load_config(path: Path) -> Config:
    """The person's settings; the defaults when there is no file. Raises ConfigError."""
    return cast("Config", _read(path, Config))


def load_project_config(path: Path) -> ProjectConfig:
    """A trusted project's settings; none when there is no file. Raises ConfigError."""
    return cast("ProjectConfig", _read(path, ProjectConfig))


def _read(path: Path, model: type[BaseModel]) -> BaseModel:
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return model()
    except OSError as problem:
        raise ConfigError(f"{path} cannot be read: {problem.strerror}.") from problem
    except UnicodeDecodeError as problem:
        raise ConfigError(f"{path} is not UTF-8 text.") from problem
    try:
        return model.model_validate(tomllib.loads(text))
    except (tomllib.TOMLDecodeError, RecursionError) as problem:
        raise ConfigError(f"{path} is not valid TOML: {problem}.") from problem
    except ValidationError as problem:
        raise ConfigError("\n".join(_complaints(path, text, problem))) from problem


def _complaints(path: Path, text: str, problem: ValidationError) -> list[str]:
    complaints: list[str] = []
    for error in problem.errors(include_url=False):
        keys = [str(key) for key in error["loc"]]
        line = line_of(text, keys)
        where = f"{path}, line {line}" if line else str(path)
        known = "is not a setting there" if error["type"] == "extra_forbidden" else _why(cast("Any", error))
        complaints.append(f"{where}: {'.'.join(keys)} {known}.")
    return complaints


def _why(error: dict[str, Any]) -> str:
    message = str(error["msg"]).removeprefix("Value error, ").rstrip(".")
    return f"= {error['input']!r}: {message[:1].lower()}{message[1:]}"


_HEADER = re.compile(r"\s*\[+\s*([^\]]+?)\s*\]+")
_KEY = re.compile(r"\s*([A-Za-z0-9_.\"' -]+?)\s*=")


def line_of(text: str, keys: list[str]) -> int | None:
    """The line, counted from 1, that sets the longest part of a dotted key; None when no line does."""
    wanted = tuple(keys)
    table: tuple[str, ...] = ()
    best: tuple[int, int] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        header, key = _HEADER.match(line), _KEY.match(line)
        if header:
            table = _parts(header[1])
            named = table
        elif key:
            named = (*table, *_parts(key[1]))
        else:
            continue
        if named == wanted[: len(named)] and (best is None or len(named) > best[0]):
            best = (len(named), number)
    return best[1] if best else None


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in dotted.split("."))
