"""The one thread that owns the model: jobs in, results and deltas out to the event loop."""

import asyncio
import queue
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from engine.errors import EngineBusy, EngineError
from engine.protocol import Delta, Done

T = TypeVar("T")
Job = Callable[[], None]
Work = Callable[[threading.Event], Iterator[Delta]]


@dataclass(frozen=True, slots=True)
class _Failure:
    """An exception on its way from the worker to the caller."""

    error: EngineError


class Host:
    """Runs jobs one after the other on its own thread. Its methods belong to the event loop's thread."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._running: threading.Event | None = None
        self._is_closed = False

    async def call(self, work: Callable[[], T]) -> T:
        """Run `work` on the worker and wait for its result. Any exception comes back as an EngineError."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def job() -> None:
            try:
                result = work()
            except BaseException as error:
                _post(loop, _reject, future, _as_engine_error(error))
            else:
                _post(loop, _resolve, future, result)

        self._submit(job)
        return await future

    async def stream(self, work: Work) -> AsyncGenerator[Delta, None]:
        """The deltas that `work` yields, up to `Done`. One stream at a time, else EngineBusy.

        `work` gets the flag that `cancel` sets; it is also set when the caller stops listening.
        """
        if self._running is not None:
            raise EngineBusy("The model is already writing a reply.", "", "Wait for it, or cancel it.")
        loop = asyncio.get_running_loop()
        deltas: asyncio.Queue[Delta | _Failure] = asyncio.Queue()
        cancelled = threading.Event()

        def job() -> None:
            try:
                for delta in work(cancelled):
                    if not _post(loop, deltas.put_nowait, delta):
                        cancelled.set()
            except BaseException as error:
                _post(loop, deltas.put_nowait, _Failure(_as_engine_error(error)))

        self._submit(job)
        self._running = cancelled
        try:
            while True:
                match await deltas.get():
                    case _Failure(error):
                        raise error
                    case Done() as done:
                        self._finish(cancelled)
                        yield done
                        return
                    case delta:
                        yield delta
        finally:
            cancelled.set()
            self._finish(cancelled)

    def cancel(self) -> None:
        """Set the flag of the running stream, if there is one."""
        if self._running is not None:
            self._running.set()

    async def close(self, release: Callable[[], None]) -> None:
        """Stop the running stream, run `release` as the last job and end the thread."""
        if self._is_closed:
            return
        self.cancel()
        released = self.call(release) if self._thread is not None else None
        try:
            if released is not None:
                await released
        finally:
            self._is_closed = True
            self._jobs.put(None)
            if self._thread is not None:
                await asyncio.to_thread(self._thread.join)

    def _submit(self, job: Job) -> None:
        if self._is_closed:
            raise EngineError("The engine is closed.", "", "Start Glimmer again.")
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="glimmer-engine", daemon=True)
            self._thread.start()
        self._jobs.put(job)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()

    def _finish(self, cancelled: threading.Event) -> None:
        if self._running is cancelled:
            self._running = None


def _post(loop: asyncio.AbstractEventLoop, function: Callable[..., object], *arguments: object) -> bool:
    """Run `function` on the loop's thread; False when that loop is gone."""
    try:
        loop.call_soon_threadsafe(function, *arguments)
    except RuntimeError:
        return False
    return True


def _resolve(future: asyncio.Future[T], result: T) -> None:
    if not future.done():
        future.set_result(result)


def _reject(future: asyncio.Future[T], error: EngineError) -> None:
    if not future.done():
        future.set_exception(error)


def _as_engine_error(error: BaseException) -> EngineError:
    if isinstance(error, EngineError):
        return error
    wrapped = EngineError(
        "The engine failed unexpectedly.",
        f"{type(error).__name__}: {error}.",
        "Try again; if it fails again, start Glimmer anew.",
    )
    wrapped.__cause__ = error
    return wrapped
