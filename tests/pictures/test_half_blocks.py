"""Pictures as coloured characters."""

from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from glimmer_tui.pictures.half_blocks import cells_of, size_in_cells, thumbnail
from tests.pictures.conftest import encoded

SIDES = st.integers(1, 5000)


@given(SIDES, SIDES, st.integers(1, 48), st.integers(1, 12))
def test_a_picture_fits_its_room_and_never_grows(width: int, height: int, columns: int, rows: int) -> None:
    across, down = size_in_cells(width, height, columns, rows)
    assert 1 <= across <= min(columns, width) and 1 <= down <= min(rows, (height + 1) // 2)


def test_each_cell_shows_two_pixels() -> None:
    picture = Image.new("RGB", (2, 4), "red")
    picture.paste((0, 0, 255), (0, 1, 2, 2))
    small = thumbnail(encoded(picture))
    assert small is not None
    red, blue = (255, 0, 0), (0, 0, 255)
    assert cells_of(small, 2, 2) == (((red, blue), (red, blue)), ((red, red), (red, red)))


@given(st.binary(max_size=200))
def test_bytes_that_are_no_picture_draw_nothing(data: bytes) -> None:
    assert thumbnail(b"\x89PNG\r\n\x1a\n" + data) is None
