"""The engine beside llama-server, in one run: `python -m benchmarks.engine --server PATH`.

Both run the same GGUFs with the same threads on the same prompts, greedily: conversations of unseen tasks, at
each place where the model writes, one after the other in the same cache.
`benchmarks/build_llama_server.sh` builds the peer from the source that Glimmer's llama.cpp was built from.
Its figures are by its own clock, without HTTP; the times to the first token of warm turns are by ours, as a
client meets them. Measured unless a line says computed.
"""

import argparse
import json
import platform
import random
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.llama_server import LlamaServer
from benchmarks.twin import write_twin
from engine.generator import Generator, GeneratorOptions
from engine.loading import EngineOptions, Loaded, load
from engine.messages import Message, Reasoning, Text, ToolCall, ToolResult
from engine.protocol import Done, Request, Sampling
from glimmer_tui.agent.prompt import system_message
from glimmer_tui.wiring import bundled_model, tool_schemas
from nano.expert import trajectory

FIRST_SEED = 8_000_000
LIMIT = 400
CONTEXT = 16384
VERIFY_COST_H200 = 1.18
"""A verify of 16 rows in decode steps of one row on an H200, as published by llama.cpp's contributors."""
GREEDY = Sampling(temperature=0.0)


@dataclass(frozen=True, slots=True)
class Written:
    """Replies to all prompts: ids, seconds of writing, tokens read and the seconds it took, steps."""

    replies: list[tuple[int, ...]]
    prompts: list[tuple[int, ...]]
    writing: float
    read: int
    reading: float
    steps: int

    @property
    def rate(self) -> float:
        """Tokens a second."""
        return sum(map(len, self.replies)) / self.writing

    @property
    def read_rate(self) -> float:
        """Prompt tokens a second."""
        return self.read / self.reading


def conversations(count: int) -> Iterator[tuple[Message, ...]]:
    """Unseen conversations up to each place where the model writes."""
    with tempfile.TemporaryDirectory() as scratch:
        for number in range(count):
            said: list[Message] = [system_message()]
            for message, _ in trajectory(random.Random(FIRST_SEED + number), Path(scratch)):
                if message.role == "assistant":
                    yield tuple(said)
                said.append(message)


def written(loaded: Loaded, requests: Sequence[Request], drafts: int | None) -> Written:
    """All replies. Calls are not constrained: the peer's are not either."""
    options = GeneratorOptions(drafts, constrains=False)
    generator = Generator(loaded.cache, loaded.model.vocabulary, GREEDY, options)
    generator.conversation.clear()
    replies: list[tuple[int, ...]] = []
    prompts: list[tuple[int, ...]] = []
    writing = reading = 0.0
    read = steps = 0
    for request in requests:
        *_, done = generator.generate(request, threading.Event())
        assert isinstance(done, Done)
        ids = generator.conversation.log.ids
        prompts.append(ids[: done.usage.prompt])
        replies.append(ids[done.usage.prompt :])
        writing += done.timings.decode_s
        reading += done.timings.prefill_s
        read += done.usage.prefilled
        steps += done.usage.steps
    return Written(replies, prompts, writing, read, reading, steps)


def peer(server: LlamaServer, prompts: Sequence[tuple[int, ...]]) -> Written:
    """The peer's replies to the same prompts."""
    replies: list[tuple[int, ...]] = []
    writing = reading = 0.0
    read = 0
    for prompt in prompts:
        answer = server.complete(prompt, LIMIT, cached=True)
        timings = answer["timings"]
        replies.append(tuple(answer["tokens"]))
        writing += timings["predicted_ms"] / 1e3
        reading += timings["prompt_ms"] / 1e3
        read += timings["prompt_n"]
    return Written(replies, list(prompts), writing, read, reading, 0)


def same(ours: Written, theirs: Written, eot: int) -> str:
    """How many replies are the same, end markers aside."""
    pairs = zip(ours.replies, theirs.replies, strict=True)
    equal = sum(_bare(a, eot) == _bare(b, eot) for a, b in pairs)
    return f"{equal} of {len(ours.replies)} replies the same"


def _bare(ids: tuple[int, ...], eot: int) -> tuple[int, ...]:
    return ids[:-1] if ids and ids[-1] == eot else ids


