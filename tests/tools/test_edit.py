import base64
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.actions import Action
from tools.base import FileChange, Plan, Result, Running
from tools.edit import EditArguments, EditTool
from tools.edit_match import Places, find_places
from tools.text_file import LineEnds, decode, spliced

CASES = json.loads((Path(__file__).parent.parent / "cases" / "edits.json").read_text())


@pytest.fixture
def edit(workspace):
    return EditTool(workspace)


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_handed_cases(root, edit, call, case):
    file = root / "file.py"
    before = base64.b64decode(case["before_b64"])
    file.write_bytes(before)
    result = call(edit, path="file.py", old=case["old"], new=case["new"], all=case["all"])
    assert (result.error or None) == case["error"]
    assert file.read_bytes() == (base64.b64decode(case["after_b64"]) if case["after_b64"] else before)


def test_what_is_said_of_a_replacement(root, edit, call):
    (root / "a").write_text("1\n2\nx\nx\n")
    assert call(edit, path="a", old="2\nx", new="2\ny").for_model == "Edited a: 1 replacement at line 2."
    (root / "a").write_text("1\n2\nx\nx\nx\nx\n")
    result = call(edit, path="a", old="x", new="y", all=True)
    assert result.for_model == "Edited a: 4 replacements, first at line 3."
    assert [str(path) for path in result.changed] == ["a"]


def test_the_errors_help_to_do_better(root, edit, call):
    (root / "a").write_text("".join(f"line {n}\n" for n in range(1, 21)) + "x\n" * 2 + "y\nx\n")
    result = call(edit, path="a", old="x", new="z")
    assert result.for_model == (
        "old occurs 3 times in a, at lines 21, 22 and 24. "
        "Add surrounding lines to make it unique, or set all."
    )
    result = call(edit, path="a", old="lime 7", new="z")
    assert result.error == "no_match"
    assert result.for_model == (
        "No match for old in a. The nearest lines are:\n5| line 5\n6| line 6\n7| line 7\n8| line 8\n9| line 9"
    )


def test_an_empty_file_can_be_filled_but_never_matched(root, edit, call):
    (root / "a").touch()
    assert call(edit, path="a", old="x", new="y").for_model == "No match for old in a. The file is empty."
    assert call(edit, path="a", old="", new="y\n").for_model == "Edited a: 1 replacement at line 1."
    assert (root / "a").read_text() == "y\n"


def test_white_space_is_tolerated_on_one_whole_place_only(root, edit, call):
    (root / "a").write_text("if a:\n    b = f( 1)\n    c\n")
    result = call(edit, path="a", old="b  =  f( 1)\nc\n", new="    b = 2\n")
    assert result.for_model.endswith("Matched a line that differs in white space only.")
    assert (root / "a").read_text() == "if a:\n    b = 2\n"
    (root / "b").write_text("  x\n\tx\n")
    assert call(edit, path="b", old="x ", new="y").error == "not_unique"
    assert call(edit, path="b", old="x\n ", new="y", all=True).error == "no_match"
    (root / "c").write_text("foo bar baz\n")
    assert call(edit, path="c", old="foo  bar", new="y").error == "no_match"


def test_white_space_alone_matches_nothing(root, edit, call):
    (root / "a").write_text("x\n\ny\n")
    assert call(edit, path="a", old="   ", new="y").error == "no_match"


def test_overlapping_matches_are_not_unique(root, edit, call):
    (root / "a").write_text("aaa")
    assert call(edit, path="a", old="aa", new="b").error == "not_unique"
    assert call(edit, path="a", old="aa", new="b", all=True).error == ""
    assert (root / "a").read_text() == "ba"


def test_new_lines_in_a_crlf_file_end_like_their_neighbours(root, edit, call):
    (root / "a").write_bytes(b"a\r\nb\nc\r\nd\r\n")
    assert not call(edit, path="a", old="c\n", new="c\nnew\n").is_error
    assert (root / "a").read_bytes() == b"a\r\nb\nc\r\nnew\r\nd\r\n"
    assert not call(edit, path="a", old="a\r\nb", new="x\r\nb").is_error
    assert (root / "a").read_bytes() == b"x\r\nb\nc\r\nnew\r\nd\r\n"


def test_utf_16_stays_utf_16(root, edit, call):
    (root / "a").write_bytes("é = 1\r\n".encode("utf-16"))
    assert not call(edit, path="a", old="1", new="2").is_error
    assert (root / "a").read_bytes() == "é = 2\r\n".encode("utf-16")


