import pytest

from glimmer_tui.agent import events
from glimmer_tui.widgets.approval import ApprovalPrompt, reason_text
from sandbox.actions import Decision
from tools.base import CommandLine, FileChange

CHANGE = FileChange("cart.py", "a = 1\nb = 2\nc = 3\n", "a = 1\nb = 20\nc = 3\n")
ALWAYS = "edits to files in this project"


def asked(id: str = "a1", preview=CHANGE, always: str = ALWAYS) -> tuple[events.Event, ...]:
    return (
        events.ToolStarted(f"call-{id}", "edit", "edit cart.py"),
        events.ApprovalRequested(id, f"call-{id}", "edit", preview, "It changes a file.", always),
    )


def script(_text: str) -> tuple[events.Event, ...]:
    return (events.TurnStarted(1), *asked(), events.TurnFinished("end", ""))


def replies(on) -> list[tuple[object, ...]]:
    return [call[1:] for call in on.session.calls if call[0] == "reply"]


async def ask(on) -> None:
    on.session.submit("go")
    await on.until(lambda: on.screen.prompt is not None and on.screen.prompt.has_focus)


async def test_the_prompt_shows_the_numbered_change_the_reason_and_the_keys(stage):
    async with stage(script) as on:
        await ask(on)
        text = on.text()
        for words in (
            "Change cart.py   +1 -1",
            "2 - b = 2",
            "2 + b = 20",
            "It changes a file.",
            f"a always: {ALWAYS}",
        ):
            assert words in text
        assert "waiting for you" in text and "waits for you" in text


@pytest.mark.parametrize(
    ("keys", "decision"),
    [
        ("y", Decision("allow")),
        ("a", Decision("allow_always")),
        (("n", "enter"), Decision("deny")),
        (("n", *"use a set", "enter"), Decision("deny", "use a set")),
    ],
)
async def test_a_key_answers(stage, keys, decision):
    async with stage(script) as on:
        await ask(on)
        await on.answer(*keys)
        await on.until(lambda: replies(on))
        assert replies(on) == [("a1", decision)]
        await on.until(lambda: on.screen.prompt is None)
        assert on.screen.composer.has_focus


async def test_escape_in_the_note_goes_back_and_escape_again_stops_the_turn(stage):
    async with stage(script) as on:
        await on.until(lambda: True)
        await ask(on)
        await on.answer("n", "x", "escape")
        assert on.screen.prompt.has_focus and replies(on) == []
        await on.answer("escape")
        await on.until(lambda: ("cancel",) in on.session.calls)
        assert replies(on) == [("a1", Decision("deny"))]


async def test_keys_that_come_at_once_or_in_a_burst_answer_nothing(stage):
    async with stage(script) as on:
        await ask(on)
        await on.pilot.press("y", "a", "n")
        on.clock.now += 0.25
        await on.pilot.press("y")
        on.clock.now += 0.25
        await on.pilot.press("y")
        assert replies(on) == [] and on.screen.prompt.has_focus
        on.clock.now += 0.31
        await on.pilot.press("y")
        assert replies(on) == [("a1", Decision("allow"))]


async def test_somebody_who_is_writing_goes_on_writing(stage):
    async with stage(script) as on:
        await on.pilot.press(*"wait")
        on.session.submit("go")
        await on.until(lambda: on.screen.prompt is not None)
        on.clock.now += 1
        await on.pilot.press(*" yna")
        assert replies(on) == [] and on.screen.composer.text == "wait yna"
        assert "Tab to answer" in on.text()
        await on.pilot.press("tab")
        assert on.screen.prompt.has_focus and "y yes" in on.text()
        await on.answer("y")
        assert replies(on) == [("a1", Decision("allow"))]
        await on.until(lambda: on.screen.composer.has_focus)
        assert on.screen.composer.text == "wait yna"


async def test_always_is_offered_only_where_it_means_something(stage):
    async with stage() as on:
        await on.play(*asked(always=""))
        assert "always" not in on.text()
        await on.answer("a")
        assert replies(on) == []


async def test_the_exact_command_is_shown_with_what_would_hide_in_it(stage):
    command = "ls \u202e-l\trm [bold]\nrm -rf ~ # " + "x" * 200 + " end"
    async with stage(size=(60, 30)) as on:
        await on.play(*asked(preview=CommandLine(command, "sub", 60.0)))
        text = on.text()
        assert "\\u202e" in text and "\\t" in text and "[bold]" in text and "\u202e" not in text
        assert "\\n" in text and "rm -rf ~" in text and " end" in text and "in sub, at most 60 s" in text


async def test_approvals_wait_their_turn(stage):
    async with stage() as on:
        await on.play(*asked("one"), *asked("two"))
        assert len(on.screen.query(ApprovalPrompt)) == 1 and on.screen.prompt.request.id == "one"
        await on.play(events.ApprovalResolved("one", "allow"))
        assert on.screen.prompt.request.id == "two" and on.screen.prompt.guarded
        await on.play(events.ApprovalResolved("two", "deny"))
        assert on.screen.prompt is None


async def test_an_approval_settled_elsewhere_leaves_the_screen(stage):
    async with stage() as on:
        await on.play(*asked("one"), *asked("two"), events.ApprovalResolved("two", "deny"))
        assert on.screen.prompt.request.id == "one"
        await on.play(events.ApprovalResolved("one", "deny"))
        assert on.screen.prompt is None and on.screen.composer.has_focus


@pytest.mark.parametrize("size", [(40, 12), (80, 24), (200, 60)])
async def test_the_keys_the_composer_and_the_status_are_in_sight_at_every_size(stage, size):
    long = FileChange("long.py", None, "".join(f"line_{n} = {n}\n" for n in range(3000)))
    async with stage(size=size) as on:
        await on.play(*asked(preview=long))
        text = on.text()
        for words in ("Create long.py", "y yes", "Esc stop", "Say what you want", "waiting for you"):
            assert words in text
        on.clock.now += 1
        await on.pilot.press("end")
        await on.until(lambda: "line_2999" in on.text())


def test_a_reason_shows_names_as_they_are() -> None:
    assert reason_text("`a.py` would be changed.").plain == "a.py would be changed."
    for reason in ("`a`b`.py` would be changed.", "It holds ` once.", "Nothing to mark."):
        assert reason_text(reason).plain == reason
