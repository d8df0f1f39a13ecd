"""Folders below the home folder that hold tools, and those that never are shown to a command."""

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

_PRIVATE = """
.ssh .gnupg .aws .azure .gcloud .kube .docker .config .password-store .mozilla .thunderbird .terraform.d
.netrc .pgpass .npmrc .pypirc .git-credentials .vault-token .bash_history .zsh_history .python_history
.pki keyrings .1password .electrum .bitcoin .claude .codex .gemini .glimmer
"""
PRIVATE = frozenset(_PRIVATE.split())
"""Names that are never shown, wherever in the home folder: keys, tokens, histories, settings."""

_TOOLS = """
.cargo/bin .rustup .local/bin .local/lib .local/share/uv .local/share/pipx .local/share/pnpm .local/share/mise
.local/share/fnm .local/share/virtualenvs .local/share/python .pyenv .virtualenvs .cache/pypoetry/virtualenvs
.nvm .config/nvm/versions .volta .fnm .nodenv .npm-global .deno/bin .bun/bin .bun/install/global .asdf .mise
.rbenv .rvm .gem/ruby .sdkman .jenv .goenv go/bin sdk .ghcup .cabal/bin .opam .juliaup .julia .dotnet .elan
.swiftly .konan miniconda3 anaconda3 miniforge3 mambaforge .cache/ms-playwright .cache/puppeteer
"""

CACHES = (
    ".cargo/registry",
    ".cargo/git",
    "go/pkg/mod",
    ".m2/repository",
    ".gradle/caches",
    ".gradle/wrapper",
    ".nuget/packages",
)
"""What package managers downloaded before, below the home folder: without it nothing builds offline."""

_PREFIX_SIGNS = ("lib", "libexec", "conda-meta", "pyvenv.cfg")
_SHARED_PARENTS = (".", ".local", ".cargo", "go")


def tool_folders(homes: tuple[Path, ...], env: Mapping[str, str]) -> Iterator[Path]:
    """Existing folders that tools need: well-known ones, this Python's, and what the person's PATH names.

    The environment is the person's own, yet nothing in it makes a private folder or a whole home visible.
    """
    yield from (folder for home in homes for name in _TOOLS.split() if (folder := home / name).is_dir())
    for folder in _named(homes, env):
        if any(home.is_relative_to(folder) for home in homes) or PRIVATE.intersection(folder.parts):
            continue
        if folder.is_dir():
            yield folder


def _named(homes: tuple[Path, ...], env: Mapping[str, str]) -> Iterator[Path]:
    yield from (Path(sys.prefix), Path(sys.base_prefix))
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX", "RUSTUP_HOME", "GOROOT", "JAVA_HOME"):
        if os.path.isabs(value := env.get(name, "")):
            yield Path(os.path.normpath(value))
    for entry in env.get("PATH", "").split(os.pathsep):
        if os.path.isabs(entry):
            yield _prefix(Path(os.path.normpath(entry)), homes)


def _prefix(folder: Path, homes: tuple[Path, ...]) -> Path:
    """The folder that a program in this folder of programs comes with, when it looks like one of its own."""
    above = folder.parent
    shared = any(above == home / name for home in homes for name in _SHARED_PARENTS)
    if folder.name != "bin" or shared or not any((above / sign).exists() for sign in _PREFIX_SIGNS):
        return folder
    return above