def test_a_character_the_encoding_lacks_is_refused(root, edit, call):
    (root / "a").write_bytes(b"caf\xe9 = 1\n")
    result = call(edit, path="a", old="1", new="→")
    assert result.error == "encoding"
    assert (root / "a").read_bytes() == b"caf\xe9 = 1\n"


def test_what_was_approved_is_what_is_written(root, edit):
    (root / "a").write_text("x\n")
    plan = edit.prepare(EditArguments(path="a", old="x", new="y"))
    assert isinstance(plan, Plan)
    assert plan.actions == (Action("write", "a"),)
    assert plan.preview == FileChange("a", "x\n", "y\n")
    assert (root / "a").read_text() == "x\n"
    (root / "a").write_text("x\nmine\n")
    assert edit.apply(plan, Running()).error == "changed_since"
    assert (root / "a").read_text() == "x\nmine\n"
    (root / "a").unlink()
    assert edit.apply(plan, Running()).error == "changed_since"
    assert not (root / "a").exists()


def test_mode_bits_stay(root, edit, call):
    (root / "a.sh").write_text("x\n")
    (root / "a.sh").chmod(0o750)
    call(edit, path="a.sh", old="x", new="y")
    assert (root / "a.sh").stat().st_mode & 0o777 == 0o750


def test_places_that_are_not_edited(root, edit, call):
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("x\n")
    (root / "real").write_text("x\n")
    (root / "link").symlink_to("real")
    (root / "bin").write_bytes(b"x\0")
    errors = {
        path: call(edit, path=path, old="x", new="y").error
        for path in ("gone", ".git", ".git/config", "link", "bin", "../a", ".")
    }
    assert errors == {
        "gone": "not_found",
        ".git": "refused",
        ".git/config": "refused",
        "link": "refused",
        "bin": "binary",
        "../a": "refused",
        ".": "refused",
    }
    assert "real" in call(edit, path="link", old="x", new="y").for_model


LINES = st.lists(st.sampled_from(["a", "b", "", " a", "x = 1", "é"]), max_size=8)
ENDS = st.lists(st.sampled_from(["\n", "\r\n"]), min_size=8, max_size=8)


@settings(deadline=None, max_examples=60)
@given(LINES, ENDS, st.booleans(), st.data())
def test_everything_outside_the_replacement_keeps_its_bytes(lines, ends, closed, data):
    raw = "".join(line + end for line, end in zip(lines, ends, strict=False))
    raw = raw if closed else raw.removesuffix("\n").removesuffix("\r")
    file = LineEnds(raw)
    start = data.draw(st.integers(0, len(file.text)))
    end = data.draw(st.integers(start, len(file.text)))
    new = data.draw(st.text("ab\n", max_size=6))
    raw_start, raw_end, piece = file.replace(start, end, new)
    after = spliced(raw, [(raw_start, raw_end, piece)])
    assert after.replace("\r\n", "\n") == file.text[:start] + new + file.text[end:]
    assert after.startswith(raw[:raw_start])
    assert after.endswith(raw[raw_end:])
    assert piece.replace("\r\n", "").count("\n") in (0, piece.count("\n"))


@settings(deadline=None, max_examples=60)
@given(st.binary(max_size=200))
def test_decoding_loses_no_byte(data):
    file = decode(data)
    assert file is None or file.encode(file.text) == data


@settings(deadline=None, max_examples=60)
@given(st.text("ab \n", max_size=20), st.text("ab \n", min_size=1, max_size=6), st.text("ab\n", max_size=4))
def test_an_exact_unique_match_is_always_taken_and_nothing_else_is_changed(text, old, new):
    found = find_places("f", text, old, new, False)
    exact = sum(text.startswith(old, at) for at in range(len(text)))
    if old == new:
        assert not isinstance(found, Places)
    elif exact == 1:
        assert isinstance(found, Places)
        assert [text[start:end] for start, end in found.spans] == [old]
    elif isinstance(found, Places):
        ((start, end),) = found.spans
        assert found.tolerant and exact == 0
        assert text[start:end].split() == old.split()


def test_a_result_is_never_raised_for_a_bad_path(edit, call):
    assert isinstance(call(edit, path="a/" * 3000, old="x", new="y"), Result)
