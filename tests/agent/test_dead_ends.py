"""Going back: a call that failed as before is forgotten, and the next step is drawn another way."""

from engine.messages import ToolCall
from engine.protocol import SamplingWish
from engine.scripted import call_reply, text_reply
from glimmer_tui.agent import events
from glimmer_tui.agent.dead_ends import MOST_TRIES, DeadEnds
from glimmer_tui.agent.outcome import Outcome, declined
from sandbox.actions import Decision
from tools.base import Display, Result

NOWHERE = call_reply("read", {"path": "nowhere.py"})
LOOK = call_reply("read", {"path": "calc.py"})
FIX = call_reply("edit", {"path": "calc.py", "old": "a - b", "new": "a + b"})


def step(
    ends: DeadEnds, name: str, error: str = "", tool: str = "read", changed: tuple = ()
) -> tuple[str, ...]:
    result = Result(f"{name} said {error}", Display(name), error, changed)
    ends.add((f"m-{name}", f"r-{name}"), [(name, Outcome(ToolCall("c", tool, {}), result))])
    return ends.leave()


async def test_what_failed_twice_is_forgotten_by_the_model_and_kept_in_the_record(world) -> None:
    here = world([LOOK, NOWHERE, LOOK, NOWHERE, text_reply("Another way.")], sampling=SamplingWish(0.0))
    end = await here.say("Go.")

    assert end == events.TurnFinished("end", "Another way.")
    first, *_, before, after = (request.messages for request in here.engine.requests)
    assert len(before) > len(after)
    assert after == (*first, *before[len(first) : len(first) + 2])
    assert [request.sampling.temperature for request in here.engine.requests] == [0.0] * 4 + [1.0]
    assert sum("nowhere.py" in result for result in here.results) == 2
    assert "tries another way" in here.of(events.Notice)[-1].text


async def test_the_next_turn_sees_what_the_last_one_saw(world) -> None:
    here = world([NOWHERE, NOWHERE, text_reply("Done."), text_reply("Yes.")])
    await here.say("Go.")
    await here.say("Sure?")

    asked = [request.messages for request in here.engine.requests]
    assert asked[3][: len(asked[2])] == asked[2]
    assert len(asked[3]) == len(asked[2]) + 2


async def test_a_change_that_was_made_is_not_forgotten(world) -> None:
    here = world([NOWHERE, FIX, NOWHERE, text_reply("Done.")])
    await here.say("Go.")

    assert len(here.engine.requests[3].messages) == len(here.engine.requests[0].messages) + 6


async def test_a_no_of_the_person_is_not_forgotten(world) -> None:
    here = world([FIX, FIX, text_reply("Then not.")])
    here.answers = lambda request: Decision("deny", "Leave that line.")
    await here.say("Go.")

    assert sum("Leave that line." in str(message) for message in here.engine.requests[2].messages) == 2


def test_it_ends_after_a_few_tries() -> None:
    ends = DeadEnds()
    left = [step(ends, "a", "not_found") for _ in range(10)]
    assert [bool(ids) for ids in left] == [False, *[True] * MOST_TRIES, *[False] * (9 - MOST_TRIES)]
    assert left[1] == ("m-a", "r-a") * 2


def test_what_may_have_done_something_is_never_forgotten() -> None:
    ends = DeadEnds()
    step(ends, "make", "exit_code", tool="run")
    assert step(ends, "make", "exit_code", tool="run") == ()
    refused = [("b", Outcome(ToolCall("c", "edit", {}), declined("no")))]
    ends = DeadEnds()
    for _ in range(3):
        ends.add(("m", "r"), refused)
        assert ends.leave() == ()


def test_calls_that_do_not_fail_are_no_dead_end() -> None:
    ends = DeadEnds()
    assert [step(ends, name) for name in "aabab"] == [()] * 5


def test_each_try_is_drawn_another_way_and_the_same_from_run_to_run() -> None:
    wishes = []
    for _ in range(2):
        ends = DeadEnds()
        for _ in range(4):
            step(ends, "a", "not_found")
            wishes.append(ends.warmer(SamplingWish(0.0)))
    assert wishes[:4] == wishes[4:]
    assert len(set(wishes[1:4])) == 3
    assert ends.warmer(None) == SamplingWish()
    assert ends.warmer(SamplingWish(0.2, seed=5)).temperature == 1.0
    assert ends.warmer(SamplingWish(1.3)).temperature == 1.3
