import os
import socket
import threading

import pytest

from sandbox.actions import Action
from tools.base import Plan, Running
from tools.read import ReadArguments, ReadTool


@pytest.fixture
def read(workspace):
    return ReadTool(workspace)


def test_a_whole_file_comes_under_a_line_with_its_name_and_length(root, read, call):
    (root / "a.py").write_text("x = 1\ny = 2\n")
    assert call(read, path="a.py").for_model == "a.py (2 lines)\nx = 1\ny = 2\n"


def test_a_missing_last_newline_is_not_made_up(root, read, call):
    (root / "a.py").write_text("x = 1")
    assert call(read, path="a.py").for_model == "a.py (1 line)\nx = 1"


def test_a_range_counts_from_one_and_includes_both_ends(root, read, call):
    (root / "a.py").write_text("1\n2\n3\n4\n")
    assert call(read, path="a.py", start=2, end=3).for_model == "a.py lines 2-3 of 4\n2\n3\n"
    assert call(read, path="a.py", start=3).for_model == "a.py lines 3-4 of 4\n3\n4\n"
    assert call(read, path="a.py", end=99).for_model == "a.py lines 1-4 of 4\n1\n2\n3\n4\n"


@pytest.mark.parametrize("start", [None, -9, -5, -3, -1, 0, 1, 2, 5, 6])
@pytest.mark.parametrize("end", [None, -9, -3, -1, 0, 1, 3, 5, 9])
def test_any_two_numbers_give_just_those_lines_or_an_error(root, read, call, start, end):
    (root / "a.py").write_text("1\n2\n3\n4\n5\n")
    result = call(read, path="a.py", start=start, end=end)
    wanted = range(max(1, start or 1), min(5, 5 if end is None else end) + 1)
    if not wanted:
        assert result.error == "invalid_arguments"
        if end is not None and end < 5:
            assert result.for_model == f"end is {end}, which is before line {wanted.start}."
        return
    assert result.for_model.split("\n", 1)[1] == "".join(f"{number}\n" for number in wanted)


@pytest.mark.parametrize("range_", [{"start": 9}, {"start": 3, "end": 2}, {"end": 0}])
def test_a_range_that_is_not_there_is_an_error(root, read, call, range_):
    (root / "a.py").write_text("1\n2\n")
    assert call(read, path="a.py", **range_).error == "invalid_arguments"


def test_an_empty_file_says_so(root, read, call):
    (root / "a.py").touch()
    assert call(read, path="a.py").for_model == "a.py (empty)"


def test_a_binary_file_is_named_and_not_shown(root, read, call):
    (root / "a.bin").write_bytes(b"\x7fELF\0\1\2")
    result = call(read, path="a.bin")
    assert result.for_model == "a.bin is a binary file (7 bytes)."
    assert not result.is_error


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("é\n".encode("latin-1"), "a (1 line, latin-1)\né\n"),
        ("“é”\n".encode("cp1252"), "a (1 line, cp1252)\n“é”\n"),
        ("é\n".encode("utf-16"), "a (1 line, UTF-16)\né\n"),
        (b"\xef\xbb\xbfa\n", "a (1 line)\na\n"),
        (b"a\r\nb\r\n", "a (2 lines, CRLF)\na\nb\n"),
        (b"a\r\nb\n", "a (2 lines, mixed line ends)\na\nb\n"),
        ("a\u2028b\x0cc\n".encode(), "a (1 line)\na\u2028b\x0cc\n"),
    ],
)
def test_encodings_and_line_ends_are_told_in_the_first_line(root, read, call, data, expected):
    (root / "a").write_bytes(data)
    assert call(read, path="a").for_model == expected


def test_a_folder_points_to_list(root, read, call):
    (root / "src").mkdir()
    result = call(read, path="src")
    assert result.error == "is_a_folder"
    assert "list" in result.for_model


def test_a_missing_file_names_the_same_name_elsewhere_first(root, read, call):
    for name in ("src/cart.py", "src/card.py", "carts.py"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).touch()
    result = call(read, path="cart.py")
    assert result.error == "not_found"
    assert result.for_model.startswith("No file cart.py. Did you mean src/cart.py")
    assert call(read, path="nothing/like/it.rs").for_model == "No file nothing/like/it.rs."


def test_at_most_three_names_are_suggested(root, read, call):
    for number in range(9):
        (root / f"d{number}").mkdir()
        (root / f"d{number}" / "cart.py").touch()
    assert call(read, path="cart.py").for_model.count("/cart.py") == 3


