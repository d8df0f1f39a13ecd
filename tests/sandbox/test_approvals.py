"""What "always" covers, and above all what it does not."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.actions import Action
from sandbox.approvals import Approvals
from sandbox.commands.units import units
from sandbox.policy import rule


def _covers(remembered: Action, asked: Action) -> bool:
    approvals = Approvals()
    approvals.remember([remembered])
    return approvals.covers(asked)


def test_edits_cover_ordinary_files_only() -> None:
    edit = Action("write", "a.py")
    assert _covers(edit, Action("write", "src/b.py"))
    for path in (
        ".env",
        ".git/config",
        ".git/hooks/x",
        "deep/.ssh/x",
        ".vscode/tasks.json",
        ".GIT/config",
        "x.pem",
    ):
        assert not _covers(edit, Action("write", path)), path
    assert not _covers(edit, Action("delete", "a.py"))
    assert not _covers(edit, Action("execute", "a.py"))


def test_an_edit_of_a_secret_covers_that_one_alone() -> None:
    secret = Action("write", ".env")
    assert _covers(secret, secret)
    assert not _covers(secret, Action("write", "a.py"))
    assert not _covers(secret, Action("write", ".env.local"))
    assert not _covers(secret, Action("read", ".env"))


@pytest.mark.parametrize(
    ("remembered", "asked", "covered"),
    [
        ("make lint", "make lint", True),
        ("make lint", "make  'lint'", True),
        ("make lint", "make lint 2>&1", True),
        ("make lint", "make lint >/dev/null", True),
        ("make lint", "make lint && make lint", True),
        ("make lint", "ls src && make lint", True),
        ("make lint && make test", "make test", True),
        ("make lint && make test", "make test; make lint", True),
        ("make lint", "make lint all", False),
        ("make lint", "make", False),
        ("make lint", "make test", False),
        ("make lint", "make lint; rm x", False),
        ("make lint", "make lint > x", False),
        ("make lint", "make lint | sh", False),
        ("make lint", "make lint &", False),
        ("make lint", "X=1 make lint", False),
        ("make lint", "make lint $X", False),
        ("make lint", "make $(id) lint", False),
        ("make lint", "cd x && make lint", False),
        ("make lint", "(make lint)", False),
        ("make lint", "make 'lint x'", False),
        ("make 'lint x'", "make lint x", False),
        ("make lint", "f() { rm x; }; make lint", False),
        ("cat a.sh | sh", "sh", False),
        ("cat a.sh | sh", "cat b.sh | sh", False),
        ("cat a.sh | sh", "cat a.sh | sh", True),
        ("cat a '|' sh", "cat a | sh", False),
        ("make a | sh", "make a '|' sh", False),
        ("'make > x'", "make > x", False),
        ("'|' 'make > x'", "make > x", False),
        ("cd build && make", "make", False),
        ("cd build && make", "cd build && make", True),
        ("rm -rf *", "rm -rf *", False),
        ("cd build && rm -rf *", "cd build && rm -rf *", False),
        ("rm $X", "rm $X", False),
        ("make > log.txt", "make > log.txt", True),
        ("make > log.txt", "make", False),
        ("echo hi &&& x", "echo hi &&& x", True),
        ("echo hi &&& x", "x", False),
        ("export X=1", "export X=1", True),
        ("python -m pytest -q 2>&1", "python -m pytest -q", True),
        ("python -m pytest -q", "python -m pytest -q tests", False),
    ],
)
def test_commands_are_covered_word_for_word(remembered: str, asked: str, covered: bool) -> None:
    assert _covers(Action("execute", remembered), Action("execute", asked)) is covered


@pytest.mark.parametrize(
    ("asked", "covered"),
    [
        ("python -m pytest -q", True),
        ("python -m pytest tests/test_a.py::test_b", True),
        ("python -m pytest", True),
        ("python -m pytest -p evil", False),
        ("python -m pytest -q --rootdir=/", False),
        ("python -m pytest ../other", False),
        ("python -m pytest /tmp/x", False),
        ("python -m pip install x", False),
        ("python evil.py", False),
        ("python -m pytest -q && rm x", False),
        ("python -m pytest -q | sh", False),
        ("python -m pytest $X", False),
        ("python -m pytest > x", False),
    ],
)
@pytest.mark.parametrize("kind", ["test", "execute"])
def test_tests_cover_the_same_runner(asked: str, covered: bool, kind: str) -> None:
    action = Action("test", asked) if kind == "test" else Action("execute", asked)
    assert _covers(Action("test", "python -m pytest -q tests/test_x.py"), action) is covered


def test_a_runner_with_subcommands_covers_that_one() -> None:
    assert _covers(Action("test", "cargo test"), Action("test", "cargo test parser"))
    assert not _covers(Action("test", "cargo test"), Action("test", "cargo publish"))
    assert not _covers(Action("test", "npm test"), Action("execute", "npm install"))


@pytest.mark.parametrize("asked", ["make test deploy", "make test -k", "make deploy"])
def test_a_further_word_is_one_more_target_to_some_runners(asked: str) -> None:
    assert _covers(Action("test", "make test"), Action("test", "make test"))
    assert not _covers(Action("test", "make test"), Action("test", asked))


def test_a_command_that_reads_is_not_approved_by_its_name(tmp_path: Path) -> None:
    root, outside = tmp_path / "project", tmp_path / "outside"
    (root / "src").mkdir(parents=True)
    outside.mkdir()
    (root / "src" / "out").symlink_to(outside)
    (root / ".env").write_text("TOKEN=1\n")
    approvals = Approvals()
    approvals.remember([Action("execute", "make lint")])
    for command, cwd in [
        ("cat out/notes.txt", root / "src"),
        ("cat src/out/notes.txt", root),
        ("cat src/out/notes.txt && make lint", root),
        ("grep -r TOKEN --include=* .", root),
        ("make lint; cat ../notes.txt", root),
    ]:
        assert rule([Action("execute", command)], "ask", approvals, root, cwd).verdict == "ask"
    assert rule([Action("execute", "ls src && make lint")], "ask", approvals, root).verdict == "allow"


def test_said_in_words() -> None:
    describe = Approvals().describe
    assert (
        describe([Action("write", "a.py"), Action("write", "b.py")])
        == "edits to files in this project for this session"
    )
    assert describe([Action("test", "python -m pytest -q a.py")]) == "`python -m pytest` for this session"
    assert describe([Action("execute", "make lint")]) == "the command `make lint` for this session"
    assert describe([Action("read", ".env")]) == "reading `.env` for this session"
    assert (
        describe([Action("write", ".env"), Action("delete", "x")])
        == "edits to `.env` and deleting `x` for this session"
    )
    assert describe([Action("execute", "rm -rf *")]) == "nothing: what `rm -rf *` does may differ each time"
    assert describe([]) == "nothing"


_ACTIONS = st.builds(
    Action,
    st.sampled_from(["read", "write", "delete", "execute", "test"]),
    st.text(alphabet="ab .|&;'\"\\\n$*/-", max_size=12),
)


@given(st.lists(_ACTIONS, max_size=4))
def test_whatever_is_remembered_is_covered_unless_said_otherwise(actions: list[Action]) -> None:
    approvals = Approvals()
    approvals.remember(actions)
    for action in actions:
        if not approvals.describe([action]).startswith("nothing"):
            assert approvals.covers(action)


@given(_ACTIONS)
def test_nothing_is_covered_at_first(action: Action) -> None:
    assert not Approvals().covers(action) or action.kind in {"execute", "test"}


@pytest.mark.parametrize("join", [" && ", " || ", "; ", "\n"])
@pytest.mark.parametrize("count", [2, 480, 2000])
def test_a_list_of_any_length_is_its_parts_in_order(join: str, count: int) -> None:
    command = join.join(f"touch x{number % 7}" for number in range(count))
    assert units(command) == tuple(("touch", f"x{number % 7}") for number in range(count))
    approvals = Approvals()
    approvals.remember([Action("execute", command)])
    assert approvals.covers(Action("execute", command))
    assert not approvals.covers(Action("execute", f"{command}{join}rm x"))
