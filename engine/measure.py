"""How fast a loaded model is, and how near to what the machine's memory allows.

A step of plain decoding reads every weight once and the keys and values of what came before, so the bytes it
reads over the memory's bandwidth are the least time it can take. How fast the memory is, is measured by
copying; a GPU's is not known to us, and then no share is given.
"""

import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from engine.buffer_sizes import cell_bytes
from engine.cache import Cache
from engine.generator import Generator, GeneratorOptions
from engine.loading import Loaded
from engine.memory import Memory
from engine.protocol import Done, Request

_COPY_BYTES = 128 << 20


@dataclass(frozen=True, slots=True)
class Speed:
    """At `length` tokens of context: tokens read and written a second, plainly."""

    length: int
    prefill: float
    decode: float


@dataclass(frozen=True, slots=True)
class Drafting:
    """The same replies written plainly and with drafts: tokens a second and a step, acceptance by place."""

    tokens: int
    plain: float
    drafted: float
    per_step: float
    shares: tuple[float, ...]
    same: bool


@dataclass(frozen=True, slots=True)
class Restoring:
    """Seconds to go back to a checkpoint at `length` tokens, and to take over all of a stored cache."""

    length: int
    checkpoint: float
    whole: float
    nbytes: int


def speeds(loaded: Loaded, lengths: Sequence[int], count: int) -> Iterator[Speed]:
    """Read ever more tokens and write `count` at each length."""
    cache = loaded.cache
    cache.clear()
    filler = loaded.model.vocabulary.tokenize(_FILLER)
    position = 0
    for length in sorted(lengths):
        if length + count > cache.size:
            return
        start, began = time.perf_counter(), position
        _read(cache, filler, position, length)
        read, position = time.perf_counter() - start, length
        start = time.perf_counter()
        for _ in range(count):
            cache.read([int(cache.scores(-1).argmax())], position)
            position += 1
        yield Speed(length, (length - began) / read, count / (time.perf_counter() - start))
    cache.clear()


def drafting(loaded: Loaded, requests: Sequence[Request]) -> Drafting | None:
    """Write the replies to `requests` twice. None where the model has no drafter."""
    if loaded.cache.drafter is None:
        return None
    plain = [_written(loaded, _generator(loaded, 0), request) for request in requests]
    drafter = _generator(loaded, None)
    _written(loaded, drafter, requests[0])
    fast = [_written(loaded, drafter, request) for request in requests]
    tokens = sum(done.usage.generated for _, done in fast)
    steps = sum(done.usage.steps for _, done in fast)
    depth = drafter.speculator.drafter_depth
    return Drafting(
        tokens=tokens,
        plain=sum(d.usage.generated for _, d in plain) / sum(d.timings.decode_s for _, d in plain),
        drafted=tokens / sum(d.timings.decode_s for _, d in fast),
        per_step=tokens / steps if steps else 0.0,
        shares=depth.acceptance.shares() if depth else (),
        same=[ids for ids, _ in plain] == [ids for ids, _ in fast],
    )


def restoring(loaded: Loaded, length: int) -> Restoring:
    """Go back at `length` tokens, from a checkpoint and from a stored cache."""
    cache = loaded.cache
    cache.clear()
    filler = loaded.model.vocabulary.tokenize(_FILLER)
    length = max(1, min(length, cache.size - cache.batch_size))
    memory = Memory(cache)
    _read(cache, filler, 0, length)
    memory.checkpoint(length)
    state = memory.store(length)
    checkpoint = memory.checkpoints.kept[-1].snapshot
    back = _median(lambda: cache.restore_window(checkpoint))
    whole = _median(lambda: cache.restore(state.whole))
    cache.clear()
    return Restoring(length, back, whole, state.whole.size)


def bytes_per_step(loaded: Loaded, length: int) -> int:
    """Bytes that one plain step at `length` tokens must read: weights, keys and values."""
    weights, shape = loaded.files.model.weights, loaded.files.model.shape
    cell = cell_bytes(shape, loaded.plan.settings.kv_type)
    local = sum(shape.local)
    cells = local * min(length, shape.window) + (shape.layers - local) * length
    return sum(weights.layers) + weights.output + cells * cell


def memory_bandwidth(threads: int) -> float:
    """Bytes a second that this machine's memory reads, by adding up large arrays on every thread."""
    arrays = [np.ones(_COPY_BYTES // 4, np.float32) for _ in range(threads)]
    best = 0.0
    for _ in range(4):
        workers = [threading.Thread(target=array.max) for array in arrays]
        start = time.perf_counter()
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        best = max(best, threads * _COPY_BYTES / (time.perf_counter() - start))
    return best


def _read(cache: Cache, filler: Sequence[int], start: int, end: int) -> None:
    """Fill the positions from `start` to `end` - 1."""
    for position in range(start, end, cache.batch_size):
        last = min(end, position + cache.batch_size)
        part = [filler[i % len(filler)] for i in range(position, last)]
        cache.read(part, position, end - last)


def _generator(loaded: Loaded, drafts: int | None) -> Generator:
    metadata = loaded.model.metadata
    options = GeneratorOptions(drafts)
    return Generator(loaded.cache, loaded.model.vocabulary, metadata.sampling, options)


def _written(loaded: Loaded, generator: Generator, request: Request) -> tuple[tuple[int, ...], Done]:
    """A reply from an empty cache: its ids and what it took."""
    generator.conversation.clear()
    *_, done = generator.generate(request, threading.Event())
    if not isinstance(done, Done):
        raise TypeError("a reply ends with Done")
    return generator.conversation.log.ids[done.usage.prompt :], done


def _median(work: Callable[[], None], times: int = 5) -> float:
    taken: list[float] = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


_FILLER = """
def totals(orders):
    \"\"\"Add up the amounts of each customer.\"\"\"
    found = {}
    for name, amount in orders:
        found[name] = found.get(name, 0) + amount
    return sorted(found.items())
"""
