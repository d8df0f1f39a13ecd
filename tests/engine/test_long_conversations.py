"""A whole life of a conversation: grown past its context, resumed, hurried, its strength changed."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.shape_gguf import DrafterShape, ModelShape, write_drafter, write_model
from engine.loading import EngineOptions, Loaded, load
from engine.messages import Message, Text, ToolCall, ToolResult
from engine.protocol import (
    Delta,
    Done,
    EngineNotice,
    ReasoningDelta,
    Request,
    Sampling,
    SpanEvicted,
    TextDelta,
)

CONTEXT = 2048
SYSTEM = Message("system", (Text("You are a careful agent. " * 12),))
GREEDY = Sampling(temperature=0.0)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random model with a random drafter beside it."""
    folder = tmp_path_factory.mktemp("pair")
    shape = ModelShape(4, 64, 64, 300, 2, 1, 32, 64, 4096)
    write_drafter(folder / "dflash.gguf", shape, DrafterShape(2, 64, 2, 1, 32, 64, 8, (1, 2)), "F32", seed=2)
    return write_model(folder / "model.gguf", shape, "F32", seed=1)


@pytest.fixture
def options(tmp_path: Path) -> EngineOptions:
    return EngineOptions(CONTEXT, threads=1, batch=64, state_folder=tmp_path / "cache")


@pytest.fixture
def loaded(pair: Path, options: EngineOptions) -> Iterator[Loaded]:
    made = load(pair, options)
    yield made
    made.close()


def user(text: str) -> Message:
    return Message("user", (Text(text),))


def run(loaded: Loaded, asked: Request) -> tuple[list[Delta], Done]:
    *deltas, done = list(loaded.generator.generate(asked, threading.Event()))
    assert isinstance(done, Done)
    return deltas, done


def request(messages: list[Message], limit: int = 16, **more: object) -> Request:
    return replace(Request((SYSTEM, *messages), sampling=GREEDY, max_tokens=limit), **more)


def written(loaded: Loaded, messages: list[Message], limit: int = 16, **more: object) -> Done:
    """One more turn; the reply joins the messages."""
    asked = request(messages, limit, **more)
    _, done = run(loaded, asked)
    messages.append(Message("assistant", (Text("what was drawn"),), asked.reply_id))
    return done


def test_ten_times_the_context_goes_on_and_reads_nothing_twice(pair: Path) -> None:
    size = CONTEXT // 2
    loaded = load(pair, EngineOptions(size, threads=1, batch=64))
    messages: list[Message] = []
    total = 0
    evicted: list[str] = []
    while total < 10 * size:
        messages.append(user(f"turn {len(messages)}"))
        called = Message("assistant", (ToolCall(f"c{len(messages)}", "read", {"path": "a"}),))
        result = Message("tool", (ToolResult(f"c{len(messages)}", "read", "content " * 40),))
        messages += [called, result]
        asked = request(messages)
        deltas, done = run(loaded, asked)
        messages.append(Message("assistant", (Text("drawn"),), asked.reply_id))
        evicted += [delta.message_id for delta in deltas if isinstance(delta, SpanEvicted)]
        assert done.usage.reread == 0
        assert done.usage.context_used <= size
        total = done.usage.prompt
    tools = [message.id for message in messages if message.role == "tool"]
    assert evicted[0] == tools[0]
    loaded.close()


def test_one_message_can_be_removed_by_hand(loaded: Loaded) -> None:
    messages = [user("look"), Message("assistant", (ToolCall("c", "read", {"path": "a"}),))]
    shot = Message("tool", (ToolResult("c", "read", "x" * 200),))
    messages += [shot, user("and now " + "y" * 200)]
    before = written(loaded, messages)
    freed = loaded.generator.conversation.evict(shot.id)
    assert freed > 150
    assert loaded.generator.conversation.evict(shot.id) == 0
    messages.append(user("more"))
    after = written(loaded, messages)
    assert after.usage.reread == 0
    assert after.usage.context_used < before.usage.context_used


@pytest.mark.parametrize("forked", [0, 2])
def test_an_edit_or_a_fork_costs_a_checkpoint_not_a_reading(loaded: Loaded, forked: int) -> None:
    messages: list[Message] = []
    for turn in range(3):
        messages.append(user(f"turn {turn} " + "z" * 150))
        written(loaded, messages)
    edited = [*messages[: 4 - forked], user("another way")]
    _, done = run(loaded, request(edited))
    assert done.usage.kept in ("restored", "rewound")
    assert done.usage.reread < 150


def test_a_retry_reads_one_token(loaded: Loaded) -> None:
    messages = [user("x" * 300)]
    run(loaded, request(messages, 120))
    _, done = run(loaded, request(messages, 120))
    assert done.usage.kept in ("restored", "rewound")
    assert done.usage.reread <= 2


