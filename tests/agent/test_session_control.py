"""What the person does while a turn runs: approve, decline, steer, cancel, undo."""

import asyncio
import os
from pathlib import Path

import pytest

from engine.messages import Text, ToolResult, text_of
from engine.protocol import TextDelta
from engine.scripted import Hold, call_reply, text_reply
from glimmer_tui.agent import events
from glimmer_tui.agent.history import open_calls
from glimmer_tui.agent.permissions import Permissions
from glimmer_tui.agent.prompt import Instructions
from sandbox.actions import Decision
from sandbox.snapshots import SnapshotError, Snapshots
from tools.base import CommandLine, FileChange
from tools.read import ReadTool

FIX = {"path": "calc.py", "old": "a - b", "new": "a + b"}
BROKEN = "def add(a, b):\n    return a - b\n"
MENDED = "def add(a, b):\n    return a + b\n"


async def test_an_approval_shows_exactly_what_will_be_written(world) -> None:
    here = world([call_reply("edit", FIX), text_reply("Done.")])
    await here.say("Fix it.")

    (request,) = here.of(events.ApprovalRequested)
    assert request.preview == FileChange("calc.py", BROKEN, MENDED)
    assert request.always == "edits to files in this project for this session"
    assert (here.root / "calc.py").read_text() == MENDED


async def test_a_file_that_changes_while_the_person_thinks_is_not_overwritten(world) -> None:
    here = world([call_reply("edit", FIX), text_reply("Oh.")])
    here.answers = lambda request: None
    here.session.submit("Fix it.")
    request = await here.until(events.ApprovalRequested)
    (here.root / "calc.py").write_text("# mine\n" + BROKEN)
    here.session.reply(request.id, Decision("allow"))
    await here.end()

    assert (here.root / "calc.py").read_text() == "# mine\n" + BROKEN
    assert here.of(events.ToolFinished)[0].error == "changed_since"


@pytest.mark.parametrize(
    ("note", "words"),
    [("", "The user declined this call."), ("Use sum().", "The user declined this call: Use sum().")],
)
async def test_a_declined_call_changes_nothing_and_says_why(world, note: str, words: str) -> None:
    here = world([call_reply("edit", FIX), text_reply("As you like.")])
    here.answers = lambda request: Decision("deny", note)
    end = await here.say("Fix it.")

    assert end == events.TurnFinished("end", "As you like.")
    assert here.results == [words]
    assert (here.root / "calc.py").read_text() == BROKEN
    assert not here.of(events.SnapshotTaken)
    assert here.of(events.ApprovalResolved)[0].note == note


async def test_always_is_asked_once(world) -> None:
    back = {"path": "calc.py", "old": "a + b", "new": "b + a"}
    here = world([call_reply("edit", FIX), call_reply("edit", back), text_reply("Done.")])
    here.answers = lambda request: Decision("allow_always")
    await here.say("Fix it.")

    assert len(here.of(events.ApprovalRequested)) == 1
    assert "b + a" in (here.root / "calc.py").read_text()


async def test_the_rules_refuse_without_asking(world) -> None:
    here = world([call_reply("edit", FIX), call_reply("run", {"command": "sudo ls"}), text_reply("Well.")])
    here.session.set_mode("read-only")
    await here.say("Fix it.")

    assert not here.of(events.ApprovalRequested)
    assert all(result.startswith("Not allowed: ") for result in here.results)
    assert (here.root / "calc.py").read_text() == BROKEN


async def test_a_mode_set_in_the_middle_of_a_turn_counts_from_the_next_call(world) -> None:
    here = world(
        [call_reply("edit", FIX), call_reply("run", {"command": "echo x > out"}), text_reply("Done.")]
    )

    def allow_then_trust(request: events.ApprovalRequested) -> Decision:
        here.session.set_mode("auto")
        return Decision("allow")

    here.answers = allow_then_trust
    await here.say("Go.")
    assert len(here.of(events.ApprovalRequested)) == 1
    assert (here.root / "out").read_text() == "x\n"


