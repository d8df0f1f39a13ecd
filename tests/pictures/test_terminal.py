import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.pictures.conftest import opened
from tools.pictures import fonts, terminal_picture
from tools.pictures.terminal_picture import CELL, COLUMNS, MOST_LINES, draw_terminal
from tools.pictures.terminal_screen import PLAIN, Cell, screen_of


def lines_of(output: str, columns: int = 10, rows: int = 4, most: int = 20, **how: bool) -> list[str]:
    screen = screen_of(output, columns, rows, most, **how)
    assert all(len(line) == columns for line in screen.lines)
    return ["".join(cell.text for cell in line).rstrip() for line in screen.lines]


@pytest.mark.parametrize(
    ("output", "lines"),
    [
        ("", [""]),
        ("a\nb\r\nc\n", ["a", "b", "c"]),
        ("10%\r20%", ["20%"]),
        ("abc\b\bX", ["aXc"]),
        ("a\tb", ["a       b"]),
        ("0123456789ab", ["0123456789", "ab"]),
        ("\x1b[31mred\x1b[0m\x1b]0;title\x07!", ["red!"]),
        ("abc\x1b[2D_", ["a_c"]),
        ("\x1b[2;3Hx\x1b[1;1Hy", ["y", "  x"]),
        ("abcdef\x1b[3D\x1b[K", ["abc"]),
        ("abcdef\r\x1b[2P", ["cdef"]),
        ("abc\r\x1b[1@x", ["xabc"]),
        ("a\nb\x1b[2J\x1b[Hc", ["c"]),
        ("漢字", ["漢字"]),
        ("012345678漢", ["012345678", "漢"]),
        ("漢\rx", ["x"]),
        ("e\u0301x", ["e\u0301x"]),
        ("1\n2\n3\n4\n5\n6", ["1", "2", "3", "4", "5", "6"]),
        ("1\n2\n3\n4\n5\x1b[H6", ["1", "6", "3", "4", "5"]),
    ],
)
def test_what_a_terminal_shows(output: str, lines: list[str]) -> None:
    assert lines_of(output) == lines


def test_only_the_last_lines_are_kept_and_the_others_counted() -> None:
    screen = screen_of("".join(f"{n}\n" for n in range(100)), 10, 4, 20)
    assert lines_of("".join(f"{n}\n" for n in range(100))) == [str(n) for n in range(80, 100)]
    assert (len(screen.lines), screen.above) == (20, 80)


def test_a_full_screen_program_is_seen_while_it_runs_or_when_it_was_stopped() -> None:
    start, end = "$ top\n\x1b[?1049h\x1b[H\x1b[2JPID  CPU", "\x1b[?1049l"
    assert lines_of(start)[0] == "PID  CPU"
    assert lines_of(start + end, was_stopped=True)[0] == "PID  CPU"
    assert lines_of(start + end) == ["$ top"]


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        ("1;31", {"bold": True, "fore": 1}),
        ("94;41", {"fore": 12, "back": 1}),
        ("107", {"back": 15}),
        ("38;5;208", {"fore": 208}),
        ("48;2;1;2;3;4", {"back": (1, 2, 3), "underline": True}),
        ("38:2::1:2:3", {"fore": (1, 2, 3)}),
        ("38:2:1:2:3", {"fore": (1, 2, 3)}),
        ("4:3", {"underline": True}),
        ("7;2;3", {"inverse": True, "dim": True, "italic": True}),
        ("31;0", {}),
        ("31;39;1;22;7;27", {}),
        ("", {}),
        ("38;5", {}),
        ("999;99999999999", {}),
    ],
)
def test_colours_and_attributes(code: str, wanted: dict[str, object]) -> None:
    (line,) = screen_of(f"\x1b[{code}mx", 2, 1, 1).lines
    style = line[0].style
    found = {name: getattr(style, name) for name in wanted}
    assert found == wanted
    assert bool(wanted) == (style != PLAIN)


