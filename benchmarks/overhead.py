"""What a step costs beside llama.cpp, at the 30B's vocabulary: `python -m benchmarks.overhead`.

A model of the 30B's vocabulary (202,048 tokens) and cache, but of a small width, writes a reply plainly, with
drafts and with constrained calls. The time inside llama.cpp's decode is taken out; what is left is ours:
drawing tokens, parsing, books. As a share it only says something beside a real step, so it is also given
beside the published step of an RTX 5090 (74.9 tokens a second, plainly): that share is computed.
"""

import argparse
import tempfile
import threading
import time
from pathlib import Path

import llama_cpp.llama_cpp as native

from benchmarks.shape_gguf import DrafterShape, ModelShape, write_drafter, write_model
from engine.context import Context
from engine.loading import EngineOptions, load
from engine.messages import Message, Text
from engine.protocol import Done, Request, Sampling
from glimmer_tui.wiring import tool_schemas

VOCABULARY = 202_048
PUBLISHED_STEP = 1 / 74.9
GREEDY, CARD = Sampling(temperature=0.0), Sampling(seed=1)


class NativeClock:
    """Adds up the seconds inside native decodes."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.count = 0
        clock = self

        def timed(context: Context, batch: native.llama_batch) -> None:
            start = time.perf_counter()
            try:
                _STEP(context, batch)
            finally:
                clock.seconds += time.perf_counter() - start
                clock.count += 1

        Context.step = timed


_STEP = Context.step


def main() -> None:
    """Print a line for each way of writing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    clock = NativeClock()
    tools = tool_schemas(Path.cwd())
    with tempfile.TemporaryDirectory() as folder:
        shape = ModelShape(layers=8, width=64, ffn=64, vocabulary=VOCABULARY)
        model = write_model(Path(folder) / "model.gguf", shape, "Q8_0", seed=1)
        drafter = DrafterShape(layers=2, ffn=64, target_layers=(1, 3, 5))
        write_drafter(Path(folder) / "dflash.gguf", shape, drafter, "Q8_0", seed=2)
        for name, drafts, sampling, constrains in (
            ("plain, greedy", 0, GREEDY, False),
            ("plain, the card's sampling", 0, CARD, False),
            ("plain, constrained", 0, GREEDY, True),
            ("15 drafts, greedy", 15, GREEDY, False),
        ):
            engine = EngineOptions(16384, options.threads, drafts=drafts, constrains=constrains)
            loaded = load(model, engine)
            asked = Request(
                (Message("user", (Text("go"),)),), tools, sampling=sampling, max_tokens=options.tokens
            )
            for _ in range(2):
                loaded.generator.conversation.clear()
                clock.seconds, clock.count = 0.0, 0
                stream = loaded.generator.generate(asked, threading.Event())
                *_, done = stream
            assert isinstance(done, Done)
            total = done.timings.prefill_s + done.timings.decode_s
            ours = (total - clock.seconds) / max(1, done.usage.steps)
            print(
                f"{name}: {ours * 1e6:,.0f} µs a step are ours, "
                f"{clock.seconds / clock.count * 1e3:.2f} ms a native decode here; "
                f"{ours / (PUBLISHED_STEP + ours):.1%} beside a step of an RTX 5090 (computed)"
            )
            loaded.close()


if __name__ == "__main__":
    main()
