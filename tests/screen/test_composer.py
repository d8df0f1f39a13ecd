import pytest
from textual._xterm_parser import XTermParser
from textual.events import Key

from glimmer_tui.agent import events


def submitted(on) -> list[object]:
    return [call[1] for call in on.session.calls if call[0] == "submit"]


def endless(_text: str):
    return (events.TurnStarted(1), events.TextDelta("working"), 3600.0)


async def test_enter_sends_and_the_other_keys_make_lines(stage):
    async with stage() as on:
        await on.pilot.press(*"one", "ctrl+j", *"two", "alt+enter", *"three", "shift+enter", *"four")
        assert on.screen.composer.text == "one\ntwo\nthree\nfour"
        await on.pilot.press("enter")
        assert submitted(on) == ["one\ntwo\nthree\nfour"] and on.screen.composer.text == ""
        await on.pilot.press("enter", "space", "enter")
        assert len(submitted(on)) == 1


async def test_it_grows_to_a_third_of_the_screen(stage):
    async with stage(size=(80, 24)) as on:
        assert on.screen.composer.size.height == 1
        await on.pilot.press(*["ctrl+j"] * 4)
        await on.until(lambda: on.screen.composer.size.height == 5)
        await on.pilot.press(*["ctrl+j"] * 10)
        await on.until(lambda: on.screen.composer.size.height == 8)
        await on.pilot.resize_terminal(40, 12)
        await on.until(lambda: on.screen.composer.size.height == 4)


async def test_the_past_is_reached_at_the_edges(stage):
    async with stage() as on:
        await on.pilot.press(*"first", "enter", *"second", "enter", *"draft")
        await on.pilot.press("up")
        assert on.screen.composer.text == "second"
        await on.pilot.press("up")
        assert on.screen.composer.text == "first"
        await on.pilot.press("up")
        assert on.screen.composer.text == "first"
        await on.pilot.press("down", "down")
        assert on.screen.composer.text == "draft"


async def test_up_moves_inside_a_text_of_several_lines(stage):
    async with stage() as on:
        await on.pilot.press(*"old", "enter", *"one", "ctrl+j", *"two", "up")
        assert on.screen.composer.text == "one\ntwo" and on.screen.composer.cursor_location[0] == 0
        await on.pilot.press("up")
        assert on.screen.composer.text == "old"


async def test_what_is_sent_during_a_turn_is_shown_as_queued(stage):
    async with stage(endless) as on:
        await on.pilot.press(*"go", "enter")
        await on.until(lambda: "working" in on.text())
        await on.pilot.press(*"and then this", "enter")
        await on.until(lambda: "queued  and then this" in on.text())
        assert submitted(on) == ["go", "and then this"]
        await on.play(events.UserMessage("and then this", steering=True))
        assert "queued" not in on.text() and "and then this" in on.text()


async def test_escape_stops_the_turn(stage):
    async with stage(endless) as on:
        await on.pilot.press("escape")
        assert ("cancel",) not in on.session.calls
        await on.pilot.press(*"go", "enter")
        await on.until(lambda: "working" in on.text())
        await on.pilot.press("escape")
        await on.until(lambda: "stopped" in on.text())
        assert ("cancel",) in on.session.calls and on.screen.status.status.activity == ""


async def test_ctrl_c_clears_then_stops_then_quits_when_pressed_twice(stage):
    async with stage(endless) as on:
        await on.pilot.press(*"go", "enter")
        await on.until(lambda: "working" in on.text())
        await on.pilot.press(*"half a thought", "ctrl+c")
        assert on.screen.composer.text == "" and ("cancel",) not in on.session.calls
        await on.pilot.press("ctrl+c")
        await on.until(lambda: not on.session.busy)
        assert on.app.is_running
        await on.pilot.press("ctrl+c")
        assert "Ctrl+C again to quit" in on.text() and on.app.is_running
        on.clock.now += 5
        await on.pilot.press("ctrl+c")
        assert on.app.is_running
        await on.pilot.press("ctrl+c")
        await on.until(lambda: not on.app.is_running)


async def test_a_slash_completes_commands_and_their_values(stage):
    async with stage() as on:
        await on.pilot.press("/")
        assert "/help" in on.text() and "/quit" in on.text()
        await on.pilot.press("m")
        assert "/quit" not in on.text()
        await on.pilot.press("tab")
        assert on.screen.composer.text == "/mode "
        await on.until(lambda: "/mode read-only" in on.text())
        await on.pilot.press("down", "down", "enter")
        await on.until(lambda: ("set_mode", "auto-edit") in on.session.calls)
        assert on.screen.composer.text == ""


async def test_escape_closes_the_completions_and_keeps_the_text(stage):
    async with stage() as on:
        await on.pilot.press("/", "escape")
        await on.pilot.pause()
        assert "/quit" not in on.text() and on.screen.composer.text == "/"


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("/new", ("new_conversation",)),
        ("/redo", ("redo",)),
        ("/reasoning xhigh", ("set_reasoning", "xhigh")),
        ("/mode auto", ("set_mode", "auto")),
    ],
)
async def test_a_command_calls_the_session(stage, text, call):
    async with stage() as on:
        on.screen.composer.load_text(text)
        on.screen.composer.send()
        await on.until(lambda: call in on.session.calls)
        assert submitted(on) == []


async def test_a_wrong_command_or_value_is_told(stage):
    async with stage() as on:
        for text, words in (
            ("/nope", "no command /nope"),
            ("/mode loud", "/mode takes one of: read-only, ask"),
        ):
            on.screen.composer.load_text(text)
            on.screen.composer.send()
            await on.until(lambda words=words: words in on.text())
        on.screen.composer.load_text("/usr/bin is a path")
        on.screen.composer.send()
        await on.until(lambda: submitted(on) == ["/usr/bin is a path"])


async def test_quit_leaves_and_closes_the_session(stage):
    async with stage() as on:
        await on.pilot.press(*"/quit", "enter")
        await on.until(lambda: not on.app.is_running)
    assert on.session.calls[-1] == ("close",)


async def test_shift_tab_goes_round_the_modes(stage):
    async with stage() as on:
        for mode in ("auto-edit", "auto", "read-only", "ask"):
            await on.pilot.press("shift+tab")
            await on.until(lambda mode=mode: on.screen.status.status.mode == mode)
            assert mode in on.text()


async def test_help_opens_on_a_question_mark_in_an_empty_composer_only(stage):
    async with stage(size=(100, 60)) as on:
        await on.pilot.press("a", "question_mark")
        assert on.screen.composer.text == "a?" and len(on.app.screen_stack) == 1
        await on.pilot.press("ctrl+c", "question_mark")
        await on.until(lambda: "Shift+Tab" in on.text() and "/reasoning" in on.text())
        await on.pilot.press("escape")
        await on.until(lambda: len(on.app.screen_stack) == 1)


async def test_alt_enter_is_a_key_of_its_own_in_plain_terminals(stage):
    async with stage():
        tokens = list(XTermParser().feed("\x1b\r\r"))
    assert [token.key for token in tokens if isinstance(token, Key)] == ["alt+enter", "enter"]
