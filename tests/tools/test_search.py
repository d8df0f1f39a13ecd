import os
import subprocess

import pytest

from sandbox.approvals import Approvals
from sandbox.policy import rule
from tools import project_files, search
from tools.globs import glob_filter
from tools.list_files import ListTool
from tools.ripgrep import FIXED, QUIET, find_ripgrep
from tools.search import SearchTool


@pytest.fixture(params=["ripgrep", "python"])
def without(request, monkeypatch):
    """The same tests with ripgrep and on a machine that lacks it."""
    if request.param == "python":
        monkeypatch.setattr(search, "find_ripgrep", lambda root: None)
        monkeypatch.setattr(project_files, "find_ripgrep", lambda root: None)


@pytest.fixture
def tree(root):
    files = {
        "src/cart.py": "class Cart:\n    def total(self):\n        return 1\n",
        "src/a/deep.py": "total\n",
        "src.txt": "total of src\n",
        ".hidden": "total\n",
        ".git/config": "total\n",
        "build/out.py": "total\n",
        "a.log": "total\n",
        "keep.log": "total\n",
        "sub/.gitignore": "/local\n",
        "sub/local": "total\n",
        "sub/more/local": "total\n",
        ".gitignore": "*.log\n!keep.log\nbuild/\n",
        "crlf.txt": "a\r\ntotal\r\n",
        "tab:colon.txt": "total:1:\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(text.encode())
    (root / "bin").write_bytes(b"total\0")
    (root / "latin").write_bytes(b"total caf\xe9\n")
    (root / "link.py").symlink_to("src/cart.py")
    (root / "out").symlink_to("/etc")
    (root / "circle").symlink_to(".")
    os.mkfifo(root / "pipe")
    return root


VISIBLE = [
    *(".gitignore", ".hidden", "bin", "crlf.txt", "keep.log", "latin", "src/a/deep.py", "src/cart.py"),
    *("src.txt", "sub/.gitignore", "sub/more/local", "tab:colon.txt"),
]


@pytest.mark.usefixtures("without", "tree")
def test_matches_come_sorted_with_path_line_and_text(workspace, call):
    assert call(SearchTool(workspace), pattern="total").for_model.splitlines() == [
        ".hidden:1:total",
        "crlf.txt:2:total",
        "keep.log:1:total",
        "latin:1:total café",
        "src/a/deep.py:1:total",
        "src/cart.py:2:    def total(self):",
        "src.txt:1:total of src",
        "sub/more/local:1:total",
        "tab:colon.txt:1:total:1:",
    ]


@pytest.mark.usefixtures("without", "tree")
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"path": "src"}, ["src/a/deep.py:1:total", "src/cart.py:2:    def total(self):"]),
        ({"path": "src/cart.py"}, ["src/cart.py:2:    def total(self):"]),
        ({"path": "a.log"}, ["a.log:1:total"]),
        ({"glob": "*.py"}, ["src/a/deep.py:1:total", "src/cart.py:2:    def total(self):"]),
        ({"glob": "src/*.py"}, ["src/cart.py:2:    def total(self):"]),
        ({"glob": "a/**", "path": "src"}, ["src/a/deep.py:1:total"]),
        ({"glob": "*.log"}, ["keep.log:1:total"]),
        ({"glob": "*.{txt,log}"}, None),
    ],
)
def test_path_and_glob_narrow_and_never_bring_ignored_files_back(workspace, call, arguments, expected):
    lines = call(SearchTool(workspace), pattern="total", **arguments).for_model.splitlines()
    if expected is None:
        expected = ["crlf.txt:2:total", "keep.log:1:total", "src.txt:1:total of src"]
        expected.append("tab:colon.txt:1:total:1:")
    assert lines == expected


@pytest.mark.usefixtures("without", "tree")
@pytest.mark.parametrize(
    "pattern",
    ["t.tal$", r"^\s+def \w+\(", "[Cc]art", "(total|return) 1?", "caf.", r"\btotal\b", "^$", "-e"],
)
def test_ordinary_patterns_give_the_same_with_and_without_ripgrep(workspace, call, pattern, monkeypatch):
    ours = call(SearchTool(workspace), pattern=pattern).for_model
    monkeypatch.setattr(search, "find_ripgrep", find_ripgrep)
    assert call(SearchTool(workspace), pattern=pattern).for_model == ours


@pytest.mark.usefixtures("without")
def test_no_match_and_a_bad_pattern(root, workspace, call):
    (root / "a").write_text("x\n")
    tool = SearchTool(workspace)
    assert call(tool, pattern="zzz").for_model == "No matches for zzz."
    bad = call(tool, pattern="a(b")
    assert bad.error == "invalid_pattern"
    assert len(bad.for_model) < 200
    assert call(tool, pattern="").error == "invalid_pattern"
    assert call(tool, pattern="x", path="gone").error == "not_found"
    assert call(tool, pattern="x", path=".git").error in ("not_found", "refused")
    assert call(tool, pattern="x", path="../..").error == "refused"


@pytest.mark.usefixtures("without", "tree")
def test_git_is_never_searched(workspace, call):
    assert call(SearchTool(workspace), pattern="total", path=".git").error == "refused"


@pytest.mark.usefixtures("without")
def test_many_matches_and_long_lines_are_cut(root, workspace, call):
    (root / "a").write_text("x" * 1_000_000 + "\n" + "x\n" * 500)
    lines = call(SearchTool(workspace), pattern="x").for_model.splitlines()
    assert lines[0] == f"a:1:{'x' * 200}[cut: rest of line]"
    assert lines[-1].startswith("[cut: only the first 100 matches are shown")
    assert len(lines) == 101