WRITTEN = st.one_of(
    st.text(max_size=8),
    st.sampled_from(
        [
            "漢",
            "e\u0301",
            "\n",
            "\r",
            "\b",
            "\t",
            "\x1b7",
            "\x1b8",
            "\x1bM",
            "\x1bc",
            "\x1b[?1049h",
            "\x1b[?47l",
        ]
    ),
    st.builds(
        lambda numbers, final: f"\x1b[{';'.join(map(str, numbers))}{final}",
        st.lists(st.integers(0, 12), max_size=4),
        st.sampled_from("ABCDEFGHJKPX@dfmsu"),
    ),
)


@settings(deadline=None, max_examples=200)
@given(st.lists(WRITTEN, max_size=25))
def test_whatever_is_written_the_screen_keeps_its_form(parts: list[str]) -> None:
    screen = screen_of("".join(parts), 7, 3, 5)
    assert 1 <= len(screen.lines) <= 5
    for line in screen.lines:
        assert len(line) == 7
        for at, cell in enumerate(line):
            if cell.text == "":
                assert line[at - 1].wide and at > 0
            if cell.wide:
                assert line[at + 1].text == ""


def colours_of(output: str) -> set[tuple[int, int, int]]:
    picture = opened(draw_terminal(output).picture.data)
    return {colour for _, colour in picture.getcolors(1 << 20)}


def test_a_picture_has_the_size_of_its_lines() -> None:
    drawn = draw_terminal("one\ntwo\nthree")
    assert (drawn.picture.width, drawn.picture.height) == (COLUMNS * CELL[0], 3 * CELL[1])
    long = draw_terminal("x\n" * 500)
    assert (long.lines, long.above) == (MOST_LINES, 500 - MOST_LINES)
    assert long.picture.height == MOST_LINES * CELL[1]


@pytest.mark.parametrize("has_fonts", [True, False])
def test_colours_letters_and_shapes_are_drawn(has_fonts: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not has_fonts:
        monkeypatch.setattr(terminal_picture, "font_files", lambda: (None, None))
    assert len(colours_of("   ")) == 1
    assert len(colours_of("M")) > 2
    assert (255, 0, 9) in colours_of("\x1b[48;2;255;0;9m \x1b[0m")
    assert (1, 200, 3) in colours_of("\x1b[38;2;1;200;3m█")
    assert (1, 200, 3) in colours_of("\x1b[7;38;2;1;200;3m ")
    assert (95, 135, 175) in colours_of("\x1b[48;5;67m ")
    assert (238, 238, 238) in colours_of("\x1b[48;5;255m ")
    assert len(colours_of("\x1b[8mhidden")) == 1
    assert colours_of("漢字") != colours_of("  ")


@pytest.mark.parametrize("char", "─│┌┐└┘├┤┬┴┼═║╬╭╯╴╹▀▄█▌▐▖▟░▓▁▇▏▉")
def test_lines_and_blocks_do_not_depend_on_a_font(char: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with_fonts = draw_terminal(char).picture
    monkeypatch.setattr(terminal_picture, "font_files", lambda: (None, None))
    assert draw_terminal(char).picture == with_fonts
    assert len(colours_of(char)) == 2


def test_boxes_close(monkeypatch: pytest.MonkeyPatch) -> None:
    picture = opened(draw_terminal("┌─┐\n│ │\n└─┘").picture.data)
    wide, high = CELL
    x, y = (wide - 1) // 2, (high - 1) // 2
    back = picture.getpixel((picture.width - 1, 0))
    around = [(column, row) for column in range(x, 2 * wide + x + 1) for row in (y, 2 * high + y)]
    around += [(column, row) for row in range(y, 2 * high + y + 1) for column in (x, 2 * wide + x)]
    assert all(picture.getpixel(at) != back for at in around)


def test_a_font_that_cannot_be_read_is_passed_over(tmp_path) -> None:
    (tmp_path / "DejaVuSansMono.ttf").write_bytes(b"no font")
    font = fonts.load_font(tmp_path / "DejaVuSansMono.ttf", 15)
    assert font.getlength("abc") > 0
    assert Cell().text == " "