async def test_an_answer_nobody_asked_for_is_ignored(world) -> None:
    here = world([call_reply("run", {"command": "touch x"}), text_reply("Ran.")])
    here.answers = lambda request: None
    here.session.submit("Go.")
    request = await here.until(events.ApprovalRequested)
    assert isinstance(request.preview, CommandLine)
    here.session.reply("no such id", Decision("allow"))
    here.session.reply(request.id, Decision("deny"))
    here.session.reply(request.id, Decision("allow"))
    await here.end()
    assert not (here.root / "x").exists()
    assert len(here.of(events.ApprovalResolved)) == 1


async def test_a_message_sent_during_a_turn_steers_it(world) -> None:
    hold = Hold()
    here = world([[hold, *call_reply("read", {"path": "calc.py"})], text_reply("In French: bon.")])
    here.session.submit("Look.")
    await here.until(events.TurnStarted)
    await hold.reached.wait()
    here.session.submit("In French.")
    hold.release()
    await here.end()

    assert here.names(events.ModelLoaded) == [
        "UserMessage",
        "TurnStarted",
        "MessageQueued",
        "ToolStarted",
        "ToolFinished",
        "UserMessage",
        "TurnFinished",
    ]
    assert here.of(events.UserMessage)[1] == events.UserMessage("In French.", steering=True)
    roles = [message.role for message in here.engine.requests[1].messages]
    assert roles == ["system", "user", "assistant", "tool", "user"]


async def test_a_message_sent_during_the_last_step_begins_the_next_turn(world) -> None:
    hold = Hold()
    here = world([[TextDelta("Hello."), hold], text_reply("Bye.")])
    here.session.submit("Hi.")
    await here.until(events.TextDelta)
    here.session.submit("Bye.")
    hold.release()

    assert await here.end() == events.TurnFinished("end", "Hello.")
    assert here.session.busy
    assert await here.end() == events.TurnFinished("end", "Bye.")
    assert not here.session.busy
    assert [turn.turn for turn in here.of(events.TurnStarted)] == [1, 2]


async def test_cancelling_the_writing_keeps_what_was_written(world) -> None:
    here = world([[TextDelta("Half a"), Hold(), TextDelta(" sentence")], text_reply("Whole.")])
    here.session.submit("Go.")
    await here.until(events.TextDelta)
    here.session.cancel()

    assert await here.end() == events.TurnFinished("cancelled", "Half a")
    assert here.history[-1].parts == (Text("Half a"),)
    assert await here.say("Go on.") == events.TurnFinished("end", "Whole.")


async def test_cancelling_after_a_call_was_written_closes_it(world) -> None:
    hold = Hold()
    here = world([[*call_reply("edit", FIX), hold]])
    here.session.submit("Go.")
    await hold.reached.wait()
    here.session.cancel()

    assert (await here.end()) == events.TurnFinished("cancelled", "")
    assert here.results == ["Cancelled by the user."]
    assert (here.root / "calc.py").read_text() == BROKEN


async def test_cancelling_an_open_approval_declines_it(world) -> None:
    two = [*call_reply("edit", FIX), *call_reply("write", {"path": "new.py", "content": "x = 1\n"})]
    here = world([two])
    here.answers = lambda request: None
    here.session.submit("Go.")
    await here.until(events.ApprovalRequested)
    here.session.cancel()

    assert await here.end() == events.TurnFinished("cancelled", "")
    assert here.of(events.ApprovalResolved)[0].verdict == "deny"
    assert here.results == ["Cancelled by the user."] * 2
    assert open_calls(here.history) == ()
    assert not (here.root / "new.py").exists()


