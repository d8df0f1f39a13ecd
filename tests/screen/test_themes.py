import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.color import Color

from glimmer_tui.widgets import palette

AA = 4.5


def contrast(one: str, other: str) -> float:
    """The WCAG 2 contrast ratio."""
    first, second = sorted((luminance(one), luminance(other)), reverse=True)
    return (first + 0.05) / (second + 0.05)


def luminance(color: str) -> float:
    parts = [part / 255 for part in Color.parse(color).rgb]
    red, green, blue = (p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("name", palette.names())
def test_all_text_can_be_read(name):
    colors = palette.load(name).colors
    grounds = [f"colors.{key}" for key in ("background", "surface", "panel")]
    texts = [f"colors.{key}" for key in ("foreground", "muted", "accent", "success", "error", "warning")]
    syntax = [key for key in colors if key.startswith("syntax.")]
    pairs = [(text, ground) for text in (*texts, *syntax) for ground in grounds]
    for side in ("added", "removed"):
        pairs += [(text, f"diff.{side}_background") for text in (f"diff.{side}", "colors.muted", *syntax)]
    pairs.append(("colors.background", "colors.accent"))
    low = [(a, b, round(contrast(colors[a], colors[b]), 2)) for a, b in pairs]
    assert not [pair for pair in low if pair[2] < AA]


@pytest.mark.parametrize("name", palette.names())
def test_added_and_removed_lines_differ_from_the_ground_and_each_other(name):
    colors = palette.load(name).colors
    grounds = [colors[key] for key in ("colors.surface", "diff.added_background", "diff.removed_background")]
    assert len(set(grounds)) == 3


def test_there_is_a_dark_and_a_light_one():
    assert {palette.load(name).dark for name in palette.names()} == {True, False}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('accent = "#e8b96a"', 'accent = "gold"', "colors.accent is 'gold', which is not a colour"),
        ('accent = "#e8b96a"', "", "colors.accent is missing"),
        ('accent = "#e8b96a"', 'acent = "#e8b96a"', "colors.acent is not a key of a theme"),
        ("dark = true", 'dark = "yes"', "dark must be true or false"),
        ("[diff]", "[dif]", "dif is not a key of a theme"),
        ("[diff]", "[diff", "not valid TOML"),
        ('name = "glimmer-dark"', "", "name must be"),
    ],
)
def test_a_broken_theme_is_told_by_file_and_key(old, new, words):
    from importlib.resources import files

    text = files("themes").joinpath("glimmer-dark.toml").read_text("utf-8")
    with pytest.raises(palette.ThemeError) as told:
        palette.parse(text.replace(old, new), "my-theme.toml")
    assert "my-theme.toml" in str(told.value) and words in str(told.value)


@given(st.text())
def test_any_text_is_a_theme_or_a_clear_error(text):
    with pytest.raises(palette.ThemeError, match=r"^x\.toml"):
        palette.parse(text, "x.toml")


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(palette.ThemeError, match="glimmer-dark, glimmer-light"):
        palette.load("neon")
