"""The worker thread seen from the event loop: order, cancelling, failures and closing."""

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Iterator

import pytest

from engine.errors import EngineBusy, EngineError
from engine.host import Host
from engine.protocol import Delta, Done, TextDelta


@pytest.fixture
async def host() -> AsyncIterator[Host]:
    made = Host()
    yield made
    await made.close(lambda: None)


def three(_cancelled: threading.Event) -> Iterator[Delta]:
    yield from (TextDelta("a"), TextDelta("b"), Done("end"))


def endless(cancelled: threading.Event) -> Iterator[Delta]:
    while not cancelled.wait(0.001):
        yield TextDelta("x")
    yield Done("cancelled")


async def collect(stream: AsyncIterator[Delta]) -> list[Delta]:
    return [delta async for delta in stream]


async def test_deltas_come_in_order(host: Host) -> None:
    assert await collect(host.stream(three)) == [TextDelta("a"), TextDelta("b"), Done("end")]


async def test_work_runs_on_one_other_thread(host: Host) -> None:
    names = {await host.call(lambda: threading.current_thread().name) for _ in range(3)}
    assert names == {"glimmer-engine"}


async def test_cancel_ends_a_stream(host: Host) -> None:
    deltas: list[Delta] = []
    async for delta in host.stream(endless):
        deltas.append(delta)
        host.cancel()
    assert deltas[-1] == Done("cancelled")


async def test_the_loop_goes_on_while_the_worker_works(host: Host) -> None:
    gate = threading.Event()

    def blocked(_cancelled: threading.Event) -> Iterator[Delta]:
        gate.wait()
        yield Done("end")

    task = asyncio.create_task(collect(host.stream(blocked)))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not task.done()
    gate.set()
    assert await task == [Done("end")]


async def test_a_second_stream_is_refused(host: Host) -> None:
    stream = host.stream(endless)
    await anext(stream)
    with pytest.raises(EngineBusy):
        await anext(host.stream(three))
    await stream.aclose()
    assert await collect(host.stream(three))


async def test_done_frees_the_host_even_if_the_caller_stops_listening_there(host: Host) -> None:
    first = host.stream(three)
    async for delta in first:
        if isinstance(delta, Done):
            break
    assert await collect(host.stream(three))
    await first.aclose()


async def test_a_caller_that_leaves_stops_the_work(host: Host) -> None:
    seen: list[threading.Event] = []

    def watched(cancelled: threading.Event) -> Iterator[Delta]:
        seen.append(cancelled)
        yield from endless(cancelled)

    stream = host.stream(watched)
    await anext(stream)
    await stream.aclose()
    assert seen[0].is_set()
    assert await host.call(lambda: 5) == 5


async def test_a_bug_in_the_work_comes_back_as_an_engine_error(host: Host) -> None:
    def broken(_cancelled: threading.Event) -> Iterator[Delta]:
        yield TextDelta("a")
        raise ZeroDivisionError("division by zero")

    deltas: list[Delta] = []
    with pytest.raises(EngineError, match="ZeroDivisionError") as caught:
        async for delta in host.stream(broken):
            deltas.append(delta)
    assert deltas == [TextDelta("a")]
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert await collect(host.stream(three))


async def test_calls_pass_errors_on(host: Host) -> None:
    def refuse() -> None:
        raise EngineBusy("busy")

    with pytest.raises(EngineBusy):
        await host.call(refuse)
    with pytest.raises(EngineError, match="SystemExit"):
        await host.call(lambda: sys.exit(3))
    assert await host.call(lambda: 1) == 1


async def test_a_cancelled_caller_does_not_disturb_the_worker(host: Host) -> None:
    gate = threading.Event()
    task = asyncio.create_task(host.call(gate.wait))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    gate.set()
    assert await host.call(lambda: 2) == 2


async def test_close_while_generating(host: Host) -> None:
    released: list[str] = []
    task = asyncio.create_task(collect(host.stream(endless)))
    await asyncio.sleep(0.01)
    await host.close(lambda: released.append(threading.current_thread().name))
    assert (await task)[-1] == Done("cancelled")
    assert released == ["glimmer-engine"]
    assert not any(thread.name == "glimmer-engine" for thread in threading.enumerate())
    await host.close(lambda: released.append("again"))
    assert len(released) == 1
    with pytest.raises(EngineError, match="closed"):
        await host.call(lambda: 1)
    with pytest.raises(EngineError, match="closed"):
        await anext(host.stream(three))


async def test_a_host_never_used_closes_without_a_thread() -> None:
    unused = Host()
    await unused.close(lambda: None)
    assert not any(thread.name == "glimmer-engine" for thread in threading.enumerate())


def test_a_loop_that_is_gone_does_not_hang_the_worker() -> None:
    """The application's loop was torn down in the middle of a reply."""
    host = Host()
    ended = threading.Event()

    def watched(cancelled: threading.Event) -> Iterator[Delta]:
        yield from endless(cancelled)
        ended.set()

    async def leave() -> None:
        stream = host.stream(watched)
        await anext(stream)
        await stream.aclose()

    asyncio.run(leave())
    assert ended.wait(10)
    asyncio.run(host.close(lambda: None))
