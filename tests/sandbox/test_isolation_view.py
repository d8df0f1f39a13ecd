"""What a command sees of the file system, decided before anything starts."""

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.isolation.bubblewrap import bubblewrap
from sandbox.isolation.git_folders import GitFolders, git_folders
from sandbox.isolation.guarded import guarded
from sandbox.isolation.landlock import landlock
from sandbox.isolation.private_folder import PrivateFolder, clear_the_way
from sandbox.isolation.seatbelt import seatbelt
from sandbox.isolation.steering import changed, steering
from sandbox.isolation.tool_folders import PRIVATE, tool_folders
from sandbox.isolation.view import NoView, View, look


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for name in (
        ".ssh",
        ".cargo/bin",
        ".cargo/registry/src",
        ".nvm/versions",
        ".config/nvm/versions",
        "apps/bin",
    ):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "project").mkdir()
    return tmp_path


def git(folder: Path, *words: str) -> None:
    person = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "protocol.file.allow=always")
    subprocess.run(["git", "-C", str(folder), *person, *words], check=True, capture_output=True)


def test_tools_are_shown_and_what_lies_beside_them_is_not(home: Path) -> None:
    view = look(home / "project", {"HOME": str(home), "PATH": f"{home}/apps/bin:/usr/bin"}, network=False)
    below = {str(path.relative_to(home)) for path in view.readable if path.is_relative_to(home)}
    assert below == {".cargo/bin", ".cargo/registry", ".nvm", ".config/nvm/versions", "apps/bin"}
    (home / "apps" / "lib").mkdir()
    view = look(home / "project", {"HOME": str(home), "PATH": f"{home}/apps/bin:/usr/bin"}, network=False)
    assert home / "apps" in view.readable


_PARTS = st.sampled_from([".ssh", ".config", "bin", "tools", ".aws", "..", "lib", ".cargo", "x", ""])


@given(st.lists(st.lists(_PARTS, max_size=4), max_size=6), st.lists(_PARTS, max_size=4))
def test_no_path_makes_a_secret_folder_visible(
    tmp_path_factory: pytest.TempPathFactory, entries: list[list[str]], environment: list[str]
) -> None:
    home = tmp_path_factory.getbasetemp() / "home-of-paths"
    for name in (".ssh/bin", ".config/bin", ".aws", "tools/bin", "tools/lib", "lib", "bin"):
        (home / name).mkdir(parents=True, exist_ok=True)
    path = os.pathsep.join("/".join([str(home), *parts]) for parts in entries)
    named = "/".join([str(home), *environment])
    for folder in tool_folders((home,), {"PATH": path, "VIRTUAL_ENV": named}):
        assert not home.is_relative_to(folder)
        if folder.is_relative_to(home):
            assert not PRIVATE.intersection(folder.parts)
            assert ".." not in folder.parts


def test_a_home_in_an_unusual_place_is_hidden_too(tmp_path: Path) -> None:
    shown, me = tmp_path / "data", tmp_path / "data" / "me"
    me.mkdir(parents=True)
    view = View(shown / "p", Path("/home/x"), (Path("/usr"), shown), (), (me,), (), ())
    words = bubblewrap("/usr/bin/bwrap", view, tmp_path / "own", network=False)
    at = words.index(str(me))
    assert words[at - 1] == "--tmpfs"
    assert words[words.index(str(shown)) - 1] == "--ro-bind"
    assert words.index(str(shown)) < at
    assert "--unshare-net" in words
    assert "--unshare-net" not in bubblewrap("/usr/bin/bwrap", view, tmp_path, network=True)


def test_landlock_allows_what_lies_beside_what_is_hidden(tmp_path: Path) -> None:
    for name in ("data/shown", "data/me/keys", "project"):
        (tmp_path / name).mkdir(parents=True)
    data, project = tmp_path / "data", tmp_path / "project"
    view = View(project, data / "me", (data,), (), (data / "me",), (project,), ())
    rules = dict(landlock(5, view, tmp_path / "own", tmp_path / "own").rules)
    assert str(data) not in rules
    assert str(data / "me") not in rules
    assert rules[str(data / "shown")] & 0b10 == 0
    assert rules[str(project)] == (1 << 16) - 1


def test_the_home_folder_cannot_be_the_workspace(home: Path) -> None:
    for workspace in (home, home.parent, Path("/")):
        with pytest.raises(NoView, match="home folder"):
            look(workspace, {"HOME": str(home)}, network=False)


def test_what_steers_is_guarded_when_it_exists(home: Path) -> None:
    project = home / "project"
    git(project, "init", "-q")
    (project / ".git" / "hooks").rename(home / "moved")
    (project / ".envrc").touch()
    (project / ".vscode").mkdir()
    (project / ".bashrc").symlink_to(home / ".ssh")
    found = {str(path.relative_to(project)) for path in guarded(project, git_folders(project).own)}
    assert found == {".git/hooks", ".git/config", ".envrc", ".vscode"}


