"""Undo and redo of a turn's files, against a real store and real files."""

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest

from sandbox.snapshots import FileDelta, Limits, Restored, SnapshotError, Snapshots, SnapshotsUnavailable

P = PurePosixPath


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def snapshots(root: Path, state: Path) -> Iterator[Snapshots]:
    opened = Snapshots(root, state)
    yield opened
    opened.close()


def turn(snapshots: Snapshots, root: Path, writes: dict[str, bytes | None], name: str = "a turn") -> None:
    """One turn that writes, or with None deletes, each path."""
    snapshots.begin(name)
    for path, content in writes.items():
        assert snapshots.before([P(path)]) == ()
        if content is None:
            (root / path).unlink()
        else:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(content)
    snapshots.finish()


def outcomes(results: list[Restored]) -> dict[str, str]:
    return {str(result.path): result.outcome for result in results}


def test_an_edit_is_undone_and_redone_byte_for_byte(snapshots: Snapshots, root: Path) -> None:
    original = b"\xef\xbb\xbfone\r\ntwo\0\xff"
    (root / "a.txt").write_bytes(original)
    turn(snapshots, root, {"a.txt": b"new"})

    assert outcomes(snapshots.preview_undo()) == {"a.txt": "write"}
    assert (root / "a.txt").read_bytes() == b"new"
    assert outcomes(snapshots.undo()) == {"a.txt": "write"}
    assert (root / "a.txt").read_bytes() == original
    assert outcomes(snapshots.preview_redo()) == {"a.txt": "write"}
    assert outcomes(snapshots.redo()) == {"a.txt": "write"}
    assert (root / "a.txt").read_bytes() == b"new"


def test_new_and_deleted_files_come_and_go_with_their_folders(snapshots: Snapshots, root: Path) -> None:
    (root / "old.txt").write_bytes(b"old")
    turn(snapshots, root, {"deep/er/new.txt": b"new", "old.txt": None})

    assert outcomes(snapshots.undo()) == {"deep/er/new.txt": "remove", "old.txt": "write"}
    assert sorted(path.name for path in root.iterdir()) == ["old.txt"]
    snapshots.redo()
    assert (root / "deep/er/new.txt").read_bytes() == b"new"
    assert not (root / "old.txt").exists()


def test_a_folder_that_holds_something_else_stays(snapshots: Snapshots, root: Path) -> None:
    turn(snapshots, root, {"made/new.txt": b"new"})
    (root / "made/mine.txt").write_bytes(b"mine")
    snapshots.undo()
    assert [path.name for path in (root / "made").iterdir()] == ["mine.txt"]


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o664, 0o755, 0o444])
def test_permission_bits_come_back(snapshots: Snapshots, root: Path, mode: int) -> None:
    script = root / "run.sh"
    script.write_bytes(b"#!/bin/sh\n")
    script.chmod(mode)
    snapshots.begin("chmod")
    snapshots.before([P("run.sh")])
    script.chmod(0o700)
    snapshots.finish()
    snapshots.undo()
    assert stat.S_IMODE(script.stat().st_mode) == mode
    snapshots.redo()
    assert stat.S_IMODE(script.stat().st_mode) == 0o700


