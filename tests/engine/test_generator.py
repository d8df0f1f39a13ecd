"""Replies of a real (random) model over the real cache: what is read, what stops them, what is refused."""

import threading
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest

from engine.cache import Cache
from engine.context import Context, ContextOptions
from engine.errors import ContextFull, EngineError
from engine.generator import Generator
from engine.llama import Model
from engine.messages import Image, Message, Reasoning, Text, ToolCall, ToolResult, ToolSchema, new_id
from engine.protocol import (
    Delta,
    Done,
    PrefillProgress,
    ReasoningDelta,
    Request,
    Sampling,
    TextDelta,
    ToolCallFailed,
    ToolCallReady,
    ToolCallStarted,
)

SYSTEM = Message("system", (Text("You are a careful agent."),))
TOOLS = (ToolSchema("run", "Run a command.", {"type": "object", "properties": {}}),)


def user(text: str) -> Message:
    return Message("user", (Text(text),))


def request(*messages: Message, limit: int | None = 12, seed: int = 1) -> Request:
    return Request((SYSTEM, *messages), sampling=Sampling(seed=seed), max_tokens=limit)


def run(
    generator: Generator, asked: Request, cancelled: threading.Event | None = None
) -> tuple[list[Delta], Done]:
    deltas = list(generator.generate(asked, cancelled or threading.Event()))
    done = deltas.pop()
    assert isinstance(done, Done)
    assert not any(isinstance(delta, Done) for delta in deltas)
    return deltas, done


def said(deltas: Sequence[Delta]) -> list[Delta]:
    return [delta for delta in deltas if not isinstance(delta, PrefillProgress)]


def test_a_long_conversation_reads_every_token_once(generator: Generator) -> None:
    messages: list[Message] = []
    read = 0
    for turn in range(8):
        messages.append(user(f"turn {turn}: <|eot|> is only text here"))
        asked = request(*messages, seed=turn)
        _, done = run(generator, asked)
        usage = done.usage
        assert usage.reread == 0
        assert usage.reused == read
        assert usage.prompt == usage.reused + usage.prefilled
        assert usage.context_used == usage.prompt + max(0, usage.generated - 1)
        assert usage.context_size == 1024
        read = usage.context_used
        messages.append(Message("assistant", (Text("not what was drawn"),), asked.reply_id))


def test_tool_results_and_new_ids_are_read_too(generator: Generator) -> None:
    first = request(user("go"))
    run(generator, first)
    called = Message("assistant", (ToolCall("c", "run", {"a": 1}),), first.reply_id)
    result = Message("tool", (ToolResult("c", "run", "fine"),))
    again = Message("assistant", (Reasoning("hm"), Text("done")))
    _, done = run(generator, request(*first.messages[1:], called, result, again, user("and?")))
    assert done.usage.reread == 0
    assert done.usage.prefilled > len("fine") + len("done")


def fresh_reply(model: Model, asked: Request) -> list[Delta]:
    context = Context(model, ContextOptions(1024, 64, threads=1), None)
    deltas, _ = run(Generator(Cache(context, model.vocabulary.size), model.vocabulary, Sampling()), asked)
    context.close()
    return said(deltas)


@pytest.mark.parametrize(
    "sampling", [Sampling(temperature=0.0), Sampling(seed=7), Sampling(0.7, 0.5, 3, 1 << 40)]
)
def test_the_same_seed_gives_the_same_reply(model: Model, sampling: Sampling) -> None:
    asked = replace(request(user("hello"), limit=30), sampling=sampling)
    assert fresh_reply(model, asked) == fresh_reply(model, asked)


def test_another_seed_gives_another_reply(model: Model) -> None:
    replies = [fresh_reply(model, request(user("hello"), limit=30, seed=seed)) for seed in range(3)]
    assert replies[0] != replies[1] or replies[1] != replies[2]


def test_progress_comes_once_a_batch_and_ends_whole(generator: Generator) -> None:
    deltas, done = run(generator, request(user("x" * 200)))
    progress = [delta for delta in deltas if isinstance(delta, PrefillProgress)]
    steps = [0, *(step.done for step in progress)]
    assert steps[-1] == done.usage.prompt
    assert all(0 < after - before <= 64 for before, after in pairwise(steps))
    assert {step.total for step in progress} == {done.usage.prompt}


def test_a_random_reply_of_any_markers_never_fails(model: Model) -> None:
    known = (PrefillProgress, TextDelta, ReasoningDelta, ToolCallStarted, ToolCallReady, ToolCallFailed)
    context = Context(model, ContextOptions(2048, 64, threads=1), None)
    generator = Generator(Cache(context, model.vocabulary.size), model.vocabulary, Sampling())
    for seed in range(15):
        asked = replace(request(user("hi"), limit=60, seed=seed), tools=TOOLS)
        deltas, done = run(generator, asked)
        assert all(isinstance(delta, known) for delta in deltas)
        assert done.stop in ("end", "length")
        assert 0 < done.usage.generated <= 60
    context.close()


