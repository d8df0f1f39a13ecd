"""One prompt without a screen, as scripts see it: what is written where, and the exit code."""

import json
import os
import re
import signal
from pathlib import Path

import pytest

from engine.errors import ModelError
from engine.protocol import Capabilities, TextDelta
from engine.scripted import Hold, ScriptedEngine, call_reply, text_reply
from glimmer_tui.agent import events
from glimmer_tui.agent.session import Session
from glimmer_tui.agent.settings import SessionSettings
from glimmer_tui.config import ModelSettings
from glimmer_tui.headless import run_headless
from glimmer_tui.headless_json import type_name
from glimmer_tui.options import Options
from glimmer_tui.wiring import build_session

FIX = {"path": "calc.py", "old": "a - b", "new": "a + b"}
DOCUMENT = Path(__file__).parents[2] / "docs" / "headless.md"


@pytest.fixture
def session(tmp_path: Path):
    root = tmp_path / "project"
    root.mkdir()
    (root / "calc.py").write_text("def add(a, b):\n    return a - b\n")

    def make(*replies, mode="ask", engine: ScriptedEngine | None = None) -> Session:
        options = Options(root, tmp_path / "state", None, mode, ModelSettings(), SessionSettings())
        return build_session(options, engine or ScriptedEngine(replies))

    return make


def test_text_gives_the_answer_alone_on_standard_output(session, capsys) -> None:
    work = session(call_reply("edit", FIX), text_reply("Fixed."), mode="auto-edit")
    assert run_headless(work, "Fix it.", "text") == 0

    out, err = capsys.readouterr()
    assert out == "Fixed.\n"
    assert err.startswith("edit calc.py: done, ")


def test_text_cannot_drive_the_terminal(session, capsys) -> None:
    run_headless(session([TextDelta("\x1b]0;owned\x07red\u202e\x9b31m")]), "Hi.", "text")
    assert capsys.readouterr().out == "\ufffd]0;owned\ufffdred\ufffd\ufffd31m\n"


def test_json_is_one_object(session, capsys) -> None:
    work = session(call_reply("edit", FIX, call_id="e"), text_reply("Fixed."), mode="auto-edit")
    assert run_headless(work, "Fix it.", "json") == 0

    out, err = capsys.readouterr()
    report = json.loads(out)
    assert err == ""
    assert report["answer"] == "Fixed."
    assert (report["stop"], report["exit_code"], report["exit_reason"]) == ("end", 0, "ok")
    assert report["error"] is None
    assert report["changed"] == ["calc.py"]
    assert report["tool_calls"] == [{"id": "e", "name": "edit", "summary": "edit calc.py", "error": ""}]
    assert report["usage"]["generated"] > 0
    assert report["approvals_needed"] == []


def test_json_lines_are_the_events_in_order(session, capsys) -> None:
    work = session(call_reply("edit", FIX), text_reply("Fixed."), mode="auto-edit")
    run_headless(work, "Fix it.", "jsonl")

    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    types = [line["type"] for line in lines]
    assert types[-1] == "turn_finished"
    assert types.index("tool_started") < types.index("snapshot_taken") < types.index("tool_finished")
    finished = lines[types.index("tool_finished")]
    assert finished["display"]["form"] == "diff"
    assert finished["changed"] == ["calc.py"]


@pytest.mark.parametrize("call", [call_reply("edit", FIX), call_reply("run", {"command": "touch x"})])
def test_what_needs_approval_is_declined_and_said(session, capsys, call) -> None:
    work = session(call, text_reply("I could not."))
    assert run_headless(work, "Fix it.", "text") == 4

    out, err = capsys.readouterr()
    assert out == "I could not.\n"
    assert "Not approved, nobody was there to ask: " in err
    assert "--mode auto" in err
    model_read = work.history.messages[2].parts[0]
    assert model_read.text.startswith("The user declined this call: Nobody is here to approve it.")


def test_the_preview_of_an_approval_names_its_kind(session, capsys) -> None:
    run_headless(session(call_reply("edit", FIX), text_reply("No.")), "Fix it.", "jsonl")
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    (request,) = [line for line in lines if line["type"] == "approval_requested"]
    assert request["preview"]["type"] == "file_change"
    assert "a + b" in request["preview"]["after"]


def test_a_failed_turn_says_what_why_and_what_to_do(session, capsys) -> None:
    assert run_headless(session([]), "Hi.", "text") == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "The model gave no answer.\nIt wrote nothing at all.\n" in err

    assert run_headless(session([]), "Hi.", "json") == 1
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["kind"] == "empty"


class Unloadable(ScriptedEngine):
    async def load(self) -> Capabilities:
        raise ModelError("The model file is damaged.", "It ends early.", "Download it again.")


def test_a_model_that_cannot_be_loaded_has_a_code_of_its_own(session, capsys) -> None:
    assert run_headless(session(engine=Unloadable()), "Hi.", "json") == 3
    report = json.loads(capsys.readouterr().out)
    assert report["exit_reason"] == "model_unusable"
    assert report["error"]["what"] == "The model file is damaged."


def test_an_interrupt_ends_the_turn_in_order(session, capsys) -> None:
    hold = Hold()

    class Interrupted(ScriptedEngine):
        async def generate(self, request):
            async for delta in super().generate(request):
                yield delta
                if isinstance(delta, TextDelta):
                    os.kill(os.getpid(), signal.SIGINT)

    work = session(engine=Interrupted([[TextDelta("Half"), hold]]))
    before = signal.getsignal(signal.SIGINT)
    assert run_headless(work, "Go.", "json") == 130
    assert signal.getsignal(signal.SIGINT) is before
    report = json.loads(capsys.readouterr().out)
    assert (report["stop"], report["exit_reason"], report["answer"]) == ("cancelled", "interrupted", "Half")


def test_an_interrupt_before_the_prompt_was_sent_counts(session, capsys, monkeypatch) -> None:
    start = Session.start

    async def interrupted(self) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        await start(self)

    monkeypatch.setattr(Session, "start", interrupted)
    engine = ScriptedEngine([text_reply("Never.")])
    assert run_headless(session(engine=engine), "Go.", "json") == 130
    assert engine.requests == []
    report = json.loads(capsys.readouterr().out)
    assert (report["stop"], report["answer"]) == ("cancelled", "")


def test_every_event_is_documented_with_its_fields() -> None:
    text = DOCUMENT.read_text()
    rows = dict(re.findall(r"^\| `([a-z_`, ]+)` \|(.*)\|$", text, re.MULTILINE))
    described = {name: row for names, row in rows.items() for name in names.replace("`", "").split(", ")}
    for event in events.Event.__args__:
        row = described[type_name(event)]
        for field in event.__dataclass_fields__:
            assert f"`{field}`" in row, f"{type_name(event)}.{field}"