async def test_cancelling_a_command_stops_it(world) -> None:
    here = world([call_reply("run", {"command": "echo begun; sleep 600; echo over"})], mode="auto")
    here.session.submit("Go.")
    await here.until(events.ToolOutput)
    here.session.cancel()

    assert await here.end() == events.TurnFinished("cancelled", "")
    assert "begun" in here.results[0]
    assert "over" not in here.results[0]
    assert "[cancelled]" in here.results[0]


async def test_cancelling_before_the_model_is_loaded(world, monkeypatch: pytest.MonkeyPatch) -> None:
    here = world([text_reply("Never.")])
    gate = asyncio.Event()
    load = here.engine.load

    async def slow():
        await gate.wait()
        return await load()

    monkeypatch.setattr(here.engine, "load", slow)
    await here.session.start()
    here.session.submit("Go.")
    await here.until(events.TurnStarted)
    here.session.cancel()
    assert await here.end() == events.TurnFinished("cancelled", "")
    gate.set()
    await here.until(events.ModelLoaded)
    assert here.engine.requests == []


async def test_cancelling_when_nothing_runs_does_nothing(world) -> None:
    here = world([text_reply("Hello.")])
    here.session.cancel()
    assert await here.say("Hi.") == events.TurnFinished("end", "Hello.")
    here.session.cancel()
    assert not here.session.busy


async def test_a_tool_with_a_bug_is_an_error_for_the_model_and_a_notice(world, monkeypatch) -> None:
    def broken(self, plan, running):
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(ReadTool, "apply", broken)
    here = world([call_reply("read", {"path": "calc.py"}), text_reply("Odd.")])
    end = await here.say("Go.")

    assert end == events.TurnFinished("end", "Odd.")
    assert here.results == ["The tool itself failed (ZeroDivisionError). Try another way."]
    assert any(notice.level == "error" for notice in here.of(events.Notice))
    assert "ZeroDivisionError: oh" in (here.state / "glimmer.log").read_text()


async def test_a_plan_that_cannot_be_judged_is_not_carried_out(world, monkeypatch) -> None:
    def broken(self, actions):
        raise RecursionError("too deep")

    monkeypatch.setattr(Permissions, "judge", broken)
    here = world([call_reply("edit", FIX), text_reply("Odd.")], mode="auto")
    await here.say("Fix it.")
    assert (here.root / "calc.py").read_text() == BROKEN
    assert here.results == ["The tool itself failed (RecursionError). Try another way."]


async def test_undo_and_redo_put_files_back_and_tell_the_model(world) -> None:
    here = world([call_reply("edit", FIX), text_reply("Fixed."), text_reply("I see.")], mode="auto-edit")
    await here.say("Fix it.")

    assert [item.path.as_posix() for item in await here.session.preview_undo()] == ["calc.py"]
    await here.session.undo()
    assert (here.root / "calc.py").read_text() == BROKEN
    await here.session.redo()
    assert (here.root / "calc.py").read_text() == MENDED
    await here.session.undo()
    await here.say("And now?")
    assert here.of(events.FilesRestored) == [
        events.FilesRestored(("calc.py",)),
        events.FilesRestored(("calc.py",), redo=True),
        events.FilesRestored(("calc.py",)),
    ]
    notes = [text_of(message) for message in here.history if text_of(message).startswith("[Glimmer]")]
    assert len(notes) == 3
    assert "undid your last changes to calc.py" in notes[0]


async def test_undo_leaves_the_persons_own_work_alone(world) -> None:
    here = world([call_reply("edit", FIX), text_reply("Fixed.")], mode="auto-edit")
    await here.say("Fix it.")
    (here.root / "calc.py").write_text("# mine\n")
    await here.session.undo()

    assert (here.root / "calc.py").read_text() == "# mine\n"
    await here.session.close()
    await here.until_closed()
    assert not here.of(events.FilesRestored)
    assert "calc.py was left alone" in here.of(events.Notice)[-1].text


