"""Pictures on their way through a session: shown, queued, expired, saved, given to a model that sees none."""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from engine.messages import Image, Message, Text
from engine.protocol import Capabilities, PictureProgress
from engine.scripted import Hold, ScriptedEngine, Step, call_reply, text_reply
from glimmer_tui.agent import events
from glimmer_tui.agent.events import Event
from glimmer_tui.agent.session import Session
from glimmer_tui.agent.settings import SessionSettings
from glimmer_tui.agent.store import ConversationFile
from glimmer_tui.config import ModelSettings
from glimmer_tui.options import Options
from glimmer_tui.wiring import build_session
from sandbox.actions import Decision

SEEING = Capabilities("scripted", None, 131072, vision=True, picture_tokens=1196)
BLIND = Capabilities("scripted", None, 131072)
DEMO = Capabilities("scripted", None, 131072, is_demo=True, vision=True, picture_tokens=1196)
END = (events.TurnFinished, events.TurnFailed)


def picture(number: int) -> Image:
    return Image(bytes([number]), 280, 140)


@dataclass
class Run:
    session: Session
    engine: ScriptedEngine
    state: Path
    seen: list[Event] = field(default_factory=list)

    async def until(self, *kinds: type, count: int = 1) -> None:
        async for event in self.stream:
            self.seen.append(event)
            if isinstance(event, events.ApprovalRequested):
                self.session.reply(event.id, Decision("allow"))
            count -= isinstance(event, kinds)
            if count == 0:
                return
        raise AssertionError(f"the events ended before {kinds}")

    async def say(self, text: str, *images: Image) -> None:
        self.session.submit(text, images)
        await self.until(*END)

    def of(self, kind: type) -> list:
        return [event for event in self.seen if isinstance(event, kind)]

    def asked(self, request: int) -> list[Image]:
        """The pictures in what the model was asked."""
        parts = [part for message in self.engine.requests[request].messages for part in message.parts]
        return [part for part in parts if isinstance(part, Image)]

    def __post_init__(self) -> None:
        self.stream = self.session.events()


Start = Callable[..., Run]


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    made: list[Run] = []
    root, state = tmp_path / "project", tmp_path / "state"
    root.mkdir()

    def run(replies: Sequence[Sequence[Step]], model: Capabilities = SEEING, **settings) -> Run:
        engine = ScriptedEngine(replies, model)
        options = Options(root, state, None, "auto", ModelSettings(), SessionSettings(**settings))
        made.append(Run(build_session(options, engine), engine, state))
        return made[-1]

    yield run
    for one in made:
        await one.session.close()


async def test_the_person_is_told_while_the_model_looks(start) -> None:
    run = start([[PictureProgress(0, 50), PictureProgress(12, 50), *text_reply("A cat.")]])
    await run.say("What is it?", picture(1))
    assert run.of(events.Looking) == [events.Looking(0, 50), events.Looking(12, 50)]
    (said,) = run.of(events.UserMessage)
    assert said.images == (picture(1),) and said.message_id == run.session.history.messages[0].id


async def test_a_queued_message_keeps_its_pictures(start) -> None:
    hold = Hold()
    run = start([[hold, *text_reply("One.")], text_reply("Two.")])
    run.session.submit("first")
    await hold.reached.wait()
    run.session.submit("second", [picture(1), picture(2)])
    hold.release()
    await run.until(*END, count=2)
    assert run.asked(0) == [] and run.asked(1) == [picture(1), picture(2)]


async def test_a_saved_conversation_has_its_pictures(start) -> None:
    run = start([text_reply("Ah."), text_reply("Oh.")])
    await run.say("Look.", picture(1))
    (file,) = (run.state / "sessions").rglob("*.jsonl")
    loaded = ConversationFile(file).load()
    assert loaded.skipped == 0
    assert loaded.messages[0].parts == (Text("Look."), picture(1))


async def test_old_pictures_are_reported_once_as_out_of_view(start) -> None:
    run = start([text_reply("Ah.")] * 3, pictures_kept=1)
    for number in range(3):
        await run.say(f"Look {number}.", picture(number))
    ids = [said.message_id for said in run.of(events.UserMessage)]
    assert run.of(events.OutOfView) == [events.OutOfView((ids[0],)), events.OutOfView((ids[1],))]
    assert [bool(image.expired) for image in run.asked(2)] == [True, True, False]


async def test_what_is_expired_by_hand_is_reported_at_once(start) -> None:
    run = start([text_reply("Ah.")] * 2)
    for number in range(2):
        await run.say(f"Look {number}.", picture(number))
    expired = run.session.expire()
    assert (expired.pictures, expired.results) == (1, 0)
    await run.until(events.OutOfView)
    first, _ = run.of(events.UserMessage)
    assert run.seen[-1] == events.OutOfView((first.message_id,))


async def test_a_model_that_sees_none_reads_words_and_the_person_is_told(start) -> None:
    run = start([text_reply("I cannot see.")], BLIND)
    await run.say("Look.", picture(1))
    (image,) = run.asked(0)
    assert image.expired.endswith("cannot look at pictures")
    assert "mmproj-Muse-Glimmer-30B-Q4_K_M.gguf" in run.of(events.Notice)[-1].text


@pytest.mark.parametrize(("model", "offered"), [(SEEING, True), (BLIND, False), (DEMO, False)])
async def test_a_screenshot_is_offered_to_a_model_that_sees_and_is_no_demonstration(
    start, model, offered
) -> None:
    run = start([text_reply("Hm."), text_reply("Hm.")], model)
    await run.say("Look.")
    await run.say("Again.")
    names = [[tool.name for tool in request.tools] for request in run.engine.requests]
    assert names[0] == names[1] and names[0][:2] == ["read", "list"]
    assert ("screenshot" in names[0]) is offered


async def test_a_tool_that_shows_a_picture_shows_it_to_the_person_too(start) -> None:
    run = start([call_reply("screenshot", {"command": "echo hello"}), text_reply("It says hello.")])
    await run.say("Look.")
    (finished,) = run.of(events.ToolFinished)
    (shown,) = finished.images
    result: Message = run.session.history.messages[2]
    assert finished.message_id == result.id
    assert run.asked(1)[0].data == shown.data
