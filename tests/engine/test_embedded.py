"""The engine as the agent meets it: the protocol over a real model."""

import asyncio
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from engine.embedded import EmbeddedEngine
from engine.errors import EngineBusy, EngineError, ModelError
from engine.llama import Weights
from engine.loading import EngineOptions
from engine.messages import Message, Text
from engine.protocol import Delta, Done, Engine, PrefillProgress, Request, Sampling
from tests.engine.tiny_gguf import write_tiny

SYSTEM = Message("system", (Text("You are a careful agent."),))


def request(text: str, limit: int | None = 8) -> Request:
    messages = (SYSTEM, Message("user", (Text(text),)))
    return Request(messages, sampling=Sampling(seed=3), max_tokens=limit)


async def collect(engine: Engine, asked: Request) -> list[Delta]:
    return [delta async for delta in engine.generate(asked)]


async def test_it_says_what_it_loaded_and_loads_once(engine: EmbeddedEngine, tiny_model: Path) -> None:
    first, second = await asyncio.gather(engine.load(), engine.load())
    assert first is second
    assert (first.model_name, first.model_path, first.context_size) == ("Tiny Glimmer", tiny_model, 1024)
    assert first.is_demo
    assert not first.vision
    assert list(first.notices) == []


async def test_it_loads_on_the_first_reply_and_ends_with_done(engine: EmbeddedEngine) -> None:
    deltas = await collect(engine, request("hi"))
    assert isinstance(deltas[0], PrefillProgress)
    assert isinstance(deltas[-1], Done)
    assert deltas[-1].usage.generated > 0
    assert sum(isinstance(delta, Done) for delta in deltas) == 1


async def test_cancel_ends_a_running_reply(engine: EmbeddedEngine) -> None:
    asked = Request((SYSTEM, Message("user", (Text("x" * 900),))), sampling=Sampling(seed=1))
    last: Delta | None = None
    async for delta in engine.generate(asked):
        engine.cancel()
        last = delta
    assert isinstance(last, Done)
    assert last.stop == "cancelled"


async def test_a_second_reply_at_once_is_refused(engine: EmbeddedEngine) -> None:
    stream = engine.generate(request("x" * 500))
    await anext(stream)
    with pytest.raises(EngineBusy):
        await anext(engine.generate(request("me too")))
    await stream.aclose()
    assert isinstance((await collect(engine, request("now")))[-1], Done)


async def test_reset_forgets_the_conversation(engine: EmbeddedEngine) -> None:
    await engine.reset()
    asked = request("hi")
    await collect(engine, asked)
    await engine.reset()
    done = (await collect(engine, asked))[-1]
    assert isinstance(done, Done)
    assert done.usage.kept == "rewound"
    assert done.usage.reread == 1


async def test_a_bad_model_is_said_on_load_and_on_use(tmp_path: Path) -> None:
    engine = EmbeddedEngine(tmp_path / "absent.gguf")
    with pytest.raises(ModelError, match="no model file"):
        await engine.load()
    with pytest.raises(ModelError, match="no model file"):
        await collect(engine, request("hi"))
    await engine.close()


async def test_a_file_that_was_repaired_loads_after_all(tmp_path: Path, options: EngineOptions) -> None:
    path = tmp_path / "late.gguf"
    engine = EmbeddedEngine(path, options)
    with pytest.raises(ModelError):
        await engine.load()
    write_tiny(path)
    assert (await engine.load()).model_name == "Tiny Glimmer"
    await engine.close()


async def test_close_in_the_middle_of_a_reply(engine: EmbeddedEngine) -> None:
    task = asyncio.create_task(collect(engine, request("x" * 800, limit=None)))
    await asyncio.sleep(0)
    await engine.close()
    try:
        deltas = await task
    except EngineError as error:
        assert "closed" in str(error)
    else:
        assert isinstance(deltas[-1], Done)
    assert not any(thread.name == "glimmer-engine" for thread in threading.enumerate())
    with pytest.raises(EngineError, match="closed"):
        await engine.load()
    await engine.close()


@pytest.mark.parametrize(
    "options",
    [
        EngineOptions(context_size=10),
        EngineOptions(threads=0),
        EngineOptions(threads=100_000),
        EngineOptions(batch=0),
        EngineOptions(gpu_layers=-2),
    ],
)
async def test_impossible_options_are_refused(tiny_model: Path, options: EngineOptions) -> None:
    engine = EmbeddedEngine(tiny_model, options)
    with pytest.raises(EngineError):
        await engine.load()
    await engine.close()


async def test_a_context_beyond_the_model_is_capped_and_said(tmp_path: Path) -> None:
    path = write_tiny(tmp_path / "short.gguf", **{"muse-glimmer__context_length": np.uint32(512)})
    engine = EmbeddedEngine(path, EngineOptions(context_size=4096, threads=1))
    loaded = await engine.load()
    assert loaded.context_size == 512
    assert "512" in loaded.notices[0]
    await engine.close()


async def test_another_chat_template_is_a_notice(tmp_path: Path) -> None:
    path = write_tiny(tmp_path / "other.gguf", tokenizer__chat_template="{{ messages[0]['content'] }}")
    engine = EmbeddedEngine(path, EngineOptions(context_size=256, threads=1))
    assert "template" in (await engine.load()).notices[0]
    await engine.close()


async def test_the_library_logs_to_the_named_file_only(
    tiny_model: Path, options: EngineOptions, capfd: pytest.CaptureFixture[str]
) -> None:
    engine = EmbeddedEngine(tiny_model, options)
    await collect(engine, request("hi"))
    await engine.close()
    assert options.log_file is not None
    assert options.log_file.stat().st_size > 0
    assert capfd.readouterr() == ("", "")


async def test_closing_breaks_off_the_loading(tiny_model: Path, options: EngineOptions, monkeypatch) -> None:
    """A person who quits does not wait for 17 GB."""
    engine = EmbeddedEngine(tiny_model, options)
    started, seen = threading.Event(), []
    real = Weights.__init__

    def slow(self, path, window, gpu_layers, log_file, goes_on):
        started.set()
        while goes_on() and len(seen) < 3000:
            seen.append(True)
            time.sleep(0.01)
        real(self, path, window, gpu_layers, log_file, goes_on)

    monkeypatch.setattr(Weights, "__init__", slow)
    loading = asyncio.create_task(engine.load())
    await asyncio.to_thread(started.wait)
    await engine.close()
    with pytest.raises(ModelError, match="broken off"):
        await loading
    assert len(seen) < 3000
