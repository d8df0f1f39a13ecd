"""Whatever a model, a tool or a file holds is shown, never obeyed."""

import unicodedata

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from textual.content import Content

from engine.protocol import Capabilities
from glimmer_tui.agent import events
from glimmer_tui.widgets.lines import Line, change_lines, diff_lines, display_lines
from glimmer_tui.widgets.safe_text import one_line, printable, terminal_text
from glimmer_tui.widgets.sheet import wrapped
from sandbox.visible import escaped
from tools.base import CommandLine, Display, FileChange

NASTY = (
    "[bold red]not markup[/] [@click=app.exit]x[/] [/nope] [",
    "\x1b[2J\x1b[31mred\x1b]0;title\x07\x1bP+q\x1b\\\x9b31m\x90dcs\x9c",
    "\u202eevil\u2066\u200b\u2069 \ufeff\u2028line\u2029para \x85nel\x0b\x0c",
    "nul\x00 bel\x07 back\x08\x08 del\x7f half\ud83d surrogate",
    "long " * 2_000 + "x" * 20_000,
    "日本語テキスト" * 50 + " 👩‍👩‍👧‍👦🏳️‍🌈 e" + "\u0301" * 500,
    "<script>alert(1)</script> &#8238; &lt; ![a](javascript:x) [click](http://evil) <http://auto>",
    "> " * 40 + "deep\n" + "- " * 40 + "deep\n" + "`" * 9 + "\n|a|\n|-|\n|" + "b|" * 50,
    "```python\nunclosed 'quote\n\n# heading\n***\n1. a\n   - b\n      1. c\n",
    "$variables { } %s {0} \\ \\n \\u202e\t\ttabs\r\nwindows\rmac",
)


def everything(text: str) -> tuple[events.Event, ...]:
    """Every kind of event that carries foreign text, carrying this one."""
    return (
        events.ModelLoaded(Capabilities(text, None, 4096, is_demo=True)),
        events.MessageQueued(text),
        events.UserMessage(text),
        events.TurnStarted(1),
        events.ReasoningDelta(text),
        events.TextDelta(text),
        events.ToolStarted("1", text, text),
        events.ToolOutput("1", text),
        events.ApprovalRequested("a", "1", text, CommandLine(text, text, 5.0), text, text),
        events.ApprovalResolved("a", "deny", text),
        events.ApprovalRequested("b", "1", text, FileChange(text, text, text + "\nmore"), text, text),
        events.ApprovalResolved("b", "allow", text),
        events.ToolFinished("1", text, Display(text, text, "terminal", text), text),
        events.ToolFinished("2", "read", Display(text, text, "code", "a.py"), ""),
        events.ToolFinished(
            "3", "edit", Display(text, "@@ -1 +1 @@\n-" + text + "\n+" + text, "diff", text), ""
        ),
        events.ToolFinished("4", "test", Display(text, text, "text"), ""),
        events.Notice(text, text),
        events.FilesRestored((text, text)),
        events.StatusChanged("ask", "low", 1, 2, text),
        events.TurnFailed(text, text, text),
        events.TurnFinished("end", text, (text,)),
    )


@pytest.mark.parametrize("text", NASTY, ids=range(len(NASTY)))
async def test_every_event_takes_it(stage, text):
    async with stage(size=(60, 30)) as on:
        await on.pilot.press("ctrl+o")
        await on.play(*everything(text))
        await on.pilot.press("home")
        await on.pilot.pause()
        for row in on.text().split("\n"):
            assert not [char for char in row if unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp")]
            assert not any(char in row for char in "\u202e\u2066\u2069\u200b\ufeff")
        assert on.app.is_running and on.session.calls[0] == ("start",)


async def test_brackets_are_shown_as_written(stage):
    async with stage(size=(100, 30)) as on:
        text = "[bold]kept[/bold] [link](http://x) <b>html</b> &amp;"
        await on.play(events.UserMessage(text), events.TextDelta(text + "\n"), events.TurnFinished("end", ""))
        assert on.text().count(text) == 2


@pytest.mark.parametrize("text", NASTY, ids=range(len(NASTY)))
async def test_an_answer_may_come_in_any_pieces(stage, text):
    async with stage(size=(40, 12)) as on:
        pieces = [text[start : start + 7] for start in range(0, min(len(text), 700), 7)]
        await on.play(*(events.TextDelta(piece) for piece in pieces), events.TurnFinished("end", ""))
        assert on.app.is_running


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text())
def test_printable_text_has_no_control_left(text):
    for shown in (printable(text), terminal_text(text), one_line(text)):
        assert not any(unicodedata.category(char) in ("Cc", "Cs") for char in shown if char not in "\n\t")
        shown.encode()
    assert "\n" not in one_line(text)


@settings(max_examples=80, deadline=None)
@given(st.text(), st.integers(2, 30))
def test_wrapping_loses_nothing_and_fits(text, width):
    line = Line(Content(printable(text).replace("\n", " ").expandtabs(4)), "12 + ", "added")
    rows = wrapped(line, width + 5)
    assert "".join(row.text.plain for row in rows) == line.text.plain
    assert all(row.text.cell_length <= width or len(row.text) == 1 for row in rows)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.sampled_from(["a", "b", "\tc", "", "d\u202e", "e\r"])), st.data())
def test_a_change_shows_every_changed_line(before, data):
    after = data.draw(st.lists(st.sampled_from(["a", "b", "\tc", "", "d\u202e", "f"])))
    lines = change_lines(FileChange("x.py", "\n".join(before), "\n".join(after)), escaped)
    added = sum(line.kind == "added" for line in lines)
    removed = sum(line.kind == "removed" for line in lines)
    old = "\n".join(before).split("\n") if "\n".join(before) else []
    new = "\n".join(after).split("\n") if "\n".join(after) else []
    old, new = (rows[:-1] if rows and rows[-1] == "" else rows for rows in (old, new))
    assert len(old) - removed == len(new) - added
    assert not any("\u202e" in line.text.plain for line in lines)
    for line in lines:
        if line.kind == "added":
            row = new[int(line.gutter.split()[0]) - 1]
            assert line.text.plain.strip() == escaped(row.lstrip("\t")).expandtabs(4).strip()


@given(st.text(alphabet="+-@ a\n\\0123,"))
def test_any_text_passes_for_a_diff(text):
    lines = diff_lines(text, "x.py")
    assert len(lines) <= text.count("\n") + 2


@given(st.text(), st.sampled_from(["text", "code", "diff", "terminal"]))
@settings(max_examples=100, deadline=None)
def test_any_body_can_be_shown(text, form):
    for line in display_lines(Display("title", text, form, "a.py")):
        assert "\n" not in line.text.plain
