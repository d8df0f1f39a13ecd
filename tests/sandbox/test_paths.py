import os
import stat
import sys
import threading
import time
from pathlib import Path, PurePosixPath

import pytest

from sandbox.paths import ABSENT, ChangedSince, PathMissing, PathRefused, Workspace

# macOS has no file names that are not UTF-8.
_NOT_UTF8 = ["caf\udce9"] if sys.platform == "linux" else []


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret.txt").write_text("secret")
    return folder


@pytest.fixture
def root(tmp_path: Path, outside: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "a.py").write_text("a = 1\n")
    (folder / "inside").symlink_to("src")
    (folder / "inside.py").symlink_to("src/a.py")
    (folder / "out").symlink_to(outside)
    (folder / "out.txt").symlink_to(outside / "secret.txt")
    (folder / "up").symlink_to("src/../..")
    (folder / "loop").symlink_to("loop2")
    (folder / "loop2").symlink_to("loop")
    (folder / "dangling").symlink_to("nothing")
    (folder / "whole").symlink_to(folder)
    (folder / "sideways").symlink_to("missing/../../outside/secret.txt")
    return folder


@pytest.fixture
def workspace(root: Path) -> Workspace:
    return Workspace(root)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("src/a.py", "src/a.py"),
        ("./src//a.py", "src/a.py"),
        ("src/../src/a.py", "src/a.py"),
        ("src/new/deep.txt", "src/new/deep.txt"),
        (".", "."),
        ("src/", "src"),
        ("inside/a.py", "inside/a.py"),
        ("whole/src/a.py", "whole/src/a.py"),
        ("dangling", "dangling"),
        ("a\nb\u202etxt.exe", "a\nb\u202etxt.exe"),
        *((name, name) for name in _NOT_UTF8),
        ("$HOME; rm -rf *", "$HOME; rm -rf *"),
    ],
)
def test_a_path_inside_is_normalised(workspace: Workspace, path: str, expected: str) -> None:
    found = workspace.locate(path)
    assert found == PurePosixPath(expected)
    assert workspace.locate(str(found)) == found


def test_an_absolute_path_inside_becomes_relative(workspace: Workspace, root: Path) -> None:
    assert workspace.locate(f"{root}/src/a.py") == PurePosixPath("src/a.py")
    assert workspace.locate(f"/{root}/src/a.py") == PurePosixPath("src/a.py")
    assert workspace.locate(str(root)) == PurePosixPath(".")


def test_the_root_is_known_by_the_name_it_was_opened_with(root: Path, tmp_path: Path) -> None:
    alias = tmp_path / "alias"
    alias.symlink_to(root)
    workspace = Workspace(alias)
    assert workspace.root == root
    assert workspace.locate(f"{alias}/src/a.py") == workspace.locate(f"{root}/src/a.py")


@pytest.mark.parametrize(
    "path",
    [
        "",
        "a\0b",
        "..",
        "../project/src/a.py",
        "src/../../outside/secret.txt",
        "/etc/passwd",
        "//etc/passwd",
        "~",
        "~/x",
        "~root/.ssh/id_rsa",
        "out",
        "out/secret.txt",
        "out/../src/../out/new",
        "out.txt",
        "up/outside/secret.txt",
        "sideways",
        "loop",
        "loop/x",
        "whole/out/secret.txt",
        "src/a.py/x",
        "\ud800",
        "x" * 300,
        "/".join(["d"] * 3000),
    ],
)
def test_what_leaves_the_project_or_is_no_path_is_refused(workspace: Workspace, path: str) -> None:
    for operation in (
        workspace.locate,
        workspace.stat,
        workspace.read,
        workspace.fingerprint,
        workspace.real,
    ):
        with pytest.raises(PathRefused) as refusal:
            operation(path)
        assert str(refusal.value).isprintable()
    with pytest.raises(PathRefused):
        workspace.write(path, b"x", ABSENT)


def test_a_folder_whose_name_begins_like_the_root_is_outside(workspace: Workspace, root: Path) -> None:
    Path(f"{root}-other").mkdir()
    with pytest.raises(PathRefused):
        workspace.locate(f"{root}-other/x")


def test_reads_follow_links_that_stay_inside(workspace: Workspace) -> None:
    assert workspace.read("inside/a.py") == b"a = 1\n"
    assert workspace.read("inside.py") == b"a = 1\n"
    assert workspace.real("whole/inside.py") == PurePosixPath("src/a.py")
    assert workspace.fingerprint("inside.py") == workspace.fingerprint("src/a.py")


@pytest.mark.parametrize("path", ["inside/a.py", "inside.py", "whole/src/a.py", "dangling", "inside/new.py"])
def test_changes_never_go_through_a_link(workspace: Workspace, root: Path, path: str) -> None:
    for expected in (ABSENT, workspace.fingerprint("src/a.py")):
        with pytest.raises(PathRefused, match="link"):
            workspace.write(path, b"x", expected)
        with pytest.raises(PathRefused, match="link"):
            workspace.delete(path, expected)
    assert (root / "src" / "a.py").read_text() == "a = 1\n"
    assert os.listdir(root / "src") == ["a.py"]


