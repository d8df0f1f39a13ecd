"""The person's repository stays as it was, byte for byte, whatever state it is in."""

import hashlib
import os
import subprocess
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import pytest

from sandbox.snapshots import Snapshots

P = PurePosixPath
PLAIN = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_AUTHOR_NAME": "Ann",
    "GIT_AUTHOR_EMAIL": "ann@example.org",
    "GIT_COMMITTER_NAME": "Ann",
    "GIT_COMMITTER_EMAIL": "ann@example.org",
}


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-c", "protocol.file.allow=always", *arguments]
    return subprocess.run(command, cwd=folder, env=PLAIN, check=True, capture_output=True, text=True).stdout


def fingerprint(folder: Path) -> dict[str, tuple[int, int, str]]:
    """Every entry below a folder: mode, modification time and content."""
    found: dict[str, tuple[int, int, str]] = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[str(path.relative_to(folder))] = (status.st_mode, status.st_mtime_ns, content)
    return found


def committed(folder: Path, *init: str) -> Path:
    """A repository with a commit, a branch, a stash, a staged change and a changed file."""
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main", *init)
    (folder / ".gitignore").write_text("ignored\n")
    (folder / "tracked").write_bytes(b"committed\r\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    git(folder, "branch", "side")
    (folder / "tracked").write_bytes(b"stashed\n")
    git(folder, "stash", "-q")
    (folder / "staged").write_bytes(b"staged")
    git(folder, "add", "staged")
    (folder / "tracked").write_bytes(b"dirty\r\n\0\xff")
    return folder


def dirty(base: Path) -> Path:
    return committed(base / "r")


def unborn(base: Path) -> Path:
    (base / "r").mkdir()
    git(base / "r", "init", "-q", "-b", "main")
    (base / "r/tracked").write_bytes(b"never committed")
    return base / "r"


def detached(base: Path) -> Path:
    folder = committed(base / "r")
    git(folder, "checkout", "-q", "--detach")
    return folder


def sha256_objects(base: Path) -> Path:
    return committed(base / "r", "--object-format=sha256")


def worktree(base: Path) -> Path:
    committed(base / "r")
    git(base / "r", "worktree", "add", "-q", str(base / "w"), "side")
    return base / "w"


def subfolder(base: Path) -> Path:
    folder = committed(base / "r") / "sub/folder"
    folder.mkdir(parents=True)
    (folder / "tracked").write_bytes(b"below the top")
    return folder


def submodule(base: Path) -> Path:
    committed(base / "library")
    git(committed(base / "r"), "submodule", "--quiet", "add", str(base / "library"), "lib")
    return base / "r/lib"


def read_only_git(base: Path) -> Path:
    folder = committed(base / "r")
    for path in [folder / ".git", *(folder / ".git").rglob("*")]:
        path.chmod(path.stat().st_mode & ~0o222)
    return folder


def filters_and_hooks(base: Path) -> Path:
    """Attributes, filters, hooks and a file-system monitor that would all leave a trace if they ran."""
    folder = committed(base / "r")
    trap = base / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {base}/sprung\ncat\n")
    trap.chmod(0o755)
    (folder / ".gitattributes").write_text("* text=auto eol=lf filter=trap diff=trap\n")
    for key in (
        "filter.trap.clean",
        "filter.trap.smudge",
        "diff.trap.command",
        "core.fsmonitor",
        "diff.external",
    ):
        git(folder, "config", key, str(trap))
    for hook in ("post-index-change", "reference-transaction", "pre-auto-gc", "post-commit"):
        (folder / ".git/hooks" / hook).write_bytes(trap.read_bytes())
        (folder / ".git/hooks" / hook).chmod(0o755)
    return folder


def no_repository(base: Path) -> Path:
    (base / "r").mkdir()
    (base / "r/tracked").write_bytes(b"just a folder")
    return base / "r"


REPOSITORIES = [
    dirty, unborn, detached, sha256_objects, worktree, subfolder, submodule, read_only_git, filters_and_hooks,
    no_repository,
]  # fmt: skip


@pytest.mark.parametrize("make", REPOSITORIES)
def test_a_whole_life_of_turns_leaves_the_repository_alone(
    make: Callable[[Path], Path], tmp_path: Path
) -> None:
    base = tmp_path / "base"
    base.mkdir()
    root = make(base)
    (root / "ignored").write_bytes(b"build output")
    (root / "untracked").write_bytes(b"\0\1\2binary")
    before = fingerprint(base)
    names = ["tracked", "ignored", "untracked", "brand-new"]

    snapshots = Snapshots(root, tmp_path / "state")
    for number in range(2):
        snapshots.begin(f"turn {number}")
        assert snapshots.before([P(name) for name in names]) == ()
        for name in names:
            (root / name).write_bytes(f"{name} {number}\r\n".encode())
        assert snapshots.finish() is not None
    assert len(snapshots.changes()) == 4
    snapshots.undo()
    snapshots.redo()
    snapshots.undo()
    assert {result.outcome for result in snapshots.undo()} == {"write", "remove"}
    snapshots.close()

    assert without_times(fingerprint(base), root, names) == without_times(before, root, names)
    assert not (base / "sprung").exists()


def without_times(
    found: dict[str, tuple[int, int, str]], root: Path, names: list[str]
) -> dict[str, tuple[int, int, str]]:
    """Restored files, and the folder they lie in, have a new modification time; nothing else may."""
    restored = [root, *(root / name for name in names)]
    return {
        path: (mode, 0 if any(str(item).endswith(f"/base/{path}") for item in restored) else when, content)
        for path, (mode, when, content) in found.items()
    }


def test_variables_and_settings_of_the_person_have_no_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = committed(tmp_path / "r")
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(
        "[core]\n\tautocrlf = input\n\thooksPath = /nonexistent\n"
        "[commit]\n\tgpgSign = true\n[user]\n\tuseConfigOnly = true\n"
    )
    before = fingerprint(root / ".git")
    monkeypatch.setenv("HOME", str(home))
    for variable, value in {
        "GIT_DIR": root / ".git",
        "GIT_WORK_TREE": root,
        "GIT_INDEX_FILE": root / ".git/index",
        "GIT_OBJECT_DIRECTORY": root / ".git/objects",
        "GIT_NAMESPACE": "elsewhere",
        "GIT_TRACE2_EVENT": tmp_path / "trace",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.compression",
        "GIT_CONFIG_VALUE_0": "nonsense",
        "GIT_EXEC_PATH": tmp_path,
    }.items():
        monkeypatch.setenv(variable, str(value))

    snapshots = Snapshots(root, tmp_path / "state")
    snapshots.begin("turn")
    snapshots.before([P("tracked")])
    (root / "tracked").write_bytes(b"changed")
    snapshots.finish()
    snapshots.undo()
    snapshots.close()

    assert (root / "tracked").read_bytes() == b"dirty\r\n\0\xff"
    assert fingerprint(root / ".git") == before
    assert not list((tmp_path / "state").rglob("elsewhere"))


def test_a_garbage_collection_of_the_store_loses_nothing(tmp_path: Path) -> None:
    root = committed(tmp_path / "r")
    snapshots = Snapshots(root, tmp_path / "state")
    for number in range(3):
        snapshots.begin("turn")
        snapshots.before([P("tracked")])
        (root / "tracked").write_bytes(str(number).encode())
        snapshots.finish()
    (store,) = (tmp_path / "state/snapshots").iterdir()
    git(store, "gc", "-q", "--prune=now")
    git(store, "pack-refs", "--all")
    for _ in range(3):
        assert [result.outcome for result in snapshots.undo()] == ["write"]
    assert (root / "tracked").read_bytes() == b"dirty\r\n\0\xff"
    assert git(store, "fsck", "--strict", "--no-dangling") == ""
    snapshots.close()
