"""The person's name for commits, so that git knows it where their settings are hidden."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

_WANTED = r"^user\.(name|email)$"
_SECONDS = 10.0


def with_identity(env: Mapping[str, str], settings: Mapping[str, str]) -> dict[str, str]:
    """The environment with these git settings added to those it already gives to git."""
    found = dict(env)
    count = int(found.get("GIT_CONFIG_COUNT", "0"))
    for number, (name, value) in enumerate(settings.items(), count):
        found[f"GIT_CONFIG_KEY_{number}"] = name
        found[f"GIT_CONFIG_VALUE_{number}"] = value
    found["GIT_CONFIG_COUNT"] = str(count + len(settings))
    return found


def identity(workspace: Path, env: Mapping[str, str]) -> dict[str, str]:
    """`user.name` and `user.email` from the person's own settings, as far as they are there.

    Runs git, yet no git of the project's and nowhere near it: its own settings do not count.
    """
    folders = [
        folder
        for folder in env.get("PATH", os.defpath).split(os.pathsep)
        if os.path.isabs(folder) and not Path(os.path.realpath(folder)).is_relative_to(workspace)
    ]
    git = shutil.which("git", path=os.pathsep.join(folders))
    if git is None:
        return {}
    words = [git, "config", "--global", "--includes", "--null", "--get-regexp", _WANTED]
    try:
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
            cwd="/",
            env=dict(env),
        )
    except (OSError, subprocess.SubprocessError):
        return {}
    pairs = (entry.partition("\n") for entry in os.fsdecode(done.stdout).split("\0") if entry)
    return {name: value for name, _, value in pairs}