def test_facts(workspace: Workspace, root: Path) -> None:
    (root / "src" / "a.py").chmod(0o750)
    facts = workspace.stat("src/a.py")
    assert facts is not None
    assert (facts.kind, facts.size, facts.mode, facts.is_link) == ("file", 6, 0o750, False)
    linked = workspace.stat("inside.py")
    assert linked is not None
    assert (linked.kind, linked.is_link) == ("file", True)
    folder, dangling = workspace.stat("src"), workspace.stat("dangling")
    assert folder is not None
    assert folder.kind == "dir"
    assert dangling is not None
    assert (dangling.kind, dangling.is_link) == ("other", True)
    assert workspace.stat("src/none") is None
    assert workspace.stat("none/none") is None
    assert workspace.stat("inside/none") is None


def test_reading_is_bounded_and_streams(workspace: Workspace) -> None:
    assert workspace.read("src/a.py", 3) == b"a ="
    with workspace.open("src/a.py") as file:
        assert file.read(1) + file.read() == b"a = 1\n"
    with pytest.raises(PathMissing):
        workspace.read("src/none")


@pytest.mark.parametrize("path", ["pipe", "src", "/", "."])
def test_only_regular_files_are_opened(workspace: Workspace, root: Path, path: str) -> None:
    os.mkfifo(root / "pipe")
    with pytest.raises(PathRefused):
        workspace.read(path)
    with pytest.raises(PathRefused):
        workspace.write(path, b"x", workspace.fingerprint("pipe"))


def test_fingerprints_tell_states_apart(workspace: Workspace, root: Path) -> None:
    os.mkfifo(root / "pipe")
    (root / "empty").touch()
    states = [workspace.fingerprint(path) for path in ("none", "src/a.py", "empty", "src", "pipe")]
    assert states[0] == ABSENT == workspace.fingerprint("none/deeper")
    assert len(set(states)) == len(states)
    before = workspace.fingerprint("src/a.py")
    (root / "src" / "a.py").write_text("a = 2\n")
    assert workspace.fingerprint("src/a.py") != before


def test_write_creates_a_file_and_its_folders(workspace: Workspace, root: Path) -> None:
    mask = os.umask(0o027)
    try:
        workspace.write("new/deep/b.txt", b"\x00\xff\r\n", ABSENT)
    finally:
        os.umask(mask)
    assert (root / "new/deep/b.txt").read_bytes() == b"\x00\xff\r\n"
    assert stat.S_IMODE((root / "new/deep/b.txt").stat().st_mode) == 0o640
    assert os.listdir(root / "new/deep") == ["b.txt"]


def test_write_keeps_the_mode_and_leaves_hard_links_behind(workspace: Workspace, root: Path) -> None:
    target = root / "src" / "a.py"
    target.chmod(0o755)
    os.link(target, root / "twin")
    workspace.write("src/a.py", b"a = 2\n", workspace.fingerprint("src/a.py"))
    assert stat.S_IMODE(target.stat().st_mode) == 0o755
    assert (target.read_bytes(), (root / "twin").read_bytes()) == (b"a = 2\n", b"a = 1\n")
    assert os.listdir(root / "src") == ["a.py"]


@pytest.mark.parametrize("name", ["a\nb", "\u202egnp.exe", *_NOT_UTF8, "-rf", "con space'\"", "x" * 255])
def test_hard_names_are_written_and_read(workspace: Workspace, root: Path, name: str) -> None:
    workspace.write(f"d/{name}", b"1", ABSENT)
    assert os.listdir(os.fsencode(root / "d")) == [os.fsencode(name)]
    workspace.write(f"d/{name}", b"2", workspace.fingerprint(f"d/{name}"))
    assert workspace.read(f"d/{name}") == b"2"
    workspace.delete(f"d/{name}", workspace.fingerprint(f"d/{name}"))
    assert os.listdir(root / "d") == []


@pytest.mark.parametrize("change", ["edit", "remove", "appear", "folder"])
def test_nothing_is_written_over_a_change(workspace: Workspace, root: Path, change: str) -> None:
    target = root / "src" / "a.py"
    expected = workspace.fingerprint("src/a.py")
    match change:
        case "edit":
            target.write_text("mine")
        case "remove":
            target.unlink()
        case "appear":
            expected = ABSENT
        case _:
            target.unlink()
            target.mkdir()
    state = workspace.fingerprint("src/a.py")
    with pytest.raises(PathRefused) as refusal:
        workspace.write("src/a.py", b"theirs", expected)
    with pytest.raises(PathRefused):
        workspace.delete("src/a.py", expected)
    assert isinstance(refusal.value, ChangedSince) or change == "folder"
    assert workspace.fingerprint("src/a.py") == state
    assert set(os.listdir(root / "src")) <= {"a.py"}


