"""The engine beside llama-server, in one run: `python -m benchmarks.engine --server PATH`.

Both run the same GGUFs with the same threads on the same prompts, greedily: conversations of unseen tasks, at
each place where the model writes. All write each reply in turn, so that a machine that is now faster and now
slower is so for all. `benchmarks/build_llama_server.sh` builds the peer from the source that Glimmer's
llama.cpp was built from. Its figures are by its own clock, without HTTP; the times to the first token of warm
turns are by ours, as a client meets them. Measured unless a line says computed.
"""

import argparse
import json
import platform
import tempfile
import threading
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.conversations import CONTEXT, GREEDY, LIMIT, VERIFY_COST_H200, conversations
from benchmarks.llama_server import LlamaServer
from benchmarks.twin import write_twin
from benchmarks.writers import Ours, Peer, Record, Writer, in_turn
from engine.generator import Generator, GeneratorOptions
from engine.loading import EngineOptions, load
from engine.messages import Message, Reasoning, Text, ToolCall, ToolResult
from engine.protocol import Done, Request
from glimmer_tui.agent.prompt import system_message
from glimmer_tui.wiring import bundled_model, tool_schemas

PLAIN, ADAPTIVE = "ours, plain", "ours, adaptive"
DEPTHS = (7, 15)


def compare(name: str, model: Path, drafter: Path, server: Path | None, options: argparse.Namespace) -> None:
    """Everything on one model."""
    print(f"\n== {name}: {model.name}, {model.stat().st_size / 1e6:,.0f} MB ==")
    tools = tool_schemas(Path.cwd())
    requests = [Request(said, tools, "low", GREEDY, LIMIT) for said in conversations(options.tasks)]
    requests = requests[: options.replies or len(requests)]
    with ExitStack() as stack:
        writers: dict[str, Writer] = {}
        drafts = {PLAIN: 0, **{f"ours, k = {depth}": depth for depth in DEPTHS}, ADAPTIVE: None}
        eot = 0
        for label, depth in drafts.items():
            engine = EngineOptions(
                CONTEXT, options.threads, drafter=drafter if depth != 0 else None, drafts=depth
            )
            loaded = load(model, engine)
            stack.callback(loaded.close)
            writers[label] = Ours(loaded, depth)
            eot = loaded.model.vocabulary.special("<|eot|>") or 0
        if server is not None:
            for depth in (0, *DEPTHS):
                running = LlamaServer(server, model, CONTEXT, options.threads, _drafting(drafter, depth))
                writers[_peer(depth)] = Peer(stack.enter_context(running))
        records = in_turn(writers, requests)
    _report(records, eot, has_peer=server is not None)


def _drafting(drafter: Path, depth: int) -> tuple[str, ...]:
    """What makes llama-server draft `depth` tokens a step."""
    if not depth:
        return ()
    kind = ("--spec-type", "draft-dflash", "--spec-draft-n-max", str(depth))
    return ("--model-draft", str(drafter), *kind)


def _peer(depth: int) -> str:
    return f"llama-server, k = {depth}" if depth else "llama-server, plain"


def _report(records: dict[str, Record], eot: int, has_peer: bool) -> None:
    plain = records[PLAIN]
    prompts = [len(reply.prompt) for reply in plain.replies]
    written = sum(len(reply.ids) for reply in plain.replies)
    average = sum(prompts) // len(prompts)
    print(f"{len(prompts)} replies, {written:,} tokens, after prompts of {average:,} on average")
    print("ratios are medians over the replies\n")
    print("| writer | tok/s | beside ours, plain | tokens a step | text |")
    print("|---|---|---|---|---|")
    for name, record in records.items():
        step = f"{record.per_step:.2f}" if record.per_step else ""
        times, text = record.times(plain), plain.same(record, eot)
        print(f"| {name} | {record.rate:,.1f} | {times:.2f} | {step} | {text} |")
    print()
    deepest = records[f"ours, k = {DEPTHS[-1]}"].per_step
    print(f"computed: on an H200 by its published verify cost {deepest / VERIFY_COST_H200:.2f}x plain")
    if has_peer:
        theirs = records[_peer(0)]
        print(f"ours / llama-server: plain {plain.times(theirs):.2f}, reading {plain.read_times(theirs):.2f}")
        for depth in DEPTHS:
            ratio = records[f"ours, k = {depth}"].times(records[_peer(depth)])
            print(f"ours / llama-server: k = {depth} {ratio:.2f}")


