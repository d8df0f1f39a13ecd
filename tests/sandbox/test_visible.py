"""Text is shown for what it is."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.visible import escaped, hides_something


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ls -la 'a b' \"$X\" \\;", "ls -la 'a b' \"$X\" \\;"),
        ("a\tb", "a\\tb"),
        ("a\nb", "a\\n\nb"),
        ("a\r\x00\x1b[2K\x7f", "a\\x0d\\x00\\x1b[2K\\x7f"),
        ("\x9b31m", "\\x9b31m"),
        ("x\u202ey\u2066z", "x\\u202ey\\u2066z"),
        ("r\u200bm \u200d\ufeff", "r\\u200bm \\u200d\\ufeff"),
        ("a\u00adb", "a\\xadb"),
        ("a\u00a0b\u3000c\u2028", "a\\xa0b\\u3000c\\u2028"),
        ("a\U000e0041", "a\\U000e0041"),
        ("\u0441at", "\\u0441at"),
        ("\u0441\u0430\u0440", "\\u0441\\u0430\\u0440"),
        ("\uff52\uff4d -rf", "\\uff52\\uff4d -rf"),
        ("\U0001d42b\U0001d426", "\\U0001d42b\\U0001d426"),
        ("e\u0301", "e\\u0301"),
        ("\ud800", "\\ud800"),
        ("\u3164", "\\u3164"),
        ("a\ufe0fb", "a\\ufe0fb"),
        ("naïve café Übung", "naïve café Übung"),
        ("файл.txt", "файл.txt"),
        ("日本語 文書", "日本語 文書"),
        ("हिन्दी", "हिन्दी"),
        ("→ ✓", "→ ✓"),
        ("", ""),
    ],
)
def test_shown(text: str, shown: str) -> None:
    assert escaped(text) == shown


@given(st.text(alphabet=st.characters()))
def test_nothing_invisible_is_left_and_nothing_is_lost(text: str) -> None:
    shown = escaped(text)
    for char in shown:
        assert char in "\n " or unicodedata.category(char) not in {
            "Cc",
            "Cf",
            "Cs",
            "Co",
            "Cn",
            "Zs",
            "Zl",
            "Zp",
        }
    kept = (
        shown.encode("ascii", "backslashreplace").decode("ascii").replace("\\n\n", "\n").replace("\\t", "\t")
    )
    original = text.encode("ascii", "backslashreplace").decode("ascii").replace("\\t", "\t")
    controls = "".join(
        f"\\x{ord(c):02x}" if (ord(c) < 32 and c not in "\n\t") or ord(c) == 127 else c for c in original
    )
    assert kept == controls


@given(st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126)))
def test_plain_text_stays(text: str) -> None:
    assert escaped(text) == text
    assert not hides_something(text)


@given(st.text())
def test_hiding_is_what_escaping_shows(text: str) -> None:
    line = text.replace("\n", "").replace("\t", "")
    assert hides_something(line) == (escaped(line) != line)