def steered(generator: Generator, monkeypatch: pytest.MonkeyPatch, tokens: Sequence[int]) -> None:
    """Let the next reply consist of these tokens."""
    drawn = iter(tokens)
    monkeypatch.setattr("engine.generator.Sampler.sample", lambda _self, _cache, _row: next(drawn))


def ids(model: Model, *pieces: str) -> list[int]:
    tokens: list[int] = []
    for piece in pieces:
        special = model.vocabulary.special(piece)
        tokens += model.vocabulary.tokenize(piece) if special is None else [special]
    return tokens


def test_a_reply_runs_over_eom_to_eot(
    generator: Generator, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = (
        " to=self",
        "<|message|>",
        "hm",
        "<|eom|>",
        "<|start|>",
        "assistant to=user",
        "<|message|>",
        "né",
        "<|eot|>",
    )
    steered(generator, monkeypatch, ids(model, *parts))
    deltas, done = run(generator, request(user("hi"), limit=None))
    assert done.stop == "end"
    assert "".join(delta.text for delta in deltas if isinstance(delta, ReasoningDelta)) == "hm"
    assert "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)) == "né"


def test_end_of_text_ends_a_reply_and_the_next_one_reads_on(
    generator: Generator, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = request(user("hi"))
    steered(generator, monkeypatch, ids(model, " to=user", "<|message|>", "a", "<|end_of_text|>"))
    _, first = run(generator, asked)
    assert first.stop == "end"
    steered(generator, monkeypatch, ids(model, "<|eot|>"))
    reply = Message("assistant", (Text("a"),), asked.reply_id)
    _, second = run(generator, request(*asked.messages[1:], reply, user("b")))
    assert (second.usage.reread, second.usage.reused) == (0, first.usage.context_used)


def test_a_half_character_is_shown_as_replaced_only_when_nothing_follows(
    generator: Generator, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    euro = ids(model, "€")
    steered(
        generator,
        monkeypatch,
        [*ids(model, " to=user", "<|message|>"), *euro, *euro[:2], *ids(model, "<|eot|>")],
    )
    deltas, _ = run(generator, request(user("hi"), limit=None))
    assert [delta.text for delta in deltas if isinstance(delta, TextDelta)] == ["€", "\ufffd"]


def test_length_stops_a_reply_and_the_next_turn_closes_it(generator: Generator) -> None:
    asked = request(user("hi"), limit=3)
    _, done = run(generator, asked)
    assert (done.stop, done.usage.generated) == ("length", 3)
    reply = Message("assistant", (Text("cut"),), asked.reply_id)
    _, after = run(generator, request(*asked.messages[1:], reply, user("go on")))
    assert after.usage.reread == 0
    assert after.usage.reused == done.usage.context_used == done.usage.prompt + 2


def test_no_tokens_asked_for_is_no_tokens(generator: Generator) -> None:
    deltas, done = run(generator, request(user("hi"), limit=0))
    assert (done.stop, done.usage.generated) == ("length", 0)
    assert said(deltas) == []


def test_cancel_while_writing_stops_before_the_next_token(generator: Generator) -> None:
    cancelled = threading.Event()
    asked = request(user("hi"), limit=None)
    stream = generator.generate(asked, cancelled)
    while isinstance(next(stream), PrefillProgress):
        pass
    cancelled.set()
    done = list(stream)[-1]
    assert isinstance(done, Done)
    assert done.stop == "cancelled"
    reply = Message("assistant", (Text("cut"),), asked.reply_id)
    _, after = run(generator, request(*asked.messages[1:], reply, user("go on")))
    assert after.usage.reread == 0


def test_cancel_while_reading_stops_between_batches_and_goes_on_later(generator: Generator) -> None:
    cancelled = threading.Event()
    asked = request(user("x" * 300))
    stream = generator.generate(asked, cancelled)
    first = next(stream)
    assert isinstance(first, PrefillProgress)
    assert first.done == 64 < first.total
    cancelled.set()
    rest = list(stream)
    done = rest[-1]
    assert isinstance(done, Done)
    assert len(rest) == 1
    assert (done.stop, done.usage.prefilled, done.usage.generated) == ("cancelled", 64, 0)
    _, after = run(generator, replace(asked, reply_id=new_id()))
    assert (after.usage.reused, after.usage.reread) == (64, 0)


def test_cancelled_before_it_began(generator: Generator) -> None:
    cancelled = threading.Event()
    cancelled.set()
    deltas, done = run(generator, request(user("hi")), cancelled)
    assert (deltas, done.stop, done.usage.prefilled) == ([], "cancelled", 0)


def test_a_conversation_too_long_is_refused_before_anything_is_read(generator: Generator) -> None:
    asked = request(user("hi"))
    _, before = run(generator, asked)
    reply = Message("assistant", (Text("x"),), asked.reply_id)
    with pytest.raises(ContextFull, match="1024"):
        run(generator, request(*asked.messages[1:], reply, user("x" * 1024)))
    _, after = run(generator, request(*asked.messages[1:], reply, user("short")))
    assert (after.usage.reused, after.usage.reread) == (before.usage.context_used, 0)


def test_a_reply_fills_the_context_and_stops(
    generator: Generator, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    steered(generator, monkeypatch, ids(model, "a") * 2000)
    _, done = run(generator, request(user("x" * 700), limit=None))
    assert done.stop == "context_full"
    assert done.usage.context_used == done.usage.context_size == 1024


def test_the_last_free_cell_can_be_used(generator: Generator) -> None:
    _, probe = run(generator, request(user(""), limit=0))
    room = 1024 - probe.usage.prompt
    with pytest.raises(ContextFull):
        run(generator, request(user("x" * room)))
    _, done = run(generator, request(user("x" * (room - 1)), limit=None))
    assert done.usage.prompt == 1023
    assert 1 <= done.usage.generated <= 2


def test_an_edited_message_rewinds_where_that_is_exact(generator: Generator) -> None:
    old = user("a question with an end that will change")
    run(generator, request(old, limit=2))
    new = replace(old, parts=(Text("a question with another end"),))
    _, done = run(generator, request(new, limit=2))
    assert done.usage.reread == 0
    assert done.usage.reused > len("a question with an")


def test_a_history_changed_before_the_window_is_read_again_and_counted(
    generator: Generator, model: Model
) -> None:
    old, long = user("first"), user("x" * 600)
    asked = request(old, long)
    run(generator, asked)
    changed = request(user("another first"), long, seed=3, limit=20)
    deltas, done = run(generator, changed)
    assert done.usage.kept == "restored"
    assert 0 < done.usage.reused < done.usage.prompt - 600
    assert done.usage.reread > 600
    assert said(deltas) == fresh_reply(model, changed)


def test_a_rewound_conversation_answers_as_a_new_one_would(generator: Generator, model: Model) -> None:
    run(generator, request(user("x" * 150), user("old end"), limit=20))
    asked = replace(request(user("x" * 150), user("new end"), limit=20), sampling=Sampling(temperature=0.0))
    deltas, done = run(generator, asked)
    assert done.usage.reused > 150
    assert said(deltas) == fresh_reply(model, asked)


def test_reset_forgets(generator: Generator) -> None:
    asked = request(user("hi"))
    run(generator, asked)
    generator.conversation.reset()
    _, done = run(generator, asked)
    assert done.usage.reread == 1
    other = request(user("something else"))
    generator.conversation.reset()
    _, done = run(generator, other)
    assert done.usage.prompt > done.usage.reused > 0


def test_a_failed_step_leaves_the_engine_usable(
    generator: Generator, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = request(user("hi"))
    _, before = run(generator, asked)
    reply = Message("assistant", (Text("x"),), asked.reply_id)
    following = request(*asked.messages[1:], reply, user("more"))

    def fail(_tokens: Sequence[int], _position: int, _first: int | None = None) -> None:
        raise EngineError("The model failed while it was reading or writing.")

    with monkeypatch.context() as patched:
        patched.setattr(context, "decode", fail)
        with pytest.raises(EngineError, match="reading or writing"):
            run(generator, following)
    _, after = run(generator, replace(following, reply_id=new_id()))
    assert after.usage.reused == 0
    assert after.usage.reread == before.usage.context_used


def test_pictures_are_refused_in_words_and_change_nothing(generator: Generator) -> None:
    picture = Message("user", (Text("look"), Image(b"png", 2, 2)))
    with pytest.raises(EngineError, match="pictures"):
        run(generator, request(picture))
    _, done = run(generator, request(user("hi")))
    assert done.usage.reused == 0


@pytest.mark.parametrize(
    "sampling",
    [Sampling(temperature=-1), Sampling(temperature=float("nan")), Sampling(top_p=0), Sampling(top_k=-1)],
)
def test_impossible_sampling_is_refused(generator: Generator, sampling: Sampling) -> None:
    with pytest.raises(EngineError, match="impossible"):
        run(generator, replace(request(user("hi")), sampling=sampling))


def test_top_k_one_is_greedy(model: Model) -> None:
    asked = request(user("hello"), limit=20)
    one = fresh_reply(model, replace(asked, sampling=Sampling(top_k=1, seed=4)))
    assert one == fresh_reply(model, replace(asked, sampling=Sampling(temperature=0.0)))
