"""Whether memory stays flat: `python -m benchmarks.long_session --turns 500`.

One conversation with the bundled model goes on for hundreds of turns, far past its context, so that spans are
removed, checkpoints come and go and drafts are made all the time. Resident memory is printed as it goes.
"""

import argparse
import threading

import psutil

from engine.loading import EngineOptions, load
from engine.messages import Message, Text, ToolCall, ToolResult
from engine.protocol import Done, Request, Sampling, SpanEvicted
from glimmer_tui.agent.prompt import system_message
from glimmer_tui.wiring import bundled_model


def main() -> None:
    """Print a line each tenth of the way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=500)
    parser.add_argument("--context", type=int, default=4096)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    process = psutil.Process()
    loaded = load(bundled_model(), EngineOptions(options.context, options.threads))
    said = [system_message()]
    removed = reread = 0
    for turn in range(1, options.turns + 1):
        call = ToolCall(f"c{turn}", "read", {"path": f"part_{turn}.py"})
        rows = "\n".join(f"value_{turn}_{row} = {row * turn}" for row in range(12))
        said += [
            Message("user", (Text(f"Look at part {turn}."),)),
            Message("assistant", (call,)),
            Message("tool", (ToolResult(call.id, "read", rows),)),
        ]
        request = Request(tuple(said), (), "low", Sampling(temperature=0.0), 24)
        for delta in loaded.generator.generate(request, threading.Event()):
            match delta:
                case SpanEvicted(_, tokens):
                    removed += tokens
                case Done(_, usage, _):
                    reread += usage.reread
                    used = usage.context_used
                case _:
                    pass
        said.append(Message("assistant", (Text("Done."),), request.reply_id))
        if turn % (options.turns // 10) == 0:
            memory = process.memory_info().rss / 2**20
            length = len(loaded.generator.conversation.log.ids)
            print(
                f"turn {turn}: {memory:,.1f} MiB resident, {length:,} tokens long, {used:,} in the cache, "
                f"{removed:,} removed, {reread} read again",
                flush=True,
            )
    loaded.close()


if __name__ == "__main__":
    main()
