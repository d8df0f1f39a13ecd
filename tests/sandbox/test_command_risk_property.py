"""What is judged to read is run for real, in a copy of a project, and must leave everything as it was."""

import hashlib
import os
import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sandbox.command_risk import assess

_FILES = {
    "a.py": "x = 1\n",
    "b.txt": "b\na\nc\n",
    "-delete": "",
    "-o": "",
    "src/c.py": "def c():\n    return 2\n",
    "src/-exec": "",
    "list.txt": "../canary/kept.txt\na.py\n",
    "w out": "",
}
_PROGRAMS = (
    "ls", "cat", "head", "tail", "wc", "grep", "find", "sed", "sort", "uniq", "cut", "tr", "diff",
    "echo", "printf", "test",
    "[", "xxd", "od", "tac", "nl", "column", "stat", "file", "date", "basename", "comm", "tree", "cd",
    "type", "env", "xargs",
    "timeout 5", "command", "rm", "tee", "touch", "cp", "mv", "$X", "PATH=.", "X=1", "eval", "bash -c",
    "awk", "exec",
)  # fmt: skip
_WORDS = (
    "a.py", "b.txt", "src", ".", "..", "*", "*.py", "?o", "-*", "./*", "src/*", "'*'", "-n", "-r", "-o",
    "-i", "-e", "-f",
    "-c", "-delete", "-exec", "-name", "-print", "-type", "f", "--", "--output=new", "--out=new",
    "-onew", "-no", "new",
    "'w new'", "1wnew", "s/a/b/wnew", "'s/a/touch new/e'", "'1,2p'", "p", "-v", "PATH", "%n", "%s",
    "$X", '"$X"',
    "$(touch new)", "`touch new`", "<(touch new)", "$((a[$(touch new)]))", "${X:=1}", "${X@P}",
    "$'-delete'", '$"a"',
    "{a,b}", "{-o,new}", "~", "../canary/kept.txt", "-s", "-T", "!", "(", r"\(", r"\;", "+", "rm",
    "touch", "{}", "]", "=",
    "'a b'", '"a b"', r"a\ b", "-la", "-20", "-d", "-u", "x=~/y", "{PATH}>/dev/null", "#", "\\\n", "é",
    "[!a]*", "-ps", "-bs", "-ewnew", "-e1wnew", "-l4", "@list.txt", ".?", ".*", "-e p", "-- -e p",
)  # fmt: skip
_REDIRECTS = (
    "", "", "", "", " > new", " >> b.txt", " 2>&1", " 2>/dev/null", " >/dev/null", " < a.py", " >| new",
    " &> new", " <> new",
    " >& new", " 3>new", " <<< a", " <<E\n$(touch new)\nE\n",
)  # fmt: skip
_JOINS = (" | ", " && ", " || ", "; ", "\n", " |& ", " & ", " |\n", ";;", " &&& ", "\r", "\u00a0")
_WRAPS = (
    "{}",
    "{}",
    "{}",
    "({})",
    "{{ {}; }}",
    "! {}",
    "$({})",
    "if {}; then ls; fi",
    "f() {{ {}; }}; f",
    "\\{}",
)

_SIMPLE = st.builds(
    lambda program, words, redirect, more: " ".join((program, *words)) + redirect + more,
    st.sampled_from(_PROGRAMS),
    st.lists(st.sampled_from(_WORDS), max_size=4),
    st.sampled_from(_REDIRECTS),
    st.sampled_from(("", "", " -delete", " a.py")),
)
_COMMANDS = st.recursive(
    _SIMPLE,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(_JOINS), inner).map("".join),
        st.builds(lambda wrap, command: wrap.format(command), st.sampled_from(_WRAPS), inner),
    ),
    max_leaves=3,
)
_READERS = st.builds(
    lambda program, words, redirect: " ".join((program, *words)) + redirect,
    st.sampled_from(_PROGRAMS[:29]),
    st.lists(st.sampled_from(_WORDS), max_size=4),
    st.sampled_from(_REDIRECTS),
)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("judged")
    (top / "canary").mkdir()
    (top / "canary" / "kept.txt").write_text("keep\n")
    for name, text in _FILES.items():
        path = top / "project" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return top / "project"


def _state(top: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(top.rglob("*")):
        facts = path.lstat()
        digest.update(f"{path.relative_to(top)} {facts.st_mode} {facts.st_mtime_ns}\n".encode())
        if path.is_file():
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _run(command: str, project: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": str(project.parent / "canary"), "X": "-delete"}
    try:
        subprocess.run(
            ["bash", "--norc", "--noprofile", "-c", command],
            cwd=project,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=20,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise AssertionError(f"{command!r} did not end") from None


@settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.one_of(_COMMANDS, _READERS))
def test_what_reads_leaves_everything_as_it_was(project: Path, command: str) -> None:
    named = assess(command)
    looked_up = assess(command, project)
    if "read" not in (named.level, looked_up.level):
        return
    before = _state(project.parent)
    _run(command, project)
    assert _state(project.parent) == before, command


@settings(max_examples=150, deadline=None)
@given(
    st.one_of(
        st.text(alphabet=st.characters(), max_size=40),
        st.text(alphabet="ls a'\"`$(){}[]|&;<>\\\n#*~!=-", max_size=25),
    )
)
def test_no_text_raises_and_none_that_bash_rejects_reads(text: str) -> None:
    risk = assess(text)
    assert risk.span is None or 0 <= risk.span[0] <= risk.span[1] <= len(text)
    if risk.level != "read":
        return
    assert not re.search(r"[\x00\ud800-\udfff]", text)
    checked = subprocess.run(["bash", "-n", "-c", text], capture_output=True, check=False)
    assert checked.returncode == 0
