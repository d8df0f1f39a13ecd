import pytest
from textual.content import Content

from engine.protocol import Timings, Usage
from glimmer_tui.agent import events
from glimmer_tui.widgets import transcript as transcript_module
from glimmer_tui.widgets.answer import AnswerBlock
from glimmer_tui.widgets.block import TextBlock
from glimmer_tui.widgets.reasoning import ReasoningBlock
from glimmer_tui.widgets.sheet import Sheet
from glimmer_tui.widgets.tool_block import ToolBlock
from tools.base import Display

MOST_BLOCKS, SLACK, PAGE = 12, 3, 5


@pytest.fixture
def short_transcript(monkeypatch):
    """A conversation that is pruned after a few blocks instead of a hundred."""
    for name, value in (("MOST_BLOCKS", MOST_BLOCKS), ("SLACK", SLACK), ("PAGE", PAGE)):
        monkeypatch.setattr(transcript_module, name, value)


ANSWER = """# Found it

The sum ignores `count`.

```python
def total(items):
    return sum(i.price * i.count for i in items)
```

1. read
2. fixed

| file | lines |
|------|-------|
| cart.py | 1 |
"""


async def test_an_answer_streamed_a_character_at_a_time_is_drawn_like_one_drawn_at_once(stage):
    async with stage(size=(60, 40)) as on:
        await on.play(*(events.TextDelta(char) for char in ANSWER), events.TurnFinished("end", ANSWER))
        streamed = on.text()
        assert on.screen.query_one(AnswerBlock).text == ANSWER
    async with stage(size=(60, 40)) as on:
        await on.play(events.TextDelta(ANSWER), events.TurnFinished("end", ANSWER))
        assert on.text() == streamed
        assert "return sum(i.price * i.count for i in items)" in streamed
        assert "cart.py" in streamed


async def test_pieces_are_gathered_into_few_draws(stage, monkeypatch):
    from glimmer_tui.widgets.answer import GlimmerMarkdown

    draws = []
    append = GlimmerMarkdown.append
    monkeypatch.setattr(
        GlimmerMarkdown, "append", lambda self, text: draws.append(text) or append(self, text)
    )
    async with stage() as on:
        await on.play(*(events.TextDelta("word ") for _ in range(500)), events.TurnFinished("end", ""))
    assert "".join(draws) == "word " * 500
    assert len(draws) < 50


async def test_reasoning_is_one_line_that_opens(stage):
    async with stage() as on:
        await on.play(events.TurnStarted(1), events.ReasoningDelta("The total is wrong "))
        assert "Thinking…" in on.text() and "The total is wrong" not in on.text()
        on.clock.now += 3
        await on.play(events.ReasoningDelta("because."), events.TextDelta("Done."))
        assert "Thought for 3 s" in on.text()
        await on.pilot.press("tab", "enter")
        await on.until(lambda: "The total is wrong because." in on.text())
        await on.pilot.press("enter")
        await on.until(lambda: "because" not in on.text())
        assert on.screen.query_one(ReasoningBlock).has_focus
        await on.pilot.press("escape")
        assert on.screen.composer.has_focus


async def test_a_tool_call_shows_its_state_and_opens(stage):
    async with stage() as on:
        await on.play(events.ToolStarted("1", "read", "read cart.py"))
        block = on.screen.query_one(ToolBlock)
        assert block.state == "running" and block.live and "◌ read cart.py" in on.text()
        await on.play(
            events.ToolFinished(
                "1", "read", Display("cart.py (2 lines)", "a = 1\nb = 2", "code", "cart.py"), ""
            )
        )
        assert block.state == "ok" and "✓ read cart.py (2 lines)" in on.text() and "a = 1" not in on.text()
        await on.pilot.press("ctrl+o")
        await on.until(lambda: "a = 1" in on.text() and "b = 2" in on.text())
        await on.pilot.press("ctrl+o")
        await on.until(lambda: "a = 1" not in on.text())


async def test_failed_refused_and_red_calls_do_not_look_well(stage):
    async with stage() as on:
        await on.play(
            events.ToolFinished("1", "edit", Display("The text is not there"), "no_match"),
            events.ToolStarted("2", "run", "run rm -r build"),
            events.ToolFinished("2", "run", Display("Declined"), "declined"),
            events.ToolFinished("3", "test", Display("1 failed, 2 passed"), ""),
            events.ToolFinished("4", "test", Display("0 failed, 3 passed"), ""),
        )
        assert [block.state for block in on.screen.query(ToolBlock)] == ["failed", "denied", "failed", "ok"]
        assert "⊘ run rm -r build  declined" in on.text()


