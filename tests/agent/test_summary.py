from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glimmer_tui.agent.summary import LIMIT, summarize


@pytest.mark.parametrize(
    ("name", "arguments", "summary"),
    [
        ("read", {"path": "a.py"}, "read a.py"),
        ("read", {"path": "a.py", "start": 3, "end": 9}, "read a.py:3-9"),
        ("read", {"path": "a.py", "start": 3}, "read a.py:3-"),
        ("edit", {"path": "calc.py", "old": "a", "new": "b"}, "edit calc.py"),
        ("run", {"command": "pytest -q"}, "run pytest -q"),
        ("run", {"command": "echo a\nrm -rf b"}, "run echo a rm -rf b"),
        ("search", {"pattern": "def main"}, "search def main"),
        ("test", {}, "test"),
        ("test", {"target": "test_cart.py"}, "test test_cart.py"),
        ("plan", {"items": []}, "plan"),
        ("fly", {"to": "moon"}, "fly"),
        ("read", {"path": 3}, "read"),
    ],
)
def test_names_the_tool_and_what_it_is_about(name: str, arguments: dict[str, Any], summary: str) -> None:
    assert summarize(name, arguments) == summary


@given(st.text(), st.text())
def test_is_one_bounded_line_that_hides_nothing(name: str, path: str) -> None:
    summary = summarize(name, {"path": path, "command": path})
    assert len(summary) <= LIMIT
    assert summary.isprintable()


def test_shows_that_a_character_was_hidden() -> None:
    assert summarize("run", {"command": "echo \u202egnp.exe"}) == "run echo \ufffdgnp.exe"
