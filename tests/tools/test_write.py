import os

import pytest

from sandbox.actions import Action
from tools.base import FileChange, Plan, Running
from tools.write import WriteArguments, WriteTool


@pytest.fixture
def write(workspace):
    return WriteTool(workspace)


def test_a_new_file_and_its_folders_are_made(root, write, call):
    result = call(write, path="a/b/c.txt", content="1\n2\n")
    assert result.for_model == "Created a/b/c.txt (2 lines)."
    assert (root / "a/b/c.txt").read_bytes() == b"1\n2\n"
    assert call(write, path="a/b/c.txt", content="1").for_model == "Replaced a/b/c.txt (1 line)."
    assert (root / "a/b/c.txt").read_bytes() == b"1"


@pytest.mark.parametrize(
    ("before", "content", "after"),
    [
        (b"a\r\nb\r\n", "x\ny\n", b"x\r\ny\r\n"),
        (b"a\nb\n", "x\r\ny\r\n", b"x\ny\n"),
        (b"\xef\xbb\xbfa\n", "x\n", b"\xef\xbb\xbfx\n"),
        (b"caf\xe9\n", "th\xe9\n", b"th\xe9\n"),
        ("a\n".encode("utf-16"), "b\n", "b\n".encode("utf-16")),
        (b"", "x\n", b"x\n"),
    ],
)
def test_a_replaced_file_keeps_its_encoding_and_line_ends(root, write, call, before, content, after):
    (root / "a").write_bytes(before)
    assert not call(write, path="a", content=content).is_error
    assert (root / "a").read_bytes() == after


def test_nothing_is_written_before_it_was_approved(root, write):
    plan = write.prepare(WriteArguments(path="a", content="x\n"))
    assert isinstance(plan, Plan)
    assert plan.actions == (Action("write", "a"),)
    assert plan.preview == FileChange("a", None, "x\n")
    assert not (root / "a").exists()
    (root / "a").write_text("someone else's")
    assert write.apply(plan, Running()).error == "changed_since"
    assert (root / "a").read_text() == "someone else's"


def test_places_that_are_not_written(root, write, call):
    (root / "folder").mkdir()
    (root / ".git").mkdir()
    (root / "bin").write_bytes(b"\0\1")
    (root / "latin").write_bytes(b"caf\xe9\n")
    (root / "out").symlink_to("../victim")
    os.mkfifo(root / "pipe")
    paths = ("folder", "new/", ".git/hooks/x", "bin", "out", "../victim", "pipe", "/etc/x", "bin/x", ".")
    errors = [call(write, path=path, content="→\n").error for path in paths]
    assert errors[:2] == ["is_a_folder", "is_a_folder"]
    assert errors[2:] == [
        "refused",
        "binary",
        "refused",
        "refused",
        "not_a_file",
        "refused",
        "refused",
        "refused",
    ]
    assert call(write, path="latin", content="→\n").error == "encoding"
    assert not (root.parent / "victim").exists()


def test_the_same_content_is_no_change(root, write, call):
    (root / "a").write_text("x\n")
    assert call(write, path="a", content="x\n").error == "no_change"


def test_text_that_no_encoding_can_hold_is_refused(root, write, call):
    assert call(write, path="a", content="\ud800").error == "encoding"
    assert not (root / "a").exists()
