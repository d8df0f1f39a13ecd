"""Which project folders the person trusts: only their AGENTS.md and settings are used."""

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

PROJECT_SETTINGS = Path(".glimmer", "config.toml")
INSTRUCTIONS = Path("AGENTS.md")


class Trust:
    """The trusted folders, as real paths, kept in a file of the person's state and in their settings."""

    def __init__(self, state: Path, listed: Iterable[str] = ()) -> None:
        self._file = state / "trusted.json"
        self._listed = frozenset(_real_paths(listed))

    def __contains__(self, folder: Path) -> bool:
        real = folder.resolve()
        return real in self._listed or real in self._saved()

    def add(self, folder: Path) -> None:
        """Trust a folder from now on. Raises OSError."""
        paths = sorted(str(path) for path in self._saved() | {folder.resolve()})
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = self._file.with_suffix(".new")
        fresh.unlink(missing_ok=True)
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            json.dump(paths, file)
        fresh.replace(self._file)

    def _saved(self) -> frozenset[Path]:
        """What was saved; a file that cannot be read trusts nothing."""
        try:
            paths = json.loads(self._file.read_text("utf-8"))
        except (OSError, ValueError, RecursionError):
            return frozenset()
        match paths:
            case list():
                return frozenset(Path(path) for path in paths if isinstance(path, str))
            case _:
                return frozenset()


def _real_paths(listed: Iterable[str]) -> Iterator[Path]:
    """Where the paths lead; one that leads round in circles is left out."""
    for path in listed:
        with suppress(OSError, RuntimeError):
            yield Path(path).expanduser().resolve()


def unused_files(folder: Path) -> tuple[str, ...]:
    """What a folder holds that would be used if it were trusted."""
    return tuple(str(name) for name in (INSTRUCTIONS, PROJECT_SETTINGS) if (folder / name).is_file())