def test_a_submodules_settings_are_guarded_where_they_lie(home: Path) -> None:
    other, project = home / "other", home / "project"
    other.mkdir()
    git(other, "init", "-q")
    git(other, "commit", "-q", "--allow-empty", "-m", "first")
    git(project, "init", "-q")
    git(project, "submodule", "add", "-q", str(other), "libs/part")
    found = {str(path.relative_to(project)) for path in guarded(project, git_folders(project).own)}
    assert {".git/modules/libs/part/config", ".git/modules/libs/part/hooks", ".gitmodules"} <= found


def test_a_further_work_tree_finds_its_repository(home: Path) -> None:
    main, tree = home / "main", home / "tree"
    main.mkdir()
    git(main, "init", "-q")
    git(main, "commit", "-q", "--allow-empty", "-m", "first")
    git(main, "worktree", "add", "-q", str(tree))
    assert git_folders(tree) == GitFolders((main / ".git", main / ".git" / "worktrees" / "tree"))
    assert tree / ".git" in guarded(tree, git_folders(tree).own)
    (main / "sub").mkdir()
    assert git_folders(main / "sub") == GitFolders(above=main)


@pytest.mark.parametrize(
    "content", ["gitdir: ../.ssh\n", "gitdir: /etc\n", "", "nonsense", "gitdir: \n", "\0"]
)
def test_a_forged_work_tree_shows_nothing(home: Path, content: str) -> None:
    (home / "project" / ".git").write_text(content)
    assert git_folders(home / "project") == GitFolders()


def test_links_in_the_commands_own_home_lead_nobody_astray(home: Path) -> None:
    private = PrivateFolder()
    own = private.path / "home"
    (own / ".cargo").symlink_to(home)
    (own / ".nvm").write_text("")
    view = look(home / "project", {"HOME": str(home)}, network=False)
    clear_the_way(view, own)
    assert not (own / ".cargo").exists()
    assert not (own / ".nvm").exists()
    private.remove()
    assert not private.path.exists()


def test_downloads_take_the_place_of_the_persons_cache(home: Path, tmp_path: Path) -> None:
    own = tmp_path / "own"
    (own / ".cargo/registry").mkdir(parents=True)
    cache = home / ".cargo" / "registry"
    assert cache in look(home / "project", {"HOME": str(home)}, network=False, own=own).readable
    assert cache not in look(home / "project", {"HOME": str(home)}, network=True, own=own).readable
    (own / ".cargo/registry/new").touch()
    assert cache not in look(home / "project", {"HOME": str(home)}, network=False, own=own).readable


def test_a_folder_made_unwritable_is_removed_with_the_rest() -> None:
    private = PrivateFolder()
    (private.path / "home" / "a" / "b").mkdir(parents=True)
    (private.path / "home" / "a" / "b" / "c").touch()
    (private.path / "home" / "a" / "b").chmod(0o500)
    private.remove()
    assert not private.path.exists()


def test_a_change_to_what_steers_is_noticed(home: Path) -> None:
    project = home / "project"
    before = steering(project)
    git(project, "init", "-q")
    after = steering(project)
    assert changed(before, after, project) == ""
    (project / ".git" / "commondir").write_text("../evil")
    (project / ".git" / "hooks" / "pre-commit").write_text("")
    (project / ".envrc").write_text("evil\u202e")
    said = changed(after, steering(project), project)
    for name in (".git/commondir", ".git/hooks/pre-commit", ".envrc"):
        assert name in said
    assert changed(steering(project), steering(project), project) == ""
    before = steering(project)
    (project / ".git" / "config").write_text("[core]\n")
    assert ".git/config" in changed(before, steering(project), project)


def test_the_profile_for_macos_hides_and_guards(tmp_path: Path) -> None:
    project, home = Path('/Users/me/odd "name"\\x'), Path("/Users/me")
    view = View(project, home, (), (home / ".cargo/bin",), (), (project,), (project / ".git/hooks",))
    profile = seatbelt(view, Path("/private/tmp/own.x"), network=False)
    assert profile.startswith("(version 1)\n(deny default)\n")
    assert "network" not in profile
    assert "network" in seatbelt(view, Path("/private/tmp/own.x"), network=True)
    odd = '(subpath "/Users/me/odd \\"name\\"\\\\x")'
    order = [
        profile.index("(allow file-read*)"),
        profile.index('(deny file-read*\n  (subpath "/Users")'),
        profile.index('(allow file-read*\n  (subpath "/Users/me/.cargo/bin")'),
        profile.index(f"(allow file-write*\n  {odd}"),
        profile.index("(deny file-write*\n  (subpath "),
    ]
    assert order == sorted(order)
    assert '(regex #"^/private/tmp/own\\.x/(once/)?tell$")' in profile
    assert profile.count("(") == profile.count(")")
