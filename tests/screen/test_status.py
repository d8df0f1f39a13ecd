import pytest

from engine.protocol import Capabilities
from glimmer_tui.agent import events
from glimmer_tui.app import GlimmerApp
from glimmer_tui.screens.scripted import ScriptedSession
from glimmer_tui.widgets.status import WAITING, short

DEMO = Capabilities("glimmer-nano", None, 8192, is_demo=True)


async def test_it_says_what_goes_on(stage):
    async with stage() as on:
        for event, words in (
            (events.TurnStarted(1), "thinking"),
            (events.Prefilling(480, 1200), "reading 1.2k tokens 40%"),
            (events.ReasoningDelta("hm"), "thinking"),
            (events.TextDelta("so"), "writing"),
            (events.ToolStarted("1", "test", "test"), "running tests"),
            (events.ApprovalRequested("a", "1", "test", None, "", ""), WAITING),
            (events.ApprovalResolved("a", "allow"), "running tests"),
            (events.TurnFinished("end", ""), ""),
        ):
            await on.play(event)
            assert on.screen.status.status.activity == words


async def test_before_the_model_is_there_it_says_that_it_loads(stage):
    async with stage(opening=()) as on:
        assert "loading the model" in on.text()
        await on.play(events.ModelLoaded(DEMO))
        assert "loading" not in on.text() and "ready" in on.text()


async def test_a_demonstration_model_is_named_as_one(stage):
    async with stage(opening=(events.ModelLoaded(DEMO),)) as on:
        assert "Demonstration model." in on.text() and "glimmer --model PATH" in on.text()
        assert "demo glimmer-nano" in on.text()


async def test_nothing_ticks_when_nothing_goes_on(stage):
    async with stage() as on:
        on.app.animation_level = "full"
        assert on.screen.status.ticks is False
        await on.play(events.TurnStarted(1))
        assert on.screen.status.ticks is True
        await on.play(events.ApprovalRequested("a", "1", "test", None, "", ""))
        assert on.screen.status.ticks is False
        await on.play(events.ApprovalResolved("a", "deny"), events.TurnFinished("end", ""))
        assert on.screen.status.ticks is False


@pytest.mark.parametrize("width", [20, 40, 60, 80, 120, 200])
async def test_the_row_never_breaks(stage, width):
    async with stage(size=(width, 24)) as on:
        await on.play(
            events.StatusChanged("auto-edit", "xhigh", 7900, 8192, "feature/" + "x" * 80),
            events.TurnStarted(1),
        )
        assert on.screen.status.size.height == 1
        assert "thinking" in on.text().split("\n")[-1]


async def test_the_model_is_asked_for_only_after_the_first_paint_and_a_prompt_given_is_sent():
    session = ScriptedSession(lambda _: ())
    app = GlimmerApp(session, "no-such-theme", "fix it")
    assert session.calls == []
    async with app.run_test() as pilot:
        while ("submit", "fix it") not in session.calls:
            await pilot.pause(0.01)
        assert session.calls[0] == ("start",)
        while not app.screen.query(".notice-block"):
            await pilot.pause(0.01)
        assert app.theme == "glimmer-dark"


def test_counts_are_short():
    assert [short(n) for n in (0, 840, 2150, 8192, 32768, 131072)] == [
        "0",
        "840",
        "2.1k",
        "8k",
        "32k",
        "128k",
    ]
