"""`glimmer bench`: how fast the model is on this machine, as a table or as JSON."""

import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from engine import measure
from engine.devices import devices
from engine.loading import EngineOptions, Loaded, default_threads, load
from engine.messages import Message, Reasoning, Text, ToolCall, ToolResult, ToolSchema
from engine.protocol import Request, Sampling
from glimmer_tui.agent.prompt import system_message

QUICK_LENGTHS, LENGTHS = (1024, 4096), (1024, 8192, 32768, 65536, 122880)
QUICK_TOKENS, TOKENS = 48, 128
RESTORED = 32768

_FAILED = """\
Tests failed: 1 failed, 2 passed (pytest).

=== FAILURES ===
___ test_get_total ___
test_cart.py:5: in test_get_total
    assert get_total(3, 4) == 12
E   assert 7 == 12
E    +  where 7 = get_total(3, 4)
=== short test summary info ===
FAILED test_cart.py::test_get_total - assert 7 == 12"""
_CART = '''\
cart.py (9 lines)
def get_total(price, count):
    """Return the product of price and count."""
    return price + count


def pick_price(prices):
    """Return the smallest of prices."""
    return min(prices)
'''


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that was measured. Bytes, seconds, and tokens a second."""

    model: str
    plan: str
    threads: int
    memory: dict[str, int]
    speeds: tuple[measure.Speed, ...]
    drafting: measure.Drafting | None
    restoring: measure.Restoring
    step_bytes: int
    bandwidth: float | None
    """Bytes a second of main memory; None where the weights lie on a GPU."""
    share: float | None
    """The part of it that plain decoding used, at the first length."""
    seconds: float


def run_bench(model: Path, options: EngineOptions, tools: tuple[ToolSchema, ...], quick: bool) -> Report:
    """Load the model and measure it. Raises ModelError or EngineError."""
    start = time.perf_counter()
    loaded = load(model, options)
    try:
        return _measured(loaded, options, tools, quick, start)
    finally:
        loaded.close()


def as_json(report: Report) -> str:
    """The report on one line, for programs."""
    return json.dumps(asdict(report))


def as_table(report: Report) -> str:
    """The report for people."""
    return "\n".join(_rows(report)) + "\n"


def conversation() -> Iterator[tuple[Message, ...]]:
    """A small job up to each place where the model writes next."""
    said = [system_message(), Message("user", (Text("Fix the failing test"),))]
    yield tuple(said)
    said += _called("First I run the tests.", "test", {}, _FAILED)
    yield tuple(said)
    said += _called("get_total fails in cart.py. I read it.", "read", {"path": "cart.py"}, _CART)
    yield tuple(said)


def _called(why: str, name: str, arguments: dict[str, str], result: str) -> tuple[Message, Message]:
    call = ToolCall(name, name, arguments)
    asked = Message("assistant", (Reasoning(why), call))
    return asked, Message("tool", (ToolResult(name, name, result),))


def _measured(
    loaded: Loaded, options: EngineOptions, tools: tuple[ToolSchema, ...], quick: bool, start: float
) -> Report:
    threads = options.threads or default_threads()
    limit = 160 if quick else 400
    sampling = Sampling(temperature=0.0)
    requests = [Request(said, tools, "low", sampling, limit) for said in conversation()]
    speeds = tuple(
        measure.speeds(loaded, QUICK_LENGTHS if quick else LENGTHS, QUICK_TOKENS if quick else TOKENS)
    )
    drafting = measure.drafting(loaded, requests)
    restoring = measure.restoring(loaded, QUICK_LENGTHS[-1] if quick else RESTORED)
    step = measure.bytes_per_step(loaded, speeds[0].length if speeds else 0)
    on_gpu = any(device.kind == "gpu" for device in devices()) and loaded.plan.settings.gpu_layers > 0
    bandwidth = None if on_gpu else measure.memory_bandwidth(threads)
    share = step * speeds[0].decode / bandwidth if bandwidth and speeds else None
    memory: dict[str, int] = {}
    for buffer in loaded.plan.buffers:
        name = f"{buffer.kind} on {buffer.device}"
        memory[name] = memory.get(name, 0) + buffer.nbytes
    return Report(
        model=str(loaded.model.metadata.path),
        plan=loaded.plan.summary,
        threads=threads,
        memory=memory,
        speeds=speeds,
        drafting=drafting,
        restoring=restoring,
        step_bytes=step,
        bandwidth=bandwidth,
        share=share,
        seconds=time.perf_counter() - start,
    )


def _rows(report: Report) -> Iterator[str]:
    yield report.model
    yield f"Plan: {report.plan}"
    yield ""
    yield f"{'context':>10} {'read':>12} {'written':>12}   tokens a second, {report.threads} threads"
    for speed in report.speeds:
        yield f"{speed.length:>10,} {speed.prefill:>12,.1f} {speed.decode:>12,.1f}"
    yield ""
    if (drafting := report.drafting) is None:
        yield "Drafting: off, there is no drafter."
    else:
        gain = drafting.drafted / drafting.plain
        yield (
            f"Drafting: {drafting.plain:,.1f} plain, {drafting.drafted:,.1f} with drafts ({gain:.2f}x), "
            f"{drafting.per_step:.2f} tokens a step over {drafting.tokens} tokens; "
            f"the text is {'the same' if drafting.same else 'not the same (scores were equal)'}."
        )
        yield "Accepted by place: " + " ".join(f"{share:.2f}" for share in drafting.shares)
    back = report.restoring
    yield (
        f"At {back.length:,} tokens: back to a checkpoint in {back.checkpoint * 1e3:.1f} ms, "
        f"a stored cache ({back.nbytes / 2**20:.1f} MiB) taken over in {back.whole * 1e3:.1f} ms."
    )
    yield ""
    yield "Memory: " + ", ".join(f"{name} {size / 2**20:,.1f} MiB" for name, size in report.memory.items())
    step = f"One step reads {report.step_bytes / 2**20:,.1f} MiB"
    if report.bandwidth and report.share:
        step += (
            f"; main memory gives {report.bandwidth / 1e9:.1f} GB/s (measured), "
            f"of which decoding uses {report.share:.0%}"
        )
    yield f"{step}."
    yield f"{report.seconds:.0f} seconds in all."
