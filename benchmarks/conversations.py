"""What the benchmarks let a model reply to: conversations of unseen tasks, up to where it writes."""

import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

from engine.messages import Message
from engine.protocol import Sampling
from glimmer_tui.agent.prompt import system_message
from nano.expert import trajectory

FIRST_SEED = 8_000_000
LIMIT = 400
"""Tokens of a reply."""
CONTEXT = 16384
VERIFY_COST_H200 = 1.18
"""A verify of 16 rows in decode steps of one row on an H200, as published by llama.cpp's contributors."""
GREEDY = Sampling(temperature=0.0)


def conversations(count: int) -> Iterator[tuple[Message, ...]]:
    """Unseen conversations up to each place where the model writes."""
    with tempfile.TemporaryDirectory() as scratch:
        for number in range(count):
            said: list[Message] = [system_message()]
            for message, _ in trajectory(random.Random(FIRST_SEED + number), Path(scratch)):
                if message.role == "assistant":
                    yield tuple(said)
                said.append(message)
