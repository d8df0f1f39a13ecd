"""The scripted engine keeps the protocol's promises, so that tests over it mean something."""

import asyncio

import pytest

from engine.errors import ContextFull, EngineBusy, EngineError
from engine.messages import Message, Text
from engine.protocol import (
    Capabilities,
    Delta,
    Done,
    Engine,
    ReasoningDelta,
    Request,
    TextDelta,
    ToolCallReady,
    ToolCallStarted,
    Usage,
)
from engine.scripted import Hold, ScriptedEngine, call_reply, text_reply

ASKED = Request((Message("user", (Text("hi"),)),))


async def collect(engine: Engine) -> list[Delta]:
    return [delta async for delta in engine.generate(ASKED)]


async def test_replies_come_in_order_and_end_with_done() -> None:
    engine = ScriptedEngine([text_reply("one two"), text_reply("three", reasoning="hm")])
    *first, done = await collect(engine)
    assert first == [TextDelta("one"), TextDelta(" two")]
    assert isinstance(done, Done)
    assert done.stop == "end"
    *second, _ = await collect(engine)
    assert second == [ReasoningDelta("hm"), TextDelta("three")]
    assert engine.requests == [ASKED, ASKED]


async def test_a_written_done_is_the_last_word() -> None:
    done = Done("length", Usage(generated=3))
    engine = ScriptedEngine([[TextDelta("a"), done, TextDelta("never")]])
    assert await collect(engine) == [TextDelta("a"), done]


async def test_a_call_is_started_and_ready() -> None:
    engine = ScriptedEngine([call_reply("run", {"command": "ls"}, call_id="c1")])
    started, ready, _ = await collect(engine)
    assert started == ToolCallStarted("run")
    assert isinstance(ready, ToolCallReady)
    assert (ready.call.id, ready.call.arguments) == ("c1", {"command": "ls"})


async def test_cancel_ends_a_reply_early() -> None:
    engine = ScriptedEngine([text_reply("a b c")])
    deltas: list[Delta] = []
    async for delta in engine.generate(ASKED):
        deltas.append(delta)
        engine.cancel()
    assert deltas[0] == TextDelta("a")
    assert [delta.stop for delta in deltas if isinstance(delta, Done)] == ["cancelled"]
    assert len(deltas) == 2


async def test_a_hold_waits_for_its_release_or_for_cancel() -> None:
    hold, forever = Hold(), Hold()
    engine = ScriptedEngine([[hold, TextDelta("a")], [forever, TextDelta("never")]])
    task = asyncio.create_task(collect(engine))
    await hold.reached.wait()
    with pytest.raises(EngineBusy):
        await collect(engine)
    hold.release()
    assert (await task)[0] == TextDelta("a")
    task = asyncio.create_task(collect(engine))
    await forever.reached.wait()
    engine.cancel()
    (done,) = await task
    assert isinstance(done, Done)
    assert done.stop == "cancelled"


async def test_an_error_is_raised_where_it_stands() -> None:
    engine = ScriptedEngine([[TextDelta("a"), ContextFull("full")], text_reply("b")])
    with pytest.raises(ContextFull):
        await collect(engine)
    assert (await collect(engine))[0] == TextDelta("b")


async def test_the_end_of_the_script_is_an_error() -> None:
    with pytest.raises(EngineError, match="no further reply"):
        await collect(ScriptedEngine())


async def test_done_frees_it_even_if_the_caller_stops_listening_there() -> None:
    engine = ScriptedEngine([text_reply("a"), text_reply("b")])
    stream = engine.generate(ASKED)
    async for delta in stream:
        if isinstance(delta, Done):
            break
    assert (await collect(engine))[0] == TextDelta("b")
    await stream.aclose()


async def test_loading_resetting_and_closing() -> None:
    own = Capabilities("Mine", None, 5)
    engine = ScriptedEngine([text_reply("a")], own)
    assert await engine.load() is own
    await engine.reset()
    assert engine.resets == 1
    await engine.close()
    assert engine.is_closed
    with pytest.raises(EngineError, match="closed"):
        await collect(engine)
