"""Screens to train the vision encoder on: what they show, where it stands, and what is kept for measuring."""

import random

import numpy as np
import pytest

from nano.vision.drawing import DARK, LIGHT, Face, Setting, draw, faces_in, scaled
from nano.vision.exam import styled
from nano.vision.screens import Span, draw_name, draw_screen, is_apart, text_of
from nano.vision.transcript import (
    BLANK,
    CELL,
    MARK,
    Place,
    cells_of,
    characters_at,
    parts_of,
    row_of,
    tokens_at,
)

FACE = Face(None, None, 15, 9, 19)
LINE = "FAILED test_cart.py::test_get_total - assert 7 == 12"


class Letters:
    """A tokenizer of two characters a token; an id tells both."""

    def encode(self, pieces):
        text = "".join(str(piece) for piece in pieces)
        return [
            sum(ord(c) << 8 * i for i, c in enumerate(text[at : at + 2])) for at in range(0, len(text), 2)
        ]


def spelled(ids) -> str:
    return "".join(chr(i & 255) + (chr(i >> 8) if i >> 8 else "") for i in ids if i >= 0)


def test_a_screen_names_its_failing_test_and_training_never_shows_a_name_kept_for_measuring():
    rng = random.Random(5)
    for number in range(200):
        unseen = number % 2 == 0
        screen = draw_screen(rng, unseen)
        first = text_of(screen.lines[screen.failed[0]])
        assert first.startswith("FAILED ")
        assert f"::{screen.name}" in first
        assert len(first) <= 80
        assert all(line.isascii() for line in map(text_of, screen.lines))
        for failed in screen.failed:
            name = text_of(screen.lines[failed]).split("::test_")[1].split(" - ")[0]
            assert is_apart(name) == unseen


def test_names_are_kept_by_themselves_and_not_by_chance():
    names = {draw_name(random.Random(seed), unseen=True) for seed in range(60)}
    assert not names & {draw_name(random.Random(seed), unseen=False) for seed in range(600)}


@pytest.mark.parametrize("theme", [DARK, LIGHT], ids=["dark", "light"])
def test_a_drawn_character_fills_its_own_cell_and_no_other(theme):
    picture = draw([(), (Span("  W"),)], Setting(FACE, theme, 4, 3), 60, 50)
    inked = (picture != theme.back).any(2)
    rows, columns = np.nonzero(inked)
    assert inked.any()
    assert rows.min() >= 3 + 19 and rows.max() < 3 + 38
    assert columns.min() >= 4 + 18 and columns.max() < 4 + 27


def test_what_lies_outside_of_a_picture_is_cut_off():
    lines = [(Span("x" * 40),)] * 9
    whole = draw(lines, Setting(FACE, DARK, 0, 0), 400, 200)
    part = draw(lines, Setting(FACE, DARK, 0, -19), 100, 57)
    assert (part == whole[19:76, :100]).all()


def test_pictures_are_stretched_to_the_size_asked_for():
    picture = draw([(Span("abc"),)], Setting(FACE, DARK, 0, 0), 45, 30)
    assert scaled(picture, 56, 28).shape == (28, 56, 3)
    assert scaled(picture, 45, 30) is picture


def test_without_a_folder_of_fonts_the_one_of_pillow_is_used(tmp_path):
    assert faces_in(None) == faces_in(tmp_path) == [(None, None)]


def test_a_summary_line_falls_into_four_parts():
    assert [text for _, text in parts_of(LINE)] == [
        "FAILED",
        " test_cart.py",
        "::test_get_total",
        " - assert 7 == 12",
    ]
    assert all(LINE[start : start + len(text)] == text for start, text in parts_of(LINE))
    assert [text for _, text in parts_of("FAILED a.py::test_b")] == ["FAILED", " a.py", "::test_b"]


def test_parts_follow_their_place_on_the_screen_and_leave_no_hole_inside():
    row = row_of(LINE, Letters(), Place(0, 0, 18, 19), 48).tolist()
    assert row[0] == MARK
    for start, text in parts_of(LINE)[1:]:
        first = int((start + (text[0] == " ")) * 18 // CELL)
        count = -(-len(text) // 2)
        assert spelled(row[first : first + count]) == text
        assert BLANK not in row[first : first + count]


def test_a_part_waits_for_the_one_before_and_what_finds_no_cell_is_left_out():
    row = row_of(LINE, Letters(), Place(0, 0, 7, 15), 20).tolist()
    assert BLANK not in row[2:]
    assert LINE[6:].startswith(spelled(row[1:]))


def test_only_failing_lines_that_are_whole_are_read_and_one_a_row():
    lines = [(Span("other"),), (Span(LINE),), (Span(LINE.replace("total", "price")),), (), (Span(LINE),)]
    cells = cells_of(lines, [1, 2, 4], Letters(), Place(0, -4, 16, 14), (2, 40))
    assert spelled(cells[0]) == LINE[6:]
    assert (cells[1] != BLANK).any()
    cut = cells_of(lines, [0], Letters(), Place(0, -4, 16, 14), (2, 40))
    assert (cut == BLANK).all()


def test_characters_are_told_where_they_stand():
    lines = [(Span("ab"), Span("cd", "red")), (Span("xy"),)]
    found = characters_at(lines, Place(14, 0, 14, 14), (1, 4))
    text = [["".join(chr(32 + c) for c in halves) for halves in row] for row in found.tolist()]
    assert text == [
        ["  ", "aa", "bb", "cc", "dd", "  ", "  ", "  "],
        ["  ", "xx", "yy", "  ", "  ", "  ", "  ", "  "],
    ]


def test_tokens_are_told_where_their_characters_stand():
    found = tokens_at({1: [7, 7, 7, 9]}, Place(14, 0, 14, 14), (1, 4))
    assert found.tolist() == [[BLANK] * 8, [BLANK, 7, 7, 7, 9, BLANK, BLANK, BLANK]]


def test_colours_change_no_word_of_a_report():
    rows = [
        "FAILED a.py::test_b - assert 1 == 2",
        "FAILED a.py::test_b",
        "E   assert 1",
        "=== 1 failed in 0.1s ===",
    ]
    assert [text_of(styled(row)) for row in rows] == rows
    assert len(styled(rows[0])) == 4
