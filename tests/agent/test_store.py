"""Conversations on disk: nothing said is lost, and a damaged file still opens."""

import json
import stat
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.messages import Image, Message, Part, Reasoning, Text, ToolCall, ToolResult
from glimmer_tui.agent.codec import message_from_json, message_to_json
from glimmer_tui.agent.history import INTERRUPTED, History, open_calls
from glimmer_tui.agent.store import ConversationFile, Loaded, Store, project_key

texts = st.text(st.characters(exclude_categories=()), max_size=40)
numbers = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False)
values = st.recursive(
    numbers | texts, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3)
)
arguments: st.SearchStrategy[dict[str, Any]] = st.dictionaries(texts, values, max_size=3)
parts: st.SearchStrategy[Part] = st.one_of(
    st.builds(Text, texts),
    st.builds(Reasoning, texts),
    st.builds(Image, st.binary(max_size=40), st.integers(1, 9), st.integers(1, 9)),
    st.builds(ToolCall, texts, texts, arguments),
    st.builds(ToolResult, texts, texts, texts, st.booleans()),
)
roles = st.sampled_from(["user", "assistant", "tool"])
messages = st.builds(Message, roles, st.lists(parts, max_size=4).map(tuple), texts)


@settings(max_examples=60)
@given(messages)
def test_every_message_comes_back_as_it_was(message: Message) -> None:
    line = json.dumps(message_to_json(message))
    assert "\n" not in line
    assert message_from_json(json.loads(line)) == message


@settings(max_examples=50)
@given(values | st.dictionaries(st.sampled_from(["id", "role", "parts", "type", "text"]), values))
def test_anything_else_is_refused_with_a_value_error(data: object) -> None:
    try:
        message = message_from_json(data)
    except ValueError:
        return
    assert message.role in ("system", "user", "assistant", "tool")


def said(text: str) -> Message:
    return Message("user", (Text(text),), text)


def test_the_file_is_the_owners_alone_and_appears_with_the_first_message(tmp_path: Path) -> None:
    store = Store(tmp_path / "sessions" / "p")
    file = store.create()
    assert not file.path.exists()
    assert store.latest() is None
    file.append(said("one"))
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.path.parent.stat().st_mode) == 0o700
    latest = store.latest()
    assert latest is not None
    assert latest.path == file.path


@settings(max_examples=40)
@given(st.lists(messages, max_size=3), st.data())
def test_a_torn_end_loses_at_most_the_message_it_was_in(kept: list[Message], data: st.DataObject) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        file = ConversationFile(Path(folder) / "c.jsonl")
        for message in kept:
            file.append(message)
        whole = file.path.read_bytes() if kept else b""
        file.append(said("last"))
        full = file.path.read_bytes()
        file.path.write_bytes(full[: data.draw(st.integers(len(whole), len(full)))])

        before = file.load().messages
        assert before[: len(kept)] == tuple(kept)
        assert before[len(kept) :] in ((), (said("last"),))
        file.append(said("next"))
        assert file.load() == Loaded((*before, said("next")))


def test_a_bad_line_in_the_middle_is_left_out_and_counted(tmp_path: Path) -> None:
    file = ConversationFile(tmp_path / "c.jsonl")
    file.append(said("one"))
    with file.path.open("ab") as raw:
        raw.write(b'{"id": 1}\n\xff\xfe\n[' + b"[" * 100_000 + b"\n")
    file.append(said("two"))
    assert file.load() == Loaded((said("one"), said("two")), skipped=3)


def test_a_link_in_the_place_of_the_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("mine\n")
    (tmp_path / "c.jsonl").symlink_to(tmp_path / "notes")
    problems: list[OSError] = []
    history = History(ConversationFile(tmp_path / "c.jsonl"), problems.append)

    import asyncio

    asyncio.run(history.add(said("one"), said("two")))
    assert (tmp_path / "notes").read_text() == "mine\n"
    assert len(problems) == 1
    assert history.messages == (said("one"), said("two"))


async def test_calls_that_were_open_when_the_program_ended_get_a_result(tmp_path: Path) -> None:
    file = ConversationFile(tmp_path / "c.jsonl")
    calls = tuple(ToolCall(id_, "run", {"command": "ls"}) for id_ in ("c1", "c2"))
    file.append(Message("assistant", calls))
    file.append(Message("tool", (ToolResult("c1", "run", "a.py"),)))

    history = History(file, lambda problem: None)
    await history.restore(file.load().messages)
    assert history.messages[-1].parts == (ToolResult("c2", "run", INTERRUPTED, is_error=True),)
    assert open_calls(history.messages) == ()
    assert file.load().messages == history.messages


def test_projects_of_one_name_are_told_apart() -> None:
    keys = {project_key(Path(path)) for path in ("/a/shop", "/b/shop", "/c/..weird\n name", "/")}
    assert len(keys) == 4
    assert all(key.replace("-", "").replace(".", "").isalnum() and not key.startswith(".") for key in keys)
