"""Killed processes and processes at the same time: an entry is whole or not there."""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path, PurePosixPath

import pytest

from sandbox.snapshots import Limits, SnapshotError, Snapshots

P = PurePosixPath

WRITER = """
import sys
from pathlib import Path, PurePosixPath
from sandbox.snapshots import Limits, SnapshotError, Snapshots
root, state, mark, turns = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
snapshots = Snapshots(root, state)
print("ready", flush=True)
for number in range(turns):
    snapshots.begin(f"{mark} {number}")
    snapshots.before([PurePosixPath(f"{mark}-{index}") for index in range(3)])
    for index in range(3):
        (root / f"{mark}-{index}").write_text(f"{mark} {number} {index}" * 100)
    snapshots.finish()
    print(number, flush=True)
"""


def start(root: Path, state: Path, mark: str, turns: int) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(root), str(state), mark, str(turns)],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def fsck(state: Path) -> str:
    (store,) = (state / "snapshots").iterdir()
    command = ["git", f"--git-dir={store}", "fsck", "--strict", "--no-dangling"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("seed", range(6))
def test_a_killed_process_leaves_a_store_that_works(root: Path, tmp_path: Path, seed: int) -> None:
    state = tmp_path / "state"
    delay = random.Random(seed).uniform(0, 0.15)
    with start(root, state, "w", 1000) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        writer.stdout.readline()
        try:
            writer.wait(delay)
        except subprocess.TimeoutExpired:
            writer.send_signal(signal.SIGKILL)
        finished = writer.stdout.read().splitlines()

    snapshots = Snapshots(root, state)
    assert fsck(state) == ""
    undone = 0
    while results := snapshots.undo(force=True):
        assert {result.path for result in results} <= {P(f"w-{index}") for index in range(3)}
        assert all(result.outcome != "conflict" for result in results)
        undone += 1
    assert undone >= len(finished), "every turn that was reported as finished is there"
    assert list(root.iterdir()) == [], "the first turn's entry says that nothing was there before it"
    snapshots.close()


def test_locks_left_by_a_killed_git_do_not_block(root: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    snapshots = Snapshots(root, state)
    snapshots.begin("first")
    snapshots.before([P("f")])
    (root / "f").write_bytes(b"1")
    snapshots.finish()
    (store,) = (state / "snapshots").iterdir()
    (ref,) = (store / "refs/glimmer").iterdir()
    ref.with_name(ref.name + ".lock").write_bytes(b"")
    (store / "packed-refs.lock").write_bytes(b"")
    assert [result.outcome for result in snapshots.undo()] == ["remove"]
    snapshots.close()


def test_two_processes_on_one_project_each_undo_their_own(root: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    mine = Snapshots(root, state)
    mine.begin("mine")
    mine.before([P("mine")])
    (root / "mine").write_bytes(b"1")
    mine.finish()
    with start(root, state, "a", 5) as one, start(root, state, "b", 5) as two:
        for _ in range(5):
            mine.begin("mine")
            mine.before([P("mine")])
            (root / "mine").write_bytes((root / "mine").read_bytes() + b"1")
            mine.finish()
        assert one.wait() == 0
        assert two.wait() == 0
    assert fsck(state) == ""
    for _ in range(6):
        assert {str(result.path) for result in mine.undo()} == {"mine"}
    assert mine.undo() == []
    later = [Snapshots(root, state), Snapshots(root, state)]
    seen = {str(result.path)[0] for other in later for result in other.undo()}
    assert seen == {"a", "b"}
    for other in [mine, *later]:
        other.close()


def test_processes_that_never_recorded_leave_nothing_behind(root: Path, tmp_path: Path) -> None:
    for _ in range(5):
        Snapshots(root, tmp_path / "state").close()
    assert len(list((tmp_path / "state").rglob("*.session"))) == 1


def test_what_other_ended_sessions_keep_goes_first(root: Path, tmp_path: Path) -> None:
    limits = Limits(project=2500)
    sessions = [Snapshots(root, tmp_path / "state", limits) for _ in range(3)]
    for index, session in enumerate(sessions):
        session.begin("turn")
        session.before([P(f"f{index}")])
        (root / f"f{index}").write_bytes(os.urandom(1000))
        if index < 2:
            session.finish()
            session.close()
    sessions[2].finish()
    left = [Snapshots(root, tmp_path / "state", limits) for _ in range(2)]
    assert [[str(result.path) for result in session.undo()] for session in left] == [["f1"], []]
    for session in [*left, sessions[2]]:
        session.close()


def test_a_journal_that_cannot_be_read_is_kept_and_passed_over(root: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    first = Snapshots(root, state)
    first.begin("turn")
    first.before([P("f")])
    (root / "f").write_bytes(b"1")
    first.finish()
    (store,) = (state / "snapshots").iterdir()
    (ref,) = (store / "refs/glimmer").iterdir()
    git = ["git", f"--git-dir={store}", "-c", "user.name=x", "-c", "user.email=x"]
    tree = subprocess.check_output(
        [*git, "rev-parse", f"refs/glimmer/{ref.name}^{{tree}}"], text=True
    ).strip()
    newer = subprocess.check_output([*git, "commit-tree", tree, "-m", '{"format": 99}'], text=True).strip()
    subprocess.check_call([*git, "update-ref", f"refs/glimmer/{ref.name}", newer])
    with pytest.raises(SnapshotError, match="journal"):
        first.undo()
    first.close()

    second = Snapshots(root, state)
    assert second.undo() == []
    assert ref.read_text().strip() == newer
    second.close()