@pytest.mark.usefixtures("without")
def test_a_name_with_a_line_break_cannot_forge_a_match(root, workspace, call):
    (root / "a\nfake:1:x").write_text("real\n")
    (root / "sub\n").mkdir()
    (root / "sub\n" / "b").write_text("real\n")
    tool = SearchTool(workspace)
    assert call(tool, pattern="real").for_model == "No matches for real."
    assert call(tool, pattern="real", path="a\nfake:1:x").for_model == r"a\nfake:1:x:1:real"
    assert call(tool, pattern="real", path="sub\n").for_model == r"sub\n/b:1:real"
    assert call(ListTool(workspace)).for_model.splitlines() == [r"a\nfake:1:x", r"sub\n/b"]


@pytest.mark.usefixtures("without", "tree")
def test_the_list_holds_the_files_that_are_not_ignored(workspace, call):
    tool = ListTool(workspace)
    assert call(tool).for_model.splitlines() == VISIBLE
    assert call(tool, path="src").for_model == "src/a/deep.py\nsrc/cart.py"
    assert call(tool, glob="**/*.py").for_model == "src/a/deep.py\nsrc/cart.py"
    assert call(tool, glob="*.rs").for_model == "No files match *.rs."
    assert call(tool, path="src.txt").error == "not_a_folder"
    assert call(tool, path="gone").error == "not_found"
    assert call(tool, path="out").error == "refused"


@pytest.mark.usefixtures("without")
def test_an_empty_project_has_no_files(workspace, call):
    assert call(ListTool(workspace)).for_model == "No files."


@pytest.mark.usefixtures("without")
def test_a_long_list_is_cut_and_counts_the_rest(root, workspace, call):
    for number in range(1200):
        (root / f"f{number:04}").touch()
    lines = call(ListTool(workspace)).for_model.splitlines()
    assert len(lines) == 201
    assert lines[-1] == "[cut: 1000 more; narrow with path or glob]"


@pytest.mark.usefixtures("without")
def test_a_listing_stops_at_its_bound(root):
    for number in range(300):
        (root / f"f{number:04}").touch()
    files = project_files.project_files(root, most=100)
    assert len(files.paths) == 100
    assert not files.complete


def test_a_settings_file_of_ripgrep_changes_nothing(tree, workspace, call, monkeypatch):
    (tree / "rc").write_text("--no-ignore\n")
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(tree / "rc"))
    assert "a.log" not in call(ListTool(workspace)).for_model


def test_ripgrep_knows_every_fixed_argument(root):
    program = find_ripgrep(root)
    assert program is not None
    done = subprocess.run([program, *FIXED, *QUIET, "--files"], cwd=root, capture_output=True, check=False)
    assert done.stderr == b""


@pytest.mark.parametrize(
    ("glob", "path", "fits"),
    [
        ("*.py", "a/b.py", True),
        ("a/*.py", "a/b.py", True),
        ("a/*.py", "a/b/c.py", False),
        ("a/**/c.py", "a/c.py", True),
        ("a/**/c.py", "a/x/y/c.py", True),
        ("**/c.py", "c.py", True),
        ("./a/", "a/x/y", True),
        ("[!a]?.py", "bc.py", True),
        ("[!a]?.py", "ac.py", False),
        ("x{1,{2,3}}", "x3", True),
        ("a[", "a[", True),
        ("[z-a]", "[z-a]", True),
        ("a+(b).py", "a+(b).py", True),
        ("src", "src/a", False),
    ],
)
def test_globs(glob, path, fits):
    assert glob_filter(glob)(path) is fits


@pytest.mark.usefixtures("without")
def test_a_search_of_a_folder_passes_over_what_looks_secret(root, workspace, call) -> None:
    (root / ".ssh").mkdir()
    for name in (".env", "server.key", ".ssh/config", "settings.py", "secrets.py"):
        (root / name).write_text("TOKEN = 1\n")
    found = call(SearchTool(workspace), pattern="TOKEN").for_model
    assert found == "secrets.py:1:TOKEN = 1\nsettings.py:1:TOKEN = 1"
    assert call(SearchTool(workspace), pattern="TOKEN", glob="*.key").for_model == "No matches for TOKEN."

    plan = SearchTool(workspace).prepare(SearchTool.arguments(pattern="TOKEN", path=".env"))
    assert rule(plan.actions, "auto", Approvals(), root).verdict == "ask"
    assert "TOKEN" in call(SearchTool(workspace), pattern="TOKEN", path=".env").for_model
    assert "TOKEN" in call(SearchTool(workspace), pattern="TOKEN", path=".ssh").for_model


@pytest.mark.usefixtures("without", "tree")
@pytest.mark.parametrize("text", ["\0", "a\0", "\0*.py", "a\nb", "\n", "\ud800", "*.p\udfffy"])
def test_what_no_program_can_be_given_is_refused(workspace, call, text):
    tool = SearchTool(workspace)
    assert call(tool, pattern="total", glob=text).error == "invalid_pattern"
    assert call(tool, pattern=text).error == "invalid_pattern"
    assert call(tool, pattern="total", path=text).is_error
    listed = call(ListTool(workspace), glob=text)
    assert listed.is_error or "No" in listed.for_model