def texts(model: Path, drafter: Path, options: argparse.Namespace) -> None:
    """Adaptive beside plain on other kinds of text than the model's own: it only has to do no harm there."""
    print("\n== Adaptive depth by kind of text ==")
    tools = tool_schemas(Path.cwd())
    kinds = {
        "prose": "Tell me at length what this program is for, and why.",
        "code": "Write a long module with many functions.",
        "random": " ".join(str(number * 7919 % 10007) for number in range(200)),
    }
    with ExitStack() as stack:
        loads = [
            load(model, EngineOptions(CONTEXT, options.threads, drafter=given, drafts=depth))
            for given, depth in ((None, 0), (drafter, None))
        ]
        for loaded in loads:
            stack.callback(loaded.close)
        for kind, words in kinds.items():
            writers: dict[str, Writer] = {PLAIN: Ours(loads[0], 0), ADAPTIVE: Ours(loads[1], None)}
            requests = [
                Request(
                    (system_message(), Message("user", (Text(f"{words} {number}"),))),
                    tools,
                    "low",
                    GREEDY if kind != "random" else replace(GREEDY, temperature=1.5, seed=number),
                    LIMIT,
                )
                for number in range(6)
            ]
            records = in_turn(writers, requests)
            print(f"{kind}: adaptive {records[ADAPTIVE].times(records[PLAIN]):.2f}x plain", flush=True)


def turns(model: Path, server: Path, options: argparse.Namespace) -> None:
    """Time to the first token of the second and the tenth turn of a conversation with tools."""
    print("\n== Warm turns, to the first token ==")
    tools = tool_schemas(Path.cwd())
    plain_tools = [
        {
            "type": "function",
            "function": {"name": t.name, "description": t.description, "parameters": t.parameters},
        }
        for t in tools
    ]
    loaded = load(model, EngineOptions(CONTEXT, options.threads, drafts=0))
    seen: dict[int, list[tuple[float, float]]] = {2: [], 10: []}
    with LlamaServer(server, model, CONTEXT, options.threads) as running:
        for repetition in range(5):
            generator = Generator(loaded.cache, loaded.model.vocabulary, GREEDY, GeneratorOptions(0))
            generator.conversation.clear()
            said: list[Message] = [system_message()]
            for turn in range(1, 11):
                said += _turn(turn + 100 * repetition)
                request = Request(tuple(said), tools, "low", GREEDY, 1)
                start = time.perf_counter()
                *_, done = generator.generate(request, threading.Event())
                ours = time.perf_counter() - start
                assert isinstance(done, Done)
                start = time.perf_counter()
                answer = running.chat([_openai(message) for message in said], plain_tools, 1)
                theirs = time.perf_counter() - start
                said.append(Message("assistant", (Text("Done."),), request.reply_id))
                if turn in seen:
                    seen[turn].append((ours, theirs))
                    read = answer.get("timings", {}).get("prompt_n")
                    counts = (
                        f"{done.usage.prefilled} read, {done.usage.reread} again; llama-server {read} read"
                    )
                    if not repetition:
                        print(f"turn {turn}: {done.usage.prompt:,} tokens, {counts}")
    for turn, pairs in seen.items():
        ours, theirs = (1e3 * median(side) for side in zip(*pairs, strict=True))
        ratio = median(theirs / ours for ours, theirs in pairs)
        print(f"turn {turn}: ours {ours:.1f} ms, llama-server {theirs:.1f} ms, {ratio:.2f}x")
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
    parser.add_argument("--replies", type=int, help="at most so many replies in all")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", choices=("model", "twin", "turns", "texts"), help="leave the others out")
    options = parser.parse_args()
    drafter = options.drafter or options.model.with_name(f"dflash-{options.model.name}")
    if not drafter.is_file():
        raise SystemExit(f"There is no drafter {drafter}.")
    parts = (options.only,) if options.only else ("model", "turns", "texts", "twin")
    print(f"{platform.processor() or platform.machine()}, {options.threads} threads, {platform.platform()}")
    for part in parts:
        match part:
            case "model":
                compare("The model", options.model, drafter, options.server, options)
            case "turns" if options.server is not None:
                turns(options.model, options.server, options)
            case "texts":
                texts(options.model, drafter, options)
            case "twin":
                with tempfile.TemporaryDirectory() as folder:
                    twin = write_twin(options.model, Path(folder) / "twin.gguf")
                    compare("Its bandwidth-bound twin", twin, drafter, options.server, options)
            case _:
                print("Warm turns are compared with llama-server: give --server.")


if __name__ == "__main__":
    main()