async def test_live_output_shows_its_last_lines_until_the_result_is_there(stage):
    async with stage() as on:
        await on.play(events.ToolStarted("1", "run", "run make"))
        for number in range(30):
            on.session.emit(events.ToolOutput("1", f"step {number}\r\n"))
        await on.play(events.ToolOutput("1", "10%\r20%\r30%"))
        assert "step 29" in on.text() and "step 20" not in on.text()
        assert "30%" in on.text() and "10%" not in on.text()
        await on.play(events.ToolFinished("1", "run", Display("make: exit 0", "ok", "terminal"), ""))
        assert "step 29" not in on.text()


async def test_a_turn_ends_with_what_it_changed_and_how_fast_it_was(stage):
    async with stage() as on:
        await on.play(
            events.TurnStarted(1),
            events.StepFinished(Usage(generated=30, context_used=2150, context_size=8192), Timings(0.5, 1.0)),
            events.StepFinished(Usage(generated=50, context_used=2300, context_size=8192), Timings(0.5, 1.0)),
            events.TurnFinished("end", "", ("a.py", "b.py")),
        )
        assert "changed a.py, b.py · 80 tokens · 40 tok/s" in on.text()
        assert "2.2k/8k" in on.text()


async def test_a_failure_says_what_why_and_what_to_do(stage):
    async with stage() as on:
        await on.play(
            events.TurnFailed("The model is gone.", "The file was removed.", "Start Glimmer again.")
        )
        for words in ("The model is gone.", "The file was removed.", "Start Glimmer again."):
            assert words in on.text()


async def test_the_end_is_followed_only_while_it_is_in_sight(stage):
    async with stage() as on:
        for number in range(30):
            await on.screen.transcript.add(_said(f"line {number}"))
        await on.until(lambda: "line 29" in on.text())
        await on.pilot.press("pageup")
        await on.pilot.press("pageup")
        await on.pilot.pause()
        seen = on.text()
        assert "line 29" not in seen
        await on.play(events.Notice("something new"))
        assert _without_bar(on.text()) == _without_bar(seen)
        await on.pilot.press("end")
        await on.until(lambda: "something new" in on.text())
        await on.play(events.Notice("newer still"))
        assert "newer still" in on.text()
        await on.pilot.press("home")
        await on.until(lambda: "Glimmer" in on.text())


async def test_old_blocks_leave_the_screen_and_come_back(stage, short_transcript):
    async with stage() as on:
        for number in range(MOST_BLOCKS + SLACK + 30):
            await on.screen.transcript.add(_said(f"line {number} ends"))
        transcript = on.screen.transcript
        assert MOST_BLOCKS <= len(transcript.blocks) <= MOST_BLOCKS + SLACK
        gone = transcript.earlier
        assert gone > 0
        await on.pilot.press("home")
        await on.until(lambda: f"… {gone} earlier messages" in on.text())
        await transcript.restore()
        await on.pilot.pause()
        assert transcript.earlier == gone - PAGE
        texts = [str(block.query_one("Static").visual) for block in transcript.blocks]
        numbers = [int(text.split()[1]) for text in texts if text.startswith("line")]
        assert numbers == list(range(numbers[0], numbers[-1] + 1))


async def test_a_running_call_is_never_taken_out(stage, short_transcript):
    async with stage() as on:
        await on.play(events.ToolStarted("1", "run", "run sleep"))
        for number in range(MOST_BLOCKS + SLACK + 5):
            await on.screen.transcript.add(_said(f"{number}"))
        await on.play(events.ToolFinished("1", "run", Display("slept: exit 0"), ""))
        assert on.screen.query_one(ToolBlock).state == "ok"


async def test_a_pruned_call_comes_back_with_its_result(stage, short_transcript):
    async with stage() as on:
        await on.play(
            events.ToolStarted("1", "read", "read a.py"),
            events.ToolFinished("1", "read", Display("a.py (1 line)", "x = 1", "code", "a.py"), ""),
        )
        for number in range(MOST_BLOCKS + SLACK + 5):
            await on.screen.transcript.add(_said(f"{number}"))
        assert not on.screen.query(ToolBlock)
        while on.screen.transcript.earlier:
            await on.screen.transcript.restore()
        block = on.screen.query_one(ToolBlock)
        block.set_open(True)
        await on.until(lambda: block.query(Sheet))
        assert block.state == "ok" and str(block.title()).startswith("✓ read a.py (1 line)")


async def test_a_new_conversation_begins_empty(stage):
    async with stage() as on:
        await on.play(
            events.UserMessage("remember me"), events.TextDelta("I do."), events.ConversationCleared()
        )
        assert "remember me" not in on.text() and "I do." not in on.text()
        assert "Glimmer" in on.text()


def _without_bar(text: str) -> list[str]:
    """The rows without the scroll bar, which may well move."""
    return [row[:70] for row in text.split("\n")]


def _said(text: str) -> TextBlock:

    return TextBlock(Content(text), "notice-block")