def test_a_link_is_restored_as_a_link_and_never_followed(
    snapshots: Snapshots, root: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_bytes(b"not yours")
    (root / "link").symlink_to(outside)
    snapshots.begin("replace a link")
    snapshots.before([P("link")])
    (root / "link").unlink()
    (root / "link").write_bytes(b"a file now")
    snapshots.finish()

    assert outcomes(snapshots.undo()) == {"link": "write"}
    assert os.readlink(root / "link") == str(outside)
    snapshots.redo()
    assert not (root / "link").is_symlink()
    assert (root / "link").read_bytes() == b"a file now"
    assert outside.read_bytes() == b"not yours"


def test_a_file_the_person_changed_since_is_left_alone_until_they_insist(
    snapshots: Snapshots, root: Path
) -> None:
    (root / "a").write_bytes(b"a0")
    (root / "b").write_bytes(b"b0")
    turn(snapshots, root, {"a": b"a1", "b": b"b1"})
    (root / "b").write_bytes(b"mine")

    assert outcomes(snapshots.preview_undo()) == {"a": "write", "b": "conflict"}
    results = snapshots.undo()
    assert outcomes(results) == {"a": "write", "b": "conflict"}
    assert results[1].reason == "it was changed since"
    assert (root / "a").read_bytes() == b"a0"
    assert (root / "b").read_bytes() == b"mine"

    assert outcomes(snapshots.undo()) == {"a": "unchanged", "b": "conflict"}
    assert outcomes(snapshots.undo(force=True)) == {"a": "unchanged", "b": "write"}
    assert (root / "b").read_bytes() == b"b0"
    snapshots.redo()
    assert (root / "b").read_bytes() == b"mine", "what was overwritten on demand comes back"


def test_a_turn_in_conflict_can_be_passed_over(snapshots: Snapshots, root: Path) -> None:
    (root / "a").write_bytes(b"a0")
    turn(snapshots, root, {"a": b"a1"})
    turn(snapshots, root, {"b": b"b1"})
    (root / "b").write_bytes(b"mine")
    assert outcomes(snapshots.undo()) == {"b": "conflict"}
    snapshots.leave()
    assert outcomes(snapshots.undo()) == {"a": "write"}
    assert (root / "b").read_bytes() == b"mine"


def test_deletions_folders_and_links_in_the_way_are_conflicts(
    snapshots: Snapshots, root: Path, tmp_path: Path
) -> None:
    for name in ("gone", "folder", "link"):
        (root / name).write_bytes(b"0")
    turn(snapshots, root, {"gone": b"1", "folder": b"1", "link": b"1", "sub/behind": b"1"})
    for name in ("gone", "folder", "link", "sub/behind"):
        (root / name).unlink()
    (root / "folder").mkdir()
    (root / "link").symlink_to("/etc/passwd")
    (root / "sub").rmdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/behind").write_bytes(b"1")
    (root / "sub").symlink_to(tmp_path / "elsewhere")

    reasons = {str(result.path): result.reason for result in snapshots.undo()}
    assert reasons == {
        "gone": "it was deleted since",
        "folder": "it is a folder now",
        "link": "it is another link now",
        "sub/behind": "it is behind a file or a link that is no folder now",
    }
    forced = outcomes(snapshots.undo(force=True))
    assert forced == {"gone": "write", "folder": "conflict", "link": "write", "sub/behind": "conflict"}
    assert (tmp_path / "elsewhere/behind").read_bytes() == b"1"


def test_a_folder_the_turn_left_in_a_files_place_is_not_removed(snapshots: Snapshots, root: Path) -> None:
    (root / "f").write_bytes(b"0")
    snapshots.begin("a folder for a file")
    snapshots.before([P("f")])
    (root / "f").unlink()
    (root / "f").mkdir()
    snapshots.finish()
    assert outcomes(snapshots.undo(force=True)) == {"f": "conflict"}
    (root / "f").rmdir()
    assert outcomes(snapshots.undo(force=True)) == {"f": "write"}
    assert (root / "f").read_bytes() == b"0"


def test_the_stack_goes_back_over_many_turns_and_a_new_turn_ends_redo(
    snapshots: Snapshots, root: Path
) -> None:
    (root / "f").write_bytes(b"0")
    for number in range(1, 6):
        turn(snapshots, root, {"f": str(number).encode()})
    for number in range(4, 0, -1):
        snapshots.undo()
        assert (root / "f").read_bytes() == str(number).encode()
    turn(snapshots, root, {"f": b"other"})
    assert snapshots.redo() == []
    snapshots.undo()
    snapshots.undo()
    assert (root / "f").read_bytes() == b"0"
    assert snapshots.undo() == []
    assert snapshots.preview_undo() == []


def test_the_first_state_of_a_turn_counts_and_paths_can_join_later(snapshots: Snapshots, root: Path) -> None:
    (root / "a").write_bytes(b"first")
    snapshots.begin("several writes")
    snapshots.before([P("a")])
    (root / "a").write_bytes(b"second")
    snapshots.before([P("a"), P("b")])
    (root / "a").write_bytes(b"third")
    (root / "b").write_bytes(b"new")
    info = snapshots.finish()
    assert info is not None
    assert info.paths == (P("a"), P("b"))
    assert info.turn == "several writes"
    snapshots.undo()
    assert (root / "a").read_bytes() == b"first"
    assert not (root / "b").exists()


def test_a_turn_that_changed_nothing_leaves_no_entry_and_keeps_redo(snapshots: Snapshots, root: Path) -> None:
    (root / "f").write_bytes(b"0")
    turn(snapshots, root, {"f": b"1"})
    snapshots.undo()
    snapshots.begin("only reads")
    assert snapshots.finish() is None
    snapshots.begin("writes the same")
    snapshots.before([P("f")])
    (root / "f").write_bytes(b"0")
    assert snapshots.finish() is None
    assert outcomes(snapshots.redo()) == {"f": "write"}


def test_only_touched_paths_are_restored(snapshots: Snapshots, root: Path) -> None:
    (root / "mine").write_bytes(b"0")
    turn(snapshots, root, {"agent": b"1"})
    (root / "mine").write_bytes(b"edited by hand")
    snapshots.undo()
    assert (root / "mine").read_bytes() == b"edited by hand"


def test_changes_span_the_conversation(snapshots: Snapshots, root: Path) -> None:
    (root / "a").write_bytes(b"a0")
    (root / "gone").write_bytes(b"g")
    turn(snapshots, root, {"a": b"a1", "gone": None})
    turn(snapshots, root, {"a": b"a2", "new": b"n", "back": b"x"})
    turn(snapshots, root, {"back": None})
    assert snapshots.changes() == [
        FileDelta(P("a"), b"a0", b"a2"),
        FileDelta(P("gone"), b"g", None),
        FileDelta(P("new"), None, b"n"),
    ]
    snapshots.start_conversation()
    assert snapshots.changes() == []
    snapshots.begin("still running")
    snapshots.before([P("a")])
    (root / "a").write_bytes(b"a3")
    assert snapshots.changes() == [FileDelta(P("a"), b"a2", b"a3")]
    snapshots.finish()
    snapshots.undo()
    assert snapshots.changes() == []
    snapshots.undo()
    snapshots.undo()
    assert (root / "a").read_bytes() == b"a1", "an earlier conversation can still be undone"


def test_the_stack_survives_a_restart(root: Path, state: Path) -> None:
    (root / "f").write_bytes(b"0")
    first = Snapshots(root, state)
    turn(first, root, {"f": b"1"})
    turn(first, root, {"f": b"2"})
    first.undo()
    first.close()

    second = Snapshots(root, state)
    assert second.changes() == [FileDelta(P("f"), b"0", b"1")]
    second.redo()
    assert (root / "f").read_bytes() == b"2"
    second.undo()
    second.undo()
    assert (root / "f").read_bytes() == b"0"
    second.close()


def test_a_turn_that_was_cut_short_can_be_undone_but_not_silently(root: Path, state: Path) -> None:
    (root / "f").write_bytes(b"0")
    first = Snapshots(root, state)
    first.begin("killed in the middle")
    first.before([P("f"), P("never-written")])
    (root / "f").write_bytes(b"1")
    first.close()

    second = Snapshots(root, state)
    assert outcomes(second.undo()) == {"f": "conflict", "never-written": "unchanged"}
    assert (root / "f").read_bytes() == b"1"
    second.undo(force=True)
    assert (root / "f").read_bytes() == b"0"
    second.redo()
    assert (root / "f").read_bytes() == b"1"
    second.close()


def test_a_turn_that_was_never_closed_is_still_there_after_the_next(snapshots: Snapshots, root: Path) -> None:
    snapshots.begin("never finished")
    snapshots.before([P("a")])
    (root / "a").write_bytes(b"1")
    turn(snapshots, root, {"b": b"1"})
    assert outcomes(snapshots.undo()) == {"b": "remove"}
    assert outcomes(snapshots.undo()) == {"a": "conflict"}
    assert outcomes(snapshots.undo(force=True)) == {"a": "remove"}


def test_a_turn_that_writes_nothing_needs_no_store(snapshots: Snapshots, root: Path, state: Path) -> None:
    shutil.rmtree(state)
    snapshots.begin("only reads " * 100_000)
    assert snapshots.finish() is None
    with pytest.raises(RuntimeError):
        snapshots.before([P("f")])


def test_undo_waits_for_the_turn_to_end(snapshots: Snapshots, root: Path) -> None:
    snapshots.begin("running")
    snapshots.before([P("f")])
    (root / "f").write_bytes(b"1")
    with pytest.raises(SnapshotError, match="still changing"):
        snapshots.undo()
    snapshots.finish()
    assert outcomes(snapshots.undo()) == {"f": "remove"}


NAMES = [
    "-rf",
    "new\nline",
    "tab\there",
    "é ü 漢字 🙂",
    'quo"te',
    "back\\slash",
    " lead",
    "..x",
    os.fsdecode(b"\xff\xfe"),
]


@pytest.mark.parametrize("name", NAMES)
def test_unusual_names(snapshots: Snapshots, root: Path, name: str) -> None:
    (root / name).write_bytes(b"0")
    turn(snapshots, root, {name: b"1", f"{name}.d/{name}": b"2"})
    snapshots.undo()
    assert (root / name).read_bytes() == b"0"
    assert os.listdir(root) == [name]


def test_paths_that_lead_out_of_the_project_are_refused(
    snapshots: Snapshots, root: Path, tmp_path: Path
) -> None:
    (tmp_path / "out").mkdir()
    (root / "way-out").symlink_to(tmp_path / "out")
    (root / "folder").mkdir()
    os.mkfifo(root / "pipe")
    (root / "loop").symlink_to("loop")
    snapshots.begin("bad paths")
    asked = [
        P("../x"),
        P("/etc/passwd"),
        P("way-out/x"),
        P("folder"),
        P("pipe"),
        P("a/../../x"),
        P("loop/x"),
        P("n" * 300),
        P("nul\0"),
    ]
    refused = snapshots.before(asked)
    assert [item.path for item in refused] == asked
    assert all(item.reason for item in refused)
    assert snapshots.finish() is None


def test_a_linked_folder_inside_the_project_names_the_real_file(snapshots: Snapshots, root: Path) -> None:
    (root / "src").mkdir()
    (root / "src/f").write_bytes(b"0")
    (root / "alias").symlink_to("src")
    turn(snapshots, root, {"alias/f": b"1"})
    assert outcomes(snapshots.undo()) == {"src/f": "write"}
    assert (root / "alias").is_symlink()


def test_a_file_over_the_limit_is_said_and_never_half_restored(root: Path, state: Path) -> None:
    snapshots = Snapshots(root, state, Limits(file=10))
    (root / "big").write_bytes(b"x" * 11)
    (root / "small").write_bytes(b"s" * 10)
    snapshots.begin("writes both")
    (refused,) = snapshots.before([P("big"), P("small")])
    assert refused.path == P("big")
    assert "11 bytes" in refused.reason
    assert [item.path for item in snapshots.before([P("big")])] == [P("big")]
    (root / "big").write_bytes(b"cut")
    (root / "small").write_bytes(b"grown beyond the limit")
    info = snapshots.finish()
    assert info is not None
    assert [item.path for item in info.unrecorded] == [P("big")]
    assert {(delta.path, delta.note) for delta in snapshots.changes()} == {
        (P("big"), "it was too large to be recorded"),
        (P("small"), "it is too large to be shown now"),
    }
    assert outcomes(snapshots.undo()) == {"big": "unrecorded", "small": "write"}
    assert (root / "big").read_bytes() == b"cut"
    assert (root / "small").read_bytes() == b"s" * 10
    assert outcomes(snapshots.redo()) == {"big": "unchanged", "small": "unrecorded"}
    snapshots.close()


def test_a_change_too_large_to_keep_is_not_overwritten_even_on_demand(root: Path, state: Path) -> None:
    snapshots = Snapshots(root, state, Limits(file=10))
    (root / "f").write_bytes(b"0")
    turn(snapshots, root, {"f": b"1"})
    (root / "f").write_bytes(b"m" * 11)
    assert outcomes(snapshots.undo(force=True)) == {"f": "conflict"}
    assert (root / "f").read_bytes() == b"m" * 11
    snapshots.close()


def test_the_oldest_turns_go_when_the_project_has_too_much(root: Path, state: Path) -> None:
    snapshots = Snapshots(root, state, Limits(project=3000))
    for number in range(8):
        turn(snapshots, root, {"f": os.urandom(1000), f"new{number}": b""})
    undone = 0
    while snapshots.undo():
        undone += 1
    assert undone == 2
    kept = sum(path.stat().st_size for path in state.rglob("objects/??/*") if path.stat().st_size > 900)
    assert kept < 4000, "what is not needed is deleted from the disk"
    snapshots.close()


def test_only_so_many_turns_are_kept(root: Path, state: Path) -> None:
    snapshots = Snapshots(root, state, Limits(turns=3))
    for number in range(5):
        turn(snapshots, root, {"f": str(number).encode()})
    assert [bool(snapshots.undo()) for _ in range(4)] == [True, True, True, False]
    assert (root / "f").read_bytes() == b"1"
    snapshots.close()


def test_a_damaged_copy_is_not_restored(snapshots: Snapshots, root: Path, state: Path) -> None:
    (root / "f").write_bytes(b"original")
    turn(snapshots, root, {"f": b"changed"})
    for path in state.rglob("objects/??/*"):
        path.chmod(0o600)
        path.write_bytes(b"damage")
    with pytest.raises(SnapshotError):
        snapshots.undo()
    assert (root / "f").read_bytes() == b"changed"


def test_a_home_folder_and_the_whole_disk_are_refused(
    tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "people/ann"))
    (tmp_path / "people/ann/project").mkdir(parents=True)
    for folder in (Path("/"), tmp_path / "people/ann", tmp_path / "people"):
        with pytest.raises(SnapshotsUnavailable) as caught:
            Snapshots(folder, state)
        assert caught.value.what and caught.value.why and caught.value.todo
    Snapshots(tmp_path / "people/ann/project", state).close()
    with pytest.raises(SnapshotsUnavailable):
        Snapshots(tmp_path / "nowhere", state)


