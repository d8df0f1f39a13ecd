"""The environment a command runs in: what toolchains need, never a secret, never what hijacks a program."""

import re
from collections.abc import Mapping

_NAMES = """
CI PATH HOME LANG LANGUAGE TERM COLORTERM TZ TZDIR USER LOGNAME SHELL TMPDIR TEMP TMP HOSTNAME MANPATH
XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME XDG_RUNTIME_DIR SSL_CERT_FILE SSL_CERT_DIR

VIRTUAL_ENV CONDA_PREFIX CONDA_DEFAULT_ENV PYENV_ROOT PYENV_VERSION UV_CACHE_DIR PIPX_HOME POETRY_HOME
GOPATH GOROOT GOBIN GOCACHE GOMODCACHE GOFLAGS GOOS GOARCH CGO_ENABLED
CARGO_HOME CARGO_TARGET_DIR RUSTUP_HOME RUSTUP_TOOLCHAIN RUST_BACKTRACE RUSTFLAGS
JAVA_HOME JDK_HOME MAVEN_HOME M2_HOME GRADLE_HOME GRADLE_USER_HOME KOTLIN_HOME SDKMAN_DIR ANDROID_HOME
ANDROID_SDK_ROOT
NODE_PATH NODE_ENV NVM_DIR NVM_BIN NPM_CONFIG_PREFIX PNPM_HOME YARN_CACHE_FOLDER DENO_DIR BUN_INSTALL
VOLTA_HOME FNM_DIR ASDF_DIR ASDF_DATA_DIR MISE_DATA_DIR
GEM_HOME GEM_PATH RBENV_ROOT BUNDLE_PATH COMPOSER_HOME DOTNET_ROOT NUGET_PACKAGES
GHCUP_INSTALL_BASE_PREFIX STACK_ROOT CABAL_DIR OPAMROOT OPAM_SWITCH_PREFIX JULIA_DEPOT_PATH R_HOME R_LIBS_USER
CC CXX CPP LD AR CFLAGS CXXFLAGS CPPFLAGS LDFLAGS MAKEFLAGS CMAKE_PREFIX_PATH CMAKE_GENERATOR PKG_CONFIG_PATH
CPATH LIBRARY_PATH CUDA_HOME CUDA_PATH SDKROOT MACOSX_DEPLOYMENT_TARGET DEVELOPER_DIR
HOMEBREW_PREFIX HOMEBREW_CELLAR HOMEBREW_REPOSITORY NIX_PATH NIX_PROFILES NIX_SSL_CERT_FILE
"""
_ALLOWED = frozenset(_NAMES.split())
_SECRET = re.compile(
    "KEY|TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|AUTH|COOKIE|SESSION|PRIVATE|(?:^|_)(?:PASS|PAT|PWD|PIN)(?:_|$)",
    re.IGNORECASE,
)
_FIXED = {
    # `git status` must neither write the index nor start the program a repository's own settings name.
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "core.fsmonitor",
    "GIT_CONFIG_VALUE_0": "false",
    "GIT_TERMINAL_PROMPT": "0",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    # Nobody sits at the command's keyboard: an editor would wait for ever.
    "EDITOR": "false",
    "VISUAL": "false",
    "GIT_EDITOR": "false",
    "GIT_SEQUENCE_EDITOR": "false",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PIP_NO_INPUT": "1",
    "DEBIAN_FRONTEND": "noninteractive",
}


def is_secret_name(name: str) -> bool:
    """Whether a variable of this name may hold a secret. Errs on the side of yes."""
    return _SECRET.search(name) is not None


def child_environment(base: Mapping[str, str]) -> dict[str, str]:
    """The variables of `base` that a command may see, and the fixed ones that keep programs from asking.

    An allow list: a variable it does not name is left out. A name that suggests a secret is left out
    whatever the list says.
    """
    kept = {name: value for name, value in base.items() if _allowed(name) and not is_secret_name(name)}
    return kept | _FIXED


def _allowed(name: str) -> bool:
    return name in _ALLOWED or name.startswith("LC_")