def test_a_long_file_is_cut_with_the_lines_that_are_missing(root, read, call):
    (root / "a").write_text("".join(f"{n}\n" for n in range(1, 5001)))
    result = call(read, path="a")
    assert result.for_model.startswith("a (5000 lines)\n1\n")
    assert result.for_model.endswith(
        "\n2000\n[cut: lines 2001-5000 of 5000 not shown; read them with start and end]"
    )
    assert call(read, path="a", start=2001, end=2002).for_model == "a lines 2001-2002 of 5000\n2001\n2002\n"


def test_many_characters_are_cut_at_a_line(root, read, call):
    (root / "a").write_text("".join("x" * 999 + "\n" for _ in range(100)))
    result = call(read, path="a")
    assert "[cut: lines 61-100 of 100 not shown" in result.for_model
    assert len(result.for_model) < 61_000


def test_a_very_long_line_is_cut_with_a_mark(root, read, call):
    (root / "a").write_text("x" * 3_000_000 + "\nnext\n")
    result = call(read, path="a")
    assert "[cut: rest of line]\nnext\n" in result.for_model
    assert len(result.for_model) < 3000


def test_a_gigabyte_of_nothing_is_binary_and_stays_on_the_disk(root, read, call):
    with (root / "huge").open("wb") as file:
        file.truncate(1 << 30)
    assert call(read, path="huge").for_model == "huge is a binary file (1.1 GB)."


def test_a_file_too_large_for_memory_is_read_line_by_line(root, read, call):
    line = b"x" * 99 + b"\n"
    with (root / "big").open("wb") as file:
        for _ in range(4):
            file.write(line * 50_000)
        file.write("é last\r\n".encode())
    assert call(read, path="big", start=200_001).for_model == "big lines 200001-200001 of 200001\né last\n"
    whole = call(read, path="big").for_model
    assert whole.startswith("big (200001 lines)\nxxx")
    assert whole.endswith("of 200001 not shown; read them with start and end]")
    assert call(read, path="big", start=300_000).error == "invalid_arguments"


def test_reading_a_large_file_ends_when_cancelled(root, read):
    (root / "big").write_bytes(b"line\n" * 4_000_000)
    plan = read.prepare(ReadArguments(path="big", start=3_999_999))
    assert isinstance(plan, Plan)
    stopped = threading.Event()
    stopped.set()
    assert read.apply(plan, Running(cancelled=stopped)).is_error


def test_a_pipe_or_a_socket_never_hangs(root, read, call):
    os.mkfifo(root / "pipe")
    assert call(read, path="pipe").error == "not_a_file"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(root / "socket"))
        assert call(read, path="socket").error == "not_a_file"


def test_a_file_that_becomes_a_pipe_or_goes_away_before_it_is_read(root, read):
    (root / "a").write_text("x")
    plan = read.prepare(ReadArguments(path="a"))
    assert isinstance(plan, Plan)
    (root / "a").unlink()
    assert read.apply(plan, Running()).error == "not_found"
    os.mkfifo(root / "a")
    assert read.apply(plan, Running()).error == "refused"


def test_links_inside_are_followed_and_judged_by_where_they_lead(root, read):
    (root / "real.txt").write_text("x\n")
    (root / "link").symlink_to("real.txt")
    plan = read.prepare(ReadArguments(path="link"))
    assert isinstance(plan, Plan)
    assert plan.actions == (Action("read", "real.txt"),)
    assert read.apply(plan, Running()).for_model == "link (1 line)\nx\n"


@pytest.mark.parametrize("path", ["../secret", "/etc/passwd", "out", "loop", "~/x", "", "a\0b"])
def test_what_lies_outside_is_refused(root, read, call, path):
    (root.parent / "secret").write_text("s")
    (root / "out").symlink_to("../secret")
    (root / "loop").symlink_to("loop")
    result = call(read, path=path)
    assert result.error == "refused"
    assert "s\n" not in result.for_model.splitlines()


@pytest.mark.parametrize("name", ["a\nb.txt", "a\u202egpj.txt", "a\x1b[31m.txt", os.fsdecode(b"a\xff.txt")])
def test_names_that_hide_something_are_shown_escaped(root, read, call, name):
    (root / name).write_text("x\n")
    first, _, rest = call(read, path=name).for_model.partition("\n")
    assert rest == "x\n"
    assert first.isprintable()
    assert first.endswith(".txt (1 line)")
