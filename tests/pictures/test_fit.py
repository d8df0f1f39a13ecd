"""A picture is prepared in a size of which the encoder sees everything."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.vision.grid import MOST, grid_of
from tools.pictures.fit import fitted

SIDES = st.integers(1, 20_000)


@pytest.mark.parametrize(
    ("size", "cap", "tokens"),
    [
        ((1920, 1080), 4096, 2691),
        ((1280, 720), 4096, 1196),
        ((2560, 1440), 4096, 4080),
        ((3840, 2160), 4096, 4080),
        ((1280, 720), 1024, 1008),
        ((1, 1), 4096, 1),
        ((28, 28), 1, 1),
        ((29, 29), 4096, 4),
        ((56, 28), 4096, 2),
        ((720, 1140), 4096, 1066),
    ],
)
def test_documented_sizes(size: tuple[int, int], cap: int, tokens: int) -> None:
    assert grid_of(*size, cap).tokens == tokens


@given(SIDES, SIDES, st.integers(256, MOST))
def test_a_prepared_picture_never_passes_the_cap(width: int, height: int, cap: int) -> None:
    assert 1 <= grid_of(*fitted(width, height), cap).tokens <= cap


@given(st.integers(28, 20_000), st.integers(28, 20_000))
def test_the_grid_keeps_the_shape(width: int, height: int) -> None:
    grid, turned = grid_of(width, height, MOST), grid_of(height, width, MOST)
    assert grid.tokens >= 1 and turned.tokens >= 1
    if grid.tokens < MOST * 0.8:
        assert abs(grid.columns - width / 28) < 1 and abs(grid.rows - height / 28) < 1


@given(SIDES, SIDES)
def test_scaling_away_loses_nothing_that_can_be_seen(width: int, height: int) -> None:
    """Nearly all the tokens that the original would get are left, unless it is of extreme shape."""
    if max(width, height) <= 5 * min(width, height):
        seen = grid_of(*fitted(width, height), MOST).tokens
        assert seen >= 0.95 * min(grid_of(width, height, MOST).tokens, MOST)


@pytest.mark.parametrize("wrong", [(0, 5, 9), (5, 0, 9), (5, 5, 0)])
def test_no_picture_is_a_mistake(wrong: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="pixels"):
        grid_of(*wrong)