def compare(
    name: str, model: Path, drafter: Path | None, server: Path | None, options: argparse.Namespace
) -> None:
    """Everything on one model."""
    print(f"\n== {name}: {model.name}, {model.stat().st_size / 1e6:,.0f} MB ==")
    engine = EngineOptions(CONTEXT, options.threads, drafter=drafter)
    tools = tool_schemas(Path.cwd())
    prompts = list(conversations(options.tasks))
    requests = [Request(said, tools, "low", GREEDY, LIMIT) for said in prompts]
    loaded = load(model, engine)
    eot = loaded.model.vocabulary.special("<|eot|>") or 0
    plain = written(loaded, requests, 0)
    print(f"{len(requests)} prompts of {sum(map(len, plain.prompts)) // len(requests):,} tokens on average")
    print(
        f"ours, plain: {plain.rate:,.1f} tok/s written; "
        f"{plain.read:,} tokens read, {plain.read_rate:,.0f} tok/s"
    )
    drafted: dict[int | None, Written] = {}
    if loaded.cache.drafter is not None:
        for depth in (7, 15, None):
            drafted[depth] = found = written(loaded, requests, depth)
            label = "adaptive" if depth is None else f"k = {depth}"
            emitted = sum(map(len, found.replies)) / max(1, found.steps)
            print(
                f"ours, DFlash {label}: {found.rate:,.1f} tok/s, {found.rate / plain.rate:.2f}x plain, "
                f"{emitted:.2f} tokens a step; {same(plain, found, eot)}"
            )
            if depth == 15:
                print(f"computed, on an H200 by its published verify cost: {emitted / VERIFY_COST_H200:.2f}x")
    loaded.close()
    if server is None:
        return
    with LlamaServer(server, model, CONTEXT, options.threads) as running:
        theirs = peer(running, plain.prompts)
    print(
        f"llama-server, plain: {theirs.rate:,.1f} tok/s written, {theirs.read:,} tokens read, "
        f"{theirs.read_rate:,.0f} tok/s; "
        f"ours / theirs: {plain.rate / theirs.rate:.2f} written, "
        f"{plain.read_rate / theirs.read_rate:.2f} read; "
        f"{same(plain, theirs, eot)}"
    )
    if drafter is None:
        return
    for depth in (7, 15):
        more = (
            "--model-draft",
            str(drafter),
            "--spec-type",
            "draft-dflash",
            "--spec-draft-n-max",
            str(depth),
        )
        with LlamaServer(server, model, CONTEXT, options.threads, more) as running:
            theirs = peer(running, plain.prompts)
        ratio = drafted[depth].rate / theirs.rate
        print(f"llama-server, DFlash k = {depth}: {theirs.rate:,.1f} tok/s; ours / theirs: {ratio:.2f}")


def turns(model: Path, drafter: Path | None, server: Path, options: argparse.Namespace) -> None:
    """Time to the first token of the second and the tenth turn of one conversation with tools."""
    print("\n== Warm turns, to the first token ==")
    tools = tool_schemas(Path.cwd())
    loaded = load(model, EngineOptions(CONTEXT, options.threads, drafter=drafter))
    generator = Generator(loaded.cache, loaded.model.vocabulary, GREEDY, GeneratorOptions(0))
    plain_tools = [
        {
            "type": "function",
            "function": {"name": t.name, "description": t.description, "parameters": t.parameters},
        }
        for t in tools
    ]
    with LlamaServer(server, model, CONTEXT, options.threads) as running:
        said: list[Message] = [system_message()]
        for turn in range(1, 11):
            said += _turn(turn)
            request = Request(tuple(said), tools, "low", GREEDY, 1)
            start = time.perf_counter()
            *_, done = generator.generate(request, threading.Event())
            ours = time.perf_counter() - start
            assert isinstance(done, Done)
            start = time.perf_counter()
            answer = running.chat([_openai(message) for message in said], plain_tools, 1)
            theirs = time.perf_counter() - start
            said.append(Message("assistant", (Text("Done."),), request.reply_id))
            if turn in (2, 10):
                read = answer.get("timings", {}).get("prompt_n")
                print(
                    f"turn {turn}, {done.usage.prompt:,} tokens: ours {ours * 1e3:.1f} ms "
                    f"({done.usage.prefilled} read, {done.usage.reread} of them again), "
                    f"llama-server {theirs * 1e3:.1f} ms ({read} read), {theirs / ours:.2f}x"
                )
    loaded.close()


def _turn(number: int) -> list[Message]:
    call = ToolCall(f"c{number}", "read", {"path": f"part_{number}.py"})
    text = "\n".join(f"def value_{number}_{row}():\n    return {row * number}\n" for row in range(12))
    return [
        Message("user", (Text(f"Look at part {number}."),)),
        Message("assistant", (Reasoning("I read it."), call)),
        Message("tool", (ToolResult(call.id, "read", text),)),
    ]


def _openai(message: Message) -> dict[str, Any]:
    match message.parts:
        case (ToolResult(call_id, name, text),):
            return {"role": "tool", "tool_call_id": call_id, "name": name, "content": text}
        case (Reasoning(why), ToolCall(id_, name, arguments)):
            function = {"name": name, "arguments": json.dumps(arguments)}
            call = {"id": id_, "type": "function", "function": function}
            return {"role": "assistant", "reasoning_content": why, "content": "", "tool_calls": [call]}
        case parts:
            return {"role": message.role, "content": "".join(p.text for p in parts if isinstance(p, Text))}


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", type=Path, help="a llama-server to compare with")
    parser.add_argument("--model", type=Path, default=bundled_model())
    parser.add_argument("--drafter", type=Path, help="default: dflash-<model> beside the model")
    parser.add_argument("--tasks", type=int, default=6, help="conversations")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", choices=("model", "twin"), help="leave the other one out")
    options = parser.parse_args()
    drafter = options.drafter or options.model.with_name(f"dflash-{options.model.name}")
    drafter = drafter if drafter.is_file() else None
    print(f"{platform.processor() or platform.machine()}, {options.threads} threads, {platform.platform()}")
    if options.only != "twin":
        compare("The model", options.model, drafter, options.server, options)
        if options.server is not None:
            turns(options.model, drafter, options.server, options)
    if options.only != "model":
        with tempfile.TemporaryDirectory() as folder:
            twin = write_twin(options.model, Path(folder) / "twin.gguf")
            compare("Its bandwidth-bound twin", twin, drafter, options.server, options)


if __name__ == "__main__":
    main()