def test_a_resumed_conversation_goes_on_as_if_nothing_had_been(pair: Path, options: EngineOptions) -> None:
    first = load(pair, options)
    messages = [user("x" * 700), user("y" * 200)]
    written(first, messages)
    first.generator.conversation.evict(messages[0].id)
    messages.append(user("next"))
    assert first.keeper is not None
    first.keeper.save("one", first.generator.conversation.store())
    asked = request(messages, 40)
    deltas, done = run(first, asked)
    first.close()

    second = load(pair, options)
    assert second.keeper is not None
    state = second.keeper.load("one")
    assert state is not None
    second.generator.conversation.restore(state)
    again, resumed = run(second, asked)
    assert [d for d in again if isinstance(d, TextDelta | ReasoningDelta)] == [
        d for d in deltas if isinstance(d, TextDelta | ReasoningDelta)
    ]
    assert resumed.usage == replace(
        done.usage, steps=resumed.usage.steps, drafted=resumed.usage.drafted, accepted=resumed.usage.accepted
    )
    assert resumed.usage.reread == 0
    second.close()


def test_a_resumed_conversation_knows_where_its_strength_changed(pair: Path, options: EngineOptions) -> None:
    first = load(pair, options)
    messages = [user("x" * 300)]
    written(first, messages)
    messages.append(user("think less"))
    written(first, messages, strength="low")
    state = first.generator.conversation.store()
    first.close()
    second = load(pair, options)
    written(second, [user("an entirely other conversation")], strength="medium")
    second.generator.conversation.restore(state)
    messages.append(user("go on"))
    _, done = run(second, request(messages, strength="low"))
    assert (done.usage.kept, done.usage.reread) == ("appended", 0)
    second.close()


def test_the_system_block_is_read_once_for_all_runs(pair: Path, options: EngineOptions) -> None:
    first = load(pair, options)
    cold = written(first, [user("hello")])
    first.close()
    assert cold.usage.reused == 0
    second = load(pair, options)
    messages = [user("something else")]
    warm = written(second, messages)
    assert warm.usage.reused > 256
    second.generator.conversation.reset()
    again = written(second, [user("a new conversation")])
    assert again.usage.reused >= warm.usage.reused
    second.close()


def test_a_torn_or_foreign_cache_is_a_notice_and_nothing_more(pair: Path, options: EngineOptions) -> None:
    assert options.state_folder is not None
    first = load(pair, options)
    expected, _ = run(first, request([user("hello")]))
    first.close()
    (stored,) = options.state_folder.glob("*.state")
    raw = stored.read_bytes()
    for damage in (raw[:-9], raw[:40], b"", raw[:5000] + b"?" + raw[5001:], b"GGUF" + raw):
        stored.write_bytes(damage)
        second = load(pair, options)
        deltas, done = run(second, request([user("hello")]))
        second.close()
        assert sum(isinstance(delta, EngineNotice) for delta in deltas) == 1
        assert [d for d in deltas if isinstance(d, TextDelta)] == [
            d for d in expected if isinstance(d, TextDelta)
        ]
        assert done.usage.reused == 0


def test_a_cache_of_other_settings_is_not_touched(pair: Path, options: EngineOptions) -> None:
    first = load(pair, options)
    written(first, [user("hello")])
    first.close()
    other = load(pair, replace(options, context_size=512))
    deltas, done = run(other, request([user("hello")]))
    other.close()
    assert done.usage.reused == 0
    assert not any(isinstance(delta, EngineNotice) for delta in deltas)


def test_changing_the_strength_reads_a_line_not_the_conversation(loaded: Loaded) -> None:
    messages = [user("x" * 300)]
    written(loaded, messages)
    messages.append(user("think harder"))
    asked = request(messages, strength="low")
    _, done = run(loaded, asked)
    assert done.usage.reread == 0
    assert done.usage.prefilled < 120
    ids = loaded.generator.conversation.log.ids
    text = b"".join(map(loaded.model.vocabulary.piece, ids)).decode("utf-8", "replace")
    assert text.count("Reasoning strength:") == 2
    assert text.index("Reasoning strength: low.") > text.index("x" * 300)
    messages.append(Message("assistant", (Text("drawn"),), asked.reply_id))
    messages.append(user("and back"))
    _, back = run(loaded, request(messages, strength="low"))
    assert (back.usage.reread, back.usage.prefilled < 60) == (0, True)


def test_reasoning_ends_at_its_limit_and_the_reply_goes_on(
    loaded: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model that goes on reasoning is first let choose what to do, then made to answer."""
    vocabulary = loaded.model.vocabulary
    thinks = [*vocabulary.tokenize(" to=self"), vocabulary.special("<|message|>")]
    ends = [*vocabulary.tokenize("ok"), vocabulary.special("<|eot|>")]
    script = iter([*thinks, *b"h" * 20, *thinks, *b"m" * 5, *ends])
    monkeypatch.setattr("engine.generator.Sampler.sample", lambda _self, _cache, _row: next(script))
    monkeypatch.setattr("engine.generator.Sampler.force", lambda _self, _token: None)
    deltas, done = run(loaded, request([user("go")], 400, reasoning_tokens=20))
    said = "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))
    thought = "".join(delta.text for delta in deltas if isinstance(delta, ReasoningDelta))
    assert (thought, said, done.stop) == ("h" * 20 + "m" * 5, "ok", "end")
    monkeypatch.undo()
    _, after = run(loaded, request([user("go"), Message("assistant", (Text(said),), "r"), user("on")]))
    assert after.stop in ("end", "length")
