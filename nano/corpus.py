"""Write training conversations as JSON lines: `python -m nano.corpus --count 12000 --seed 1 --out nano/out`.

A line is a list of messages; a message is [weight, [piece, ...]]; a piece is a string, or {"marker": text}.
The constant system block is not stored: training puts it before each batch.
"""

import argparse
import json
import os
import random
import tempfile
from pathlib import Path

from engine.chat_format import Marker, message_pieces
from engine.messages import Message
from nano.expert import trajectory


def encode_line(turns: list[tuple[Message, float]]) -> str:
    """One conversation as a JSON line."""
    rows = [[weight, [_piece(piece) for piece in message_pieces(message)]] for message, weight in turns]
    return json.dumps(rows, ensure_ascii=False)


def _piece(piece: object) -> object:
    return {"marker": piece.value} if isinstance(piece, Marker) else piece


def write_shard(path: Path, seed: int, count: int) -> None:
    """Write `count` conversations; the same seed gives the same ones but for names of scratch folders."""
    scratch = Path("/dev/shm") if os.path.isdir("/dev/shm") else Path(tempfile.gettempdir())
    rng = random.Random(seed)
    with path.open("a", encoding="utf-8", buffering=1) as sink:
        for _ in range(count):
            try:
                sink.write(encode_line(trajectory(rng, scratch)) + "\n")
            except AssertionError as fault:
                print(f"redrawn: {str(fault)[:200]!r}", flush=True)


def main() -> None:
    """Write shards in as many processes as asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=12_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("nano/out"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    children: list[int] = []
    for worker in range(options.workers):
        child = os.fork()
        if child == 0:
            seed = options.seed * 1000 + worker
            write_shard(options.out / f"corpus-{seed}.jsonl", seed, options.count // options.workers)
            os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
