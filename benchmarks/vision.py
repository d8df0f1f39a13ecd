"""Pictures: what they cost. `python -m benchmarks.vision`.

Time to encode, memory and tokens by size of the picture, time when it is kept on disk, and what the expiry of
ten screens reads again. Without a projector beside the model one of random weights is made; it costs as much.
"""

import argparse
import multiprocessing
import platform
import resource
import tempfile
import threading
import time
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image as Pillow

from benchmarks.shape_gguf import ProjectorShape, write_projector
from engine.loading import EngineOptions, Loaded, load
from engine.messages import Image, Message, Text
from engine.protocol import Done, Request, Sampling, SpanEvicted
from glimmer_tui.wiring import bundled_model

SIZES = ((280, 140), (640, 360), (1280, 720), (1920, 1080), (2560, 1440))
GREEDY = Sampling(temperature=0.0)


def picture(width: int, height: int, seed: int = 0) -> Image:
    """A picture that is like no other."""
    rows = np.random.default_rng(seed).integers(0, 255, (height // 7 + 1, width // 7 + 1, 3), dtype=np.uint8)
    buffer = BytesIO()
    Pillow.fromarray(rows).resize((width, height)).save(buffer, "PNG")
    return Image(buffer.getvalue(), width, height)


def opened(model: Path, projector: Path | None, cap: int, threads: int, folder: Path | None = None) -> Loaded:
    """The model, with its eyes open."""
    options = EngineOptions(16384, threads, projector=projector, picture_tokens=cap, picture_folder=folder)
    loaded = load(model, options)
    if loaded.pictures is None:
        raise SystemExit("\n".join(loaded.capabilities.notices) or "There is no projector.")
    return loaded


def peak() -> int:
    """The most memory this process ever held, in MiB."""
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used // (1024 if platform.system() == "Linux" else 1024 * 1024)


def one_size(model: Path, projector: Path | None, cap: int, threads: int, size: tuple[int, int]) -> None:
    """One line of the table; in a process of its own, so that its memory is seen."""
    with tempfile.TemporaryDirectory() as folder:
        loaded = opened(model, projector, cap, threads, Path(folder))
        assert loaded.pictures is not None
        before = peak()
        shown = picture(*size)
        start = time.perf_counter()
        places = loaded.pictures.places(shown)
        known = time.perf_counter()
        list(loaded.pictures.see(places, lambda: True))
        encoded = time.perf_counter()
        grown = peak() - before
        loaded.close()
        loaded = opened(model, projector, cap, threads, Path(folder))
        assert loaded.pictures is not None
        again = time.perf_counter()
        list(loaded.pictures.see(loaded.pictures.places(shown), lambda: True))
        kept = time.perf_counter() - again
        loaded.close()
    print(
        f"| {size[0]}x{size[1]} | {len(places):,} | {1e3 * (known - start):,.0f} ms | "
        f"{encoded - known:,.2f} s | {1e3 * kept:,.0f} ms | {grown:,} MiB |",
        flush=True,
    )


def expiry(model: Path, projector: Path | None, threads: int) -> None:
    """Ten screens in one conversation, then all of them taken out."""
    loaded = opened(model, projector, 120, threads)

    def say(history: list[Message], name: str) -> tuple[Done, int, float]:
        start = time.perf_counter()
        request = Request(tuple(history), sampling=GREEDY, max_tokens=8, reply_id=name)
        deltas = list(loaded.generator.generate(request, threading.Event()))
        assert isinstance(deltas[-1], Done)
        freed = sum(delta.tokens for delta in deltas if isinstance(delta, SpanEvicted))
        return deltas[-1], freed, time.perf_counter() - start

    history: list[Message] = []
    for turn in range(10):
        history.append(Message("user", (Text(f"screen {turn}: "), picture(560, 336, turn)), f"u{turn}"))
        say(history, f"r{turn}")
        history.append(Message("assistant", (Text("ok"),), f"r{turn}"))
    words = Message("user", (Text("a long message of plain words. " * 60),), "words")
    say([*history, words], "before")
    gone = [
        replace(m, parts=tuple(replace(p, expired="old") if isinstance(p, Image) else p for p in m.parts))
        for m in history
    ]
    last = Message("user", (Text("go on"),), "last")
    done, freed, took = say([*gone, words, Message("assistant", (Text("k"),), "before"), last], "end")
    print(
        f"\nTen screens expired: {freed:,} tokens freed, {done.usage.reread} read again, "
        f"{done.usage.prefilled} new ones read, {1e3 * took:,.0f} ms in all."
    )
    loaded.close()


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, default=bundled_model())
    parser.add_argument("--projector", type=Path, help="by default the one beside the model")
    parser.add_argument("--cap", type=int, default=1196)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    projector: Path | None = options.projector
    with tempfile.TemporaryDirectory() as scratch:
        if projector is None and not any(options.model.parent.glob("mmproj*.gguf")):
            projector = write_projector(
                Path(scratch) / "mmproj.gguf", ProjectorShape(192, 128, 512, 8), seed=1
            )
            print("The projector is one of random weights: 8 blocks of width 128.")
        print(f"{platform.machine()}, {options.threads} threads, at most {options.cap} tokens a picture\n")
        print("| picture | tokens | to know it | to encode it | from disk | memory beyond loading |")
        print("|---|---|---|---|---|---|")
        for size in SIZES:
            given = (options.model, projector, options.cap, options.threads, size)
            process = multiprocessing.get_context("spawn").Process(target=one_size, args=given)
            process.start()
            process.join()
        expiry(options.model, projector, options.threads)


if __name__ == "__main__":
    main()
