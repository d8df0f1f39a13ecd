"""Turns as a person sees them: the order of events, and the history that stays behind."""

import pytest

from engine.errors import ContextFull, EngineError, ModelError
from engine.messages import Message, Reasoning, Text, ToolCall, ToolResult, text_of
from engine.protocol import Capabilities, Done, ReasoningDelta, TextDelta, ToolCallFailed, Usage
from engine.scripted import ScriptedEngine, call_reply, text_reply
from glimmer_tui.agent import events
from glimmer_tui.agent.store import ConversationFile

FIX = {"path": "calc.py", "old": "a - b", "new": "a + b"}


async def test_an_answer_is_streamed_and_kept(world) -> None:
    here = world([text_reply("It adds two numbers.", reasoning="Easy enough.")])
    end = await here.say("What is this?")

    assert end == events.TurnFinished("end", "It adds two numbers.")
    assert here.names() == ["UserMessage", "TurnStarted", "ModelLoaded", "TurnFinished"]
    assert "".join(delta.text for delta in here.of(events.TextDelta)) == "It adds two numbers."
    assert [message.role for message in here.history] == ["user", "assistant"]
    assert here.history[0].parts == (Text("What is this?"),)
    assert here.history[1].parts == (Reasoning("Easy enough."), Text("It adds two numbers."))
    assert here.history[1].id == here.engine.requests[0].reply_id


async def test_the_next_request_only_adds_to_the_one_before(world) -> None:
    here = world([call_reply("read", {"path": "calc.py"}), text_reply("Read."), text_reply("Again.")])
    await here.say("Look.")
    await here.say("And now?")

    asked = [request.messages for request in here.engine.requests]
    assert asked[1][: len(asked[0])] == asked[0]
    assert asked[2][: len(asked[1])] == asked[1]
    assert [message.role for message in asked[2]] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]
    assert all(request.tools == here.engine.requests[0].tools for request in here.engine.requests)


async def test_a_fix_from_question_to_answer(world) -> None:
    here = world(
        [
            call_reply("read", {"path": "calc.py"}),
            call_reply("edit", FIX, call_id="e"),
            text_reply("Fixed: it adds now."),
        ]
    )
    end = await here.say("Fix add.")

    assert end == events.TurnFinished("end", "Fixed: it adds now.", ("calc.py",))
    assert here.names(events.ModelLoaded) == [
        "UserMessage",
        "TurnStarted",
        "ToolStarted",
        "ToolFinished",
        "ToolStarted",
        "ApprovalRequested",
        "ApprovalResolved",
        "SnapshotTaken",
        "ToolFinished",
        "TurnFinished",
    ]
    assert [started.summary for started in here.of(events.ToolStarted)] == ["read calc.py", "edit calc.py"]
    assert here.of(events.SnapshotTaken)[0].paths == ("calc.py",)
    assert (here.root / "calc.py").read_text() == "def add(a, b):\n    return a + b\n"


async def test_reads_answer_in_the_order_of_the_calls(world) -> None:
    calls = [
        *call_reply("read", {"path": "calc.py"}, call_id="r1"),
        *call_reply("search", {"pattern": "return"}, call_id="r2"),
        *call_reply("read", {"path": "nowhere.py"}, call_id="r3"),
        *call_reply("edit", FIX, call_id="w"),
        *call_reply("read", {"path": "calc.py"}, call_id="r4"),
    ]
    here = world([calls, text_reply("Done.")], mode="auto-edit")
    await here.say("Go.")

    results = [part for message in here.history for part in message.parts if isinstance(part, ToolResult)]
    assert [result.call_id for result in results] == ["r1", "r2", "r3", "w", "r4"]
    assert [result.is_error for result in results] == [False, False, True, False, False]
    assert "a - b" in results[0].text
    assert "a + b" in results[4].text


async def test_a_command_shows_its_output_while_it_runs(world) -> None:
    here = world([call_reply("run", {"command": "echo one; echo two"}), text_reply("Ran.")], mode="auto")
    await here.say("Run it.")

    assert "one" in "".join(chunk.chunk for chunk in here.of(events.ToolOutput))
    names = here.names()
    assert names.index("ToolOutput") < names.index("ToolFinished")
    assert "[exit code 0]" in here.results[0]


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (call_reply("fly", {"to": "moon"}), "No tool 'fly'"),
        (call_reply("read", {}), "path is missing"),
        (call_reply("read", {"path": "a", "colour": "red"}), "colour is not a parameter"),
    ],
)
async def test_a_call_that_cannot_be_run_is_told_to_the_model(world, call, word: str) -> None:
    here = world([call, text_reply("Sorry.")])
    end = await here.say("Go.")

    assert isinstance(end, events.TurnFinished)
    assert word in here.results[0]
    assert here.of(events.ToolFinished)[0].error


async def test_a_call_the_engine_could_not_read_goes_back_with_its_words(world) -> None:
    call = ToolCall("c", "read", {})
    failed = ToolCallFailed(call, "invalid_arguments", "path is required.")
    here = world([[failed], text_reply("Sorry.")])
    await here.say("Go.")

    assert here.history[1].parts == (call,)
    assert here.history[2].parts == (ToolResult("c", "read", "path is required.", is_error=True),)