def test_without_git_it_says_what_to_do(root: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(root / "empty"))
    with pytest.raises(SnapshotsUnavailable) as caught:
        Snapshots(root, state)
    assert "git was not found" in caught.value.why
    assert "Install git" in caught.value.todo


def test_a_git_that_comes_with_the_project_is_never_run(
    root: Path, state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = root / "bin/git"
    fake.parent.mkdir()
    fake.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")
    with pytest.raises(SnapshotsUnavailable, match="trusted"):
        Snapshots(root, state)
    assert not (tmp_path / "ran").exists()


def test_a_state_folder_that_cannot_be_made_is_said(root: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(SnapshotsUnavailable) as caught:
        Snapshots(root, tmp_path / "file")
    assert caught.value.todo


def test_copies_are_readable_by_their_owner_alone(snapshots: Snapshots, state: Path) -> None:
    (store,) = (state / "snapshots").iterdir()
    assert stat.S_IMODE(store.stat().st_mode) == 0o700


def test_a_store_that_is_broken_says_so_at_the_start(root: Path, state: Path) -> None:
    Snapshots(root, state).close()
    (store,) = (state / "snapshots").iterdir()
    (store / "config").write_text("[core\n")
    with pytest.raises(SnapshotsUnavailable) as caught:
        Snapshots(root, state)
    assert caught.value.why and caught.value.todo