def test_a_refused_write_makes_no_folder(workspace: Workspace, root: Path) -> None:
    with pytest.raises(ChangedSince):
        workspace.write("new/b.txt", b"x", "file:0")
    assert not (root / "new").exists()


def test_delete_removes_a_file_only(workspace: Workspace, root: Path) -> None:
    with pytest.raises(PathRefused, match="folder"):
        workspace.delete("src", workspace.fingerprint("src"))
    with pytest.raises(PathMissing):
        workspace.delete("none", ABSENT)
    workspace.delete("src/a.py", workspace.fingerprint("src/a.py"))
    assert not (root / "src" / "a.py").exists()


@pytest.mark.parametrize(
    "path",
    [
        ".",
        "src/..",
        ".git",
        ".git/config",
        ".git/hooks/pre-commit",
        ".GIT/config",
        ".g\u200cit/config",
        "sub/.git",
        "sub/.git/config",
        ".glimmer/settings.toml",
        "sub/.Glimmer",
    ],
)
def test_protected_places_are_not_changed(workspace: Workspace, root: Path, path: str) -> None:
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("[core]")
    with pytest.raises(PathRefused):
        workspace.check_write(path)
    with pytest.raises(PathRefused):
        workspace.write(path, b"x", workspace.fingerprint(path))
    with pytest.raises(PathRefused):
        workspace.delete(path, workspace.fingerprint(path))
    assert (root / ".git" / "config").read_text() == "[core]"


@pytest.mark.parametrize(
    "path", [".gitignore", ".github/workflows/ci.yml", "git/x", "src/.gitkeep", "glimmer"]
)
def test_neighbours_of_protected_places_are_free(workspace: Workspace, path: str) -> None:
    workspace.check_write(path)
    workspace.write(path, b"x", ABSENT)
    assert workspace.read(path) == b"x"


def test_a_folder_swapped_for_a_link_leads_nowhere(workspace: Workspace, root: Path, outside: Path) -> None:
    path = str(workspace.locate("src/secret.txt"))
    (root / "src").rename(root / "moved")
    (root / "src").symlink_to(outside)
    for operation in (workspace.read, workspace.stat, workspace.fingerprint):
        with pytest.raises(PathRefused):
            operation(path)
    for expected in (ABSENT, workspace.fingerprint("moved/a.py")):
        with pytest.raises(PathRefused):
            workspace.write(path, b"x", expected)
        with pytest.raises(PathRefused):
            workspace.delete(path, expected)
    assert {file.name: file.read_text() for file in outside.iterdir()} == {"secret.txt": "secret"}


def test_swapping_all_the_while_never_leads_outside(workspace: Workspace, root: Path, outside: Path) -> None:
    (root / "link").symlink_to(outside)
    (root / "src" / "secret.txt").write_text("public")
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            (root / "src").rename(root / "aside")
            (root / "link").rename(root / "src")
            (root / "src").rename(root / "link")
            (root / "aside").rename(root / "src")
            time.sleep(0.0005)  # the real folder stays long enough for some of the writes to go through

    swapper = threading.Thread(target=swap)
    swapper.start()
    wrote = 0
    try:
        for number in range(600):
            try:
                assert workspace.read("src/secret.txt").startswith(b"public")
                expected = workspace.fingerprint("src/secret.txt")
                if expected != ABSENT:
                    workspace.write("src/secret.txt", f"public {number}".encode(), expected)
                    wrote += 1
            except PathRefused:
                continue
    finally:
        done.set()
        swapper.join()
    assert wrote > 0
    assert {file.name: file.read_text() for file in outside.iterdir()} == {"secret.txt": "secret"}


def test_a_replaced_project_folder_is_refused(workspace: Workspace, root: Path, outside: Path) -> None:
    root.rename(root.with_name("elsewhere"))
    root.symlink_to(outside)
    with pytest.raises(PathRefused):
        workspace.read("secret.txt")
    root.unlink()
    root.mkdir()
    with pytest.raises(PathRefused, match="moved or replaced"):
        workspace.write("x", b"x", ABSENT)


def test_a_root_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in ("file", "none"):
        with pytest.raises(PathRefused):
            Workspace(tmp_path / path)


def test_no_descriptor_is_left_open(workspace: Workspace) -> None:
    def count() -> int:
        return len(os.listdir("/dev/fd"))

    def use() -> None:
        for path in (
            "src/a.py",
            "inside/a.py",
            "whole/whole/src/a.py",
            "out/x",
            "loop",
            "none/none",
            "src/a.py/x",
        ):
            for operation in (workspace.read, workspace.stat, workspace.fingerprint, workspace.locate):
                try:
                    operation(path)
                except PathRefused:
                    continue

    use()
    before = count()
    use()
    assert count() == before