async def test_a_call_to_nobody_stays_text_and_is_told_to_the_model(world) -> None:
    failed = ToolCallFailed(ToolCall("c", "", {}), "no_recipient", "Your call had no recipient.")
    here = world([[TextDelta("<atem:...>"), failed], text_reply("Sorry.")])
    end = await here.say("Go.")

    assert isinstance(end, events.TurnFinished)
    assert here.history[1].parts == (Text("<atem:...>"),)
    assert here.history[2].role == "user"
    assert text_of(here.history[2]) == "[Glimmer] Your call had no recipient."


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ([], "It wrote nothing at all."),
        ([TextDelta(" \n")], "It wrote nothing at all."),
        ([ReasoningDelta("Hm.")], "It thought, but it neither said nor did anything."),
        ([ReasoningDelta("Hm."), Done("length")], "It reached its token limit before it answered."),
    ],
)
async def test_an_empty_reply_is_an_error_the_person_sees(world, reply, why: str) -> None:
    here = world([reply, text_reply("Here.")])
    end = await here.say("Go.")

    assert isinstance(end, events.TurnFailed)
    assert (end.kind, end.why) == ("empty", why)
    assert await here.say("Again.") == events.TurnFinished("end", "Here.")


async def test_a_reply_that_was_cut_off_says_so(world) -> None:
    here = world([[TextDelta("So far"), Done("length")]])
    assert await here.say("Go.") == events.TurnFinished("length", "So far")
    assert any("token limit" in notice.text for notice in here.of(events.Notice))


@pytest.mark.parametrize(
    "ending",
    [ContextFull("The prompt is too long.", "It has 9 tokens."), Done("context_full")],
    ids=["raised", "stop"],
)
async def test_a_full_context_fails_with_the_way_out_and_a_valid_history(world, ending) -> None:
    here = world([[TextDelta("Well"), *call_reply("read", {"path": "calc.py"}), ending]])
    end = await here.say("Go.")

    assert isinstance(end, events.TurnFailed)
    assert end.kind == "context_full"
    assert "/new" in end.todo
    assert [message.role for message in here.history] == ["user", "assistant", "tool"]
    assert here.results == ["Not run: the turn ended before it."]


async def test_an_engine_failure_keeps_what_was_said(world) -> None:
    here = world([[TextDelta("Half"), EngineError("The GPU is gone.", "It was unplugged.", "Start again.")]])
    end = await here.say("Go.")

    assert end == events.TurnFailed("The GPU is gone.", "It was unplugged.", "Start again.", "engine")
    assert here.history[-1].parts == (Text("Half"),)


async def test_the_step_limit_stops_a_turn(world) -> None:
    replies = [call_reply("read", {"path": "calc.py", "start": 1, "end": end}) for end in (1, 2, 1)]
    here = world(replies, max_steps=2)
    end = await here.say("Go.")

    assert isinstance(end, events.TurnFailed)
    assert (end.what, end.kind) == ("Stopped after 2 steps.", "steps")
    assert len(here.engine.requests) == 2
    assert len(here.results) == 2


async def test_the_same_call_again_and_again_stops_a_turn(world) -> None:
    here = world([call_reply("read", {"path": "calc.py"})] * 20)
    end = await here.say("Go.")

    assert isinstance(end, events.TurnFailed)
    assert end.kind == "loop"
    assert len(here.engine.requests) == 3


async def test_two_calls_in_turn_without_progress_stop_a_turn(world) -> None:
    here = world([call_reply("read", {"path": path}) for path in ["calc.py", "notes.txt"] * 20])
    end = await here.say("Go.")

    assert isinstance(end, events.TurnFailed)
    assert end.kind == "loop"
    assert len(here.engine.requests) == 6


async def test_a_call_that_always_fails_stops_a_turn(world) -> None:
    here = world([call_reply("read", {"path": "nowhere.py"})] * 20)
    end = await here.say("Go.")

    assert isinstance(end, events.TurnFailed)
    assert end.kind == "loop"
    assert len(here.engine.requests) < 10


class Unloadable(ScriptedEngine):
    """A model file that is damaged until it is replaced."""

    async def load(self) -> Capabilities:
        if not self.replies:
            raise ModelError("The model file is damaged.", "It ends early.", "Download it again.")
        return await super().load()


async def test_a_model_that_cannot_be_loaded_fails_the_turn_and_is_tried_again(world) -> None:
    here = world([])
    here.session._engine = here.engine = Unloadable()
    await here.session.start()
    first = await here.end()
    second = await here.say("Go.")

    expected = events.TurnFailed(
        "The model file is damaged.", "It ends early.", "Download it again.", "model"
    )
    assert (first, second) == (expected, expected)
    here.engine.replies = [text_reply("Hello.")]
    assert await here.say("Go.") == events.TurnFinished("end", "Hello.")


async def test_a_bug_fails_the_turn_with_words_and_the_session_goes_on(
    world, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = world([text_reply("Never."), text_reply("Fine.")])

    def broken(self, message):
        raise RuntimeError("no such thing")

    with monkeypatch.context() as patch:
        patch.setattr(ConversationFile, "append", broken)
        end = await here.say("Go.")
    assert isinstance(end, events.TurnFailed)
    assert (end.kind, end.why) == ("internal", "RuntimeError: no such thing")
    assert "no such thing" in (here.state / "glimmer.log").read_text()
    assert (await here.say("Go.")) == events.TurnFinished("end", "Never.")


async def test_the_context_in_use_is_published_before_the_turn_ends(world) -> None:
    usage = Usage(generated=3, context_used=700, context_size=4096)
    here = world([[TextDelta("Hi."), Done("end", usage)]])
    await here.say("Hi.")

    status = here.of(events.StatusChanged)[-1]
    assert (status.context_used, status.context_size, status.mode) == (700, 4096, "ask")
    assert here.of(events.StepFinished)[0].usage == usage


async def test_what_was_said_is_on_disk_after_every_step(world) -> None:
    here = world([call_reply("read", {"path": "calc.py"}), text_reply("Read.")])
    await here.say("Look.")

    (path,) = (here.state / "sessions").glob("*/*.jsonl")
    saved: tuple[Message, ...] = ConversationFile(path).load().messages
    assert saved == here.history
    assert len(saved) == 4
