"""Which paths look like secrets, and which are not ordinary files of a project. Judged by name alone."""

import re
from fnmatch import translate
from functools import cache
from itertools import pairwise
from pathlib import PurePosixPath

_SECRET_FOLDERS = frozenset({".ssh", ".aws", ".gnupg", ".kube", ".azure", ".gcloud", ".password-store"})
_SECRET_NAMES = (
    ".env",
    ".env.*",
    "*.env",
    ".envrc",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    "*.ovpn",
    "*.ppk",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    ".netrc",
    "_netrc",
    ".pgpass",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".htpasswd",
    "credentials",
    "credentials.*",
    ".credentials*",
    "secrets",
    "secrets.*",
    "*secret*.json",
    "service-account*.json",
    "client_secret*",
    "shadow",
    "gshadow",
    "*_history",
)
_SOURCE_ENDS = (".py", ".pyi", ".js", ".ts", ".tsx", ".go", ".rs", ".java", ".c", ".h", ".cpp", ".md", ".rst")
_HARMLESS_ENDS = (".pub", ".example", ".sample", ".template", ".dist")
_SECRET_PAIRS = frozenset(
    {(".git", "config"), (".docker", "config.json"), ("gh", "hosts.yml"), (".config", "gcloud")}
)

_PROTECTED_FOLDERS = frozenset(
    {".git", ".glimmer", ".vscode", ".idea", ".devcontainer", ".husky", ".githooks"}
)
_PROTECTED_NAMES = frozenset(
    {
        ".gitmodules",
        ".gitattributes",
        ".gitconfig",
        ".bashrc",
        ".bash_profile",
        ".profile",
        ".zshrc",
        ".envrc",
    }
)


def _names(path: str) -> list[str]:
    return [part.casefold() for part in PurePosixPath(path.replace("\\", "/")).parts]


def _secret_name(name: str) -> bool:
    if name.endswith(_HARMLESS_ENDS) or name.endswith(_SOURCE_ENDS):
        return False
    return _secret_names().fullmatch(name) is not None


@cache
def _secret_names() -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{translate(pattern)})" for pattern in _SECRET_NAMES))


def looks_secret(path: str) -> bool:
    """Whether a path names what usually holds keys, passwords or tokens. Letter case does not matter."""
    names = _names(path)
    if any(name in _SECRET_FOLDERS for name in names):
        return True
    if any(pair in _SECRET_PAIRS for pair in pairwise(names)):
        return True
    return any(_secret_name(name) for name in names)


def ends_like_source(pattern: str) -> bool:
    """Whether all that a name or a plain glob stands for are source files, whose names never look secret."""
    return pattern.casefold().endswith(_SOURCE_ENDS) and not any(char in pattern for char in "[{")


def is_protected(path: str) -> bool:
    """Whether a file steers git, the editor or the shell, so that writing it can run code later."""
    names = _names(path)
    return any(name in _PROTECTED_FOLDERS for name in names) or bool(names and names[-1] in _PROTECTED_NAMES)
