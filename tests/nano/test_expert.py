"""The recipe's conversations: played with the real tools, they mend what they were asked to mend."""

import random
from pathlib import Path

import pytest

from engine.chat_format import Marker, message_pieces, system_pieces
from engine.messages import Message, Reasoning, ToolCall, ToolResult, text_of
from engine.protocol import TextDelta, ToolCallFailed, ToolCallReady
from engine.scripted import ScriptedEngine, text_reply
from engine.stream_parser import StreamParser
from glimmer_tui.agent.events import TurnFinished
from glimmer_tui.options import Flags, resolve
from glimmer_tui.wiring import build_session
from nano.bugs import KINDS, draw
from nano.expert import trajectory, write_files
from nano.prefix import prefix_pieces, schemas
from nano.project import make_project
from nano.quick_pytest import run_pytest


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_drawn_bug_is_a_bug_and_its_mending_mends_it(kind):
    rng = random.Random(kind.__name__)
    for _ in range(20):
        function = draw(rng, kind)
        assert function.checks
        assert function.module or function.source.count(function.right) >= 1
        assert (function.broken.replace(function.wrong, function.right, 1) == function.source) or (
            function.broken.count(function.wrong) > 1
        )


def test_a_planted_project_fails_and_its_mended_form_passes(tmp_path: Path):
    rng = random.Random(4)
    for number in range(4):
        project = make_project(rng, 1 + number % 2)
        root = tmp_path / str(number)
        write_files(root, project.files)
        report, code = run_pytest(root)
        assert code == 1
        assert f"{len(project.bugs)} failed" in report
        for bug in project.bugs:
            place = root / bug.path
            text = place.read_text()
            broken, mended = f"{bug.context}\n", bug.new
            at = text.index(f"def {bug.function.name}(") if bug.context else 0
            assert broken.strip() in text
            place.write_text(text[:at] + text[at:].replace(bug.old, mended, 1))
        assert run_pytest(root)[1] == 0


@pytest.fixture(scope="module")
def conversations(tmp_path_factory: pytest.TempPathFactory) -> list[list[tuple[Message, float]]]:
    """Enough conversations to hold every kind of mistake."""
    rng, scratch = random.Random(11), tmp_path_factory.mktemp("conversations")
    return [trajectory(rng, scratch) for _ in range(45)]


def test_conversations_hold_only_calls_that_the_parser_accepts_and_that_end_in_an_answer(conversations):
    for turns in conversations:
        for message, _weight in turns:
            if message.role != "assistant":
                continue
            parser = StreamParser(schemas())
            deltas = []
            for piece in list(message_pieces(message))[1:]:
                text = piece.removeprefix("assistant") if piece is not Marker.MESSAGE else piece
                deltas += parser.feed(piece if isinstance(piece, Marker) else text)
            deltas += parser.finish("end")
            calls = [part for part in message.parts if isinstance(part, ToolCall)]
            ready = [delta.call for delta in deltas if isinstance(delta, ToolCallReady)]
            assert not [delta for delta in deltas if isinstance(delta, ToolCallFailed)]
            assert [(c.name, dict(c.arguments)) for c in ready] == [
                (c.name, dict(c.arguments)) for c in calls
            ]
            assert calls or any(isinstance(delta, TextDelta) for delta in deltas)
        assert not any(isinstance(part, ToolCall) for part in turns[-1][0].parts)


def test_mistakes_are_played_without_loss_and_followed_by_the_right_step(conversations):
    skipped = learned_after = 0
    for turns in conversations:
        for index, (message, weight) in enumerate(turns):
            if message.role == "assistant" and weight == 0:
                skipped += 1
                learned_after += turns[index + 2][1] > 0
                assert any(isinstance(part, Reasoning) for part in message.parts)
    assert skipped >= 4
    assert learned_after == skipped


def test_every_kind_of_tool_result_comes_from_the_tools(conversations):
    texts = [
        part.text
        for turns in conversations
        for message, _ in turns
        for part in message.parts
        if isinstance(part, ToolResult)
    ]
    for beginning in ("Tests failed:", "Tests passed:", "Edited ", "No file "):
        assert any(text.startswith(beginning) for text in texts), beginning


async def test_the_recipe_and_the_agent_send_the_model_the_same_system_block(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("GLIMMER_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("GLIMMER_CONFIG_DIR", str(tmp_path / "config"))
    (tmp_path / "project").mkdir()
    engine = ScriptedEngine([text_reply("Done.")])
    session = build_session(resolve(tmp_path / "project", Flags()), engine)
    await session.start()
    session.submit("Fix the failing test")
    async for event in session.events():
        if isinstance(event, TurnFinished):
            break
    await session.close()
    request = engine.requests[0]
    sent = system_pieces(text_of(request.messages[0]), request.tools, request.strength)
    assert sent == prefix_pieces("low")
    assert text_of(request.messages[1]) == "Fix the failing test"