async def test_nothing_to_undo_is_said(world) -> None:
    here = world([])
    await here.session.undo()
    await here.session.redo()
    await here.session.close()
    await here.until_closed()
    assert [notice.text for notice in here.of(events.Notice)] == ["Nothing to undo.", "Nothing to redo."]


async def test_undo_waits_for_the_turn(world) -> None:
    here = world([[Hold()]])
    here.session.submit("Go.")
    await here.until(events.TurnStarted)
    assert await here.session.undo() == ()
    await here.session.new_conversation()
    here.session.cancel()
    await here.end()
    assert len(here.of(events.Notice)) == 2
    assert not here.of(events.ConversationCleared)


async def test_nothing_is_written_when_it_could_not_be_recorded(world, monkeypatch) -> None:
    def full(self, paths):
        raise SnapshotError("The disk is full.")

    monkeypatch.setattr(Snapshots, "before", full)
    here = world([call_reply("edit", FIX), text_reply("Hm.")], mode="auto")
    await here.say("Fix it.")
    assert (here.root / "calc.py").read_text() == BROKEN
    assert here.results == ["Not run: the files could not be recorded for undo."]


async def test_what_cannot_be_undone_is_asked_for_in_every_mode(world, monkeypatch) -> None:
    monkeypatch.setenv("PATH", os.fspath(Path("/nonexistent")))
    here = world([call_reply("edit", FIX), text_reply("Done.")], mode="auto")
    await here.session.start()
    await here.say("Fix it.")
    (request,) = here.of(events.ApprovalRequested)
    assert request.reason == "Undo is not available in this folder."
    assert request.always == ""
    assert here.of(events.Notice)[0].text.startswith("Undo is not available")
    assert (here.root / "calc.py").read_text() == MENDED


async def test_a_new_conversation_forgets_and_is_saved_apart(world) -> None:
    here = world([text_reply("One."), text_reply("Two.")], instructions=Instructions("Use tabs."))
    await here.say("First.")
    await here.session.new_conversation()
    assert here.history == ()
    await here.say("Second.")

    assert here.engine.resets == 1
    assert [message.role for message in here.engine.requests[1].messages] == ["system", "user"]
    assert all("Use tabs." in text_of(request.messages[1]) for request in here.engine.requests)
    assert len(list((here.state / "sessions").glob("*/*.jsonl"))) == 2


async def test_reasoning_and_mode_are_published_and_used(world) -> None:
    here = world([text_reply("One."), text_reply("Two.")])
    await here.say("First.")
    here.session.set_reasoning("low")
    here.session.set_mode("auto")
    await here.say("Second.")

    assert [request.strength for request in here.engine.requests] == ["high", "low"]
    status = here.of(events.StatusChanged)[-1]
    assert (status.mode, status.strength) == ("auto", "low")


async def test_instructions_go_with_the_first_message_only(world) -> None:
    here = world([text_reply("One."), text_reply("Two.")], instructions=Instructions("Use tabs."))
    await here.say("First.")
    await here.say("Second.")
    assert "Use tabs." in text_of(here.history[0])
    assert text_of(here.history[2]) == "Second."
    assert here.of(events.UserMessage)[0].text == "First."


async def test_closing_in_the_middle_of_a_turn_leaves_a_valid_history(world) -> None:
    hold = Hold()
    here = world([[*call_reply("run", {"command": "ls"}), hold]])
    here.session.submit("Go.")
    await hold.reached.wait()
    await here.session.close()
    await here.until_closed()

    assert open_calls(here.history) == ()
    assert here.engine.is_closed
    last = here.history[-1].parts[0]
    assert isinstance(last, ToolResult)
    assert last.is_error


async def test_the_audit_log_tells_what_was_decided_and_done(world) -> None:
    here = world([call_reply("edit", FIX), text_reply("Fixed.")])
    await here.say("Fix it.")
    log = (here.state / "audit.jsonl").read_text()
    assert '"kind": "decision"' in log
    assert "write calc.py" in log
    assert '"kind": "result"' in log
