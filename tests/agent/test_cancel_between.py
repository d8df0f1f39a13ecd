"""A cancel that falls between two steps of a call: nothing is asked and nothing is changed after it."""

import asyncio
import threading
from pathlib import PurePosixPath

import pytest

from engine.protocol import TextDelta
from engine.scripted import ScriptedEngine, call_reply, text_reply
from glimmer_tui.agent import events
from glimmer_tui.agent.events import TurnFinished
from glimmer_tui.agent.permissions import Permissions
from sandbox.actions import Mode
from sandbox.snapshots import Snapshots, Unrecorded
from tools.read import ReadTool

FIX = {"path": "calc.py", "old": "a - b", "new": "a + b"}
BROKEN = "def add(a, b):\n    return a - b\n"
CANCELLED = "Cancelled by the user."


class Gate:
    """A place where a worker thread stops: `reached` there, and on when `opened`."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.opened = threading.Event()

    def __call__(self) -> None:
        self.reached.set()
        assert self.opened.wait(30)


@pytest.mark.parametrize("mode", ["ask", "auto-edit"])
async def test_a_change_that_waited_for_a_read_is_dropped(world, monkeypatch, mode: Mode) -> None:
    gate, judged = Gate(), threading.Event()
    read, judge = ReadTool.apply, Permissions.judge

    def slow_read(self, plan, running):
        gate()
        return read(self, plan, running)

    def told_judge(self, actions):
        ruling = judge(self, actions)
        if actions[0].kind == "write":
            judged.set()
        return ruling

    monkeypatch.setattr(ReadTool, "apply", slow_read)
    monkeypatch.setattr(Permissions, "judge", told_judge)
    here = world([[*call_reply("read", {"path": "notes.txt"}), *call_reply("edit", FIX)]], mode=mode)
    here.answers = lambda request: None
    here.session.submit("Go.")
    assert await asyncio.to_thread(judged.wait, 30)
    # The change was judged a moment ago; let the turn come to where it waits for the read.
    await asyncio.sleep(0.1)
    here.session.cancel()
    gate.opened.set()

    assert await here.end() == TurnFinished("cancelled", "")
    assert not here.of(events.ApprovalRequested)
    assert here.results[1] == CANCELLED
    assert (here.root / "calc.py").read_text() == BROKEN


async def test_what_cannot_be_undone_is_not_asked_for_after_a_cancel(world, monkeypatch) -> None:
    gate = Gate()

    def slow(self, paths):
        gate()
        return (Unrecorded(PurePosixPath("calc.py"), "it is too large"),)

    monkeypatch.setattr(Snapshots, "before", slow)
    here = world([call_reply("edit", FIX)], mode="auto-edit")
    here.answers = lambda request: None
    here.session.submit("Go.")
    assert await asyncio.to_thread(gate.reached.wait, 30)
    here.session.cancel()
    gate.opened.set()

    assert await here.end() == TurnFinished("cancelled", "")
    assert not here.of(events.ApprovalRequested)
    assert here.results == [CANCELLED]


async def test_a_message_can_be_stopped_before_its_turn_begins(world) -> None:
    here = world([text_reply("Hello.")])
    here.session.submit("Go.")
    here.session.cancel()
    assert await here.end() == TurnFinished("cancelled", "")
    assert here.engine.requests == []
    assert await here.say("Now.") == TurnFinished("end", "Hello.")


async def test_a_message_sent_during_an_undo_waits_for_it(world, monkeypatch) -> None:
    gate, undo = Gate(), Snapshots.undo

    def slow(self, force=False):
        gate()
        return undo(self, force)

    monkeypatch.setattr(Snapshots, "undo", slow)
    here = world([call_reply("edit", FIX), text_reply("Fixed."), text_reply("I see.")], mode="auto-edit")
    await here.say("Fix it.")
    undoing = asyncio.create_task(here.session.undo())
    assert await asyncio.to_thread(gate.reached.wait, 30)
    here.session.submit("What now?")
    await asyncio.sleep(0)
    gate.opened.set()
    await undoing
    assert await here.end() == TurnFinished("end", "I see.")

    assert here.names().index("FilesRestored") < len(here.names()) - 1 - here.names()[::-1].index(
        "UserMessage"
    )
    *_, note, asked, answer = here.history
    assert "undid" in note.parts[0].text and asked.parts[0].text == "What now?"
    assert here.engine.requests[-1].messages[1:] == here.history[:-1]
    assert answer.role == "assistant"


async def test_a_message_sent_after_new_belongs_to_the_new_conversation(world, monkeypatch) -> None:
    resetting, go_on = asyncio.Event(), asyncio.Event()
    reset = ScriptedEngine.reset

    async def slow(self) -> None:
        resetting.set()
        await go_on.wait()
        await reset(self)

    monkeypatch.setattr(ScriptedEngine, "reset", slow)
    here = world([text_reply("One."), text_reply("Two.")])
    await here.say("First.")
    clearing = asyncio.create_task(here.session.new_conversation())
    await resetting.wait()
    here.session.submit("Second.")
    await asyncio.sleep(0)
    go_on.set()
    await clearing
    await here.end()

    said = [event.text for event in here.seen if isinstance(event, events.UserMessage)]
    assert said == ["First.", "Second."]
    names = here.names()
    assert names.index("ConversationCleared") < len(names) - 1 - names[::-1].index("UserMessage")
    assert [message.role for message in here.history] == ["user", "assistant"]


async def test_a_record_that_cannot_be_closed_fails_the_turn_and_no_more(world, monkeypatch) -> None:
    def broken(self):
        raise ZeroDivisionError("oh")

    here = world([[TextDelta("Hello.")], text_reply("Again.")])
    with monkeypatch.context() as patch:
        patch.setattr(Snapshots, "finish", broken)
        end = await here.say("Hi.")
    assert isinstance(end, events.TurnFailed) and end.kind == "internal"
    assert await here.say("And now?") == TurnFinished("end", "Again.")
    assert not here.session.busy
