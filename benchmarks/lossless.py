"""Whether drafting changes what is written, and how much of it stands: `python -m benchmarks.lossless`.

Unseen conversations are gone through message by message; at each place where the model writes it replies
greedily, plainly and with drafts. Where two replies differ the scores at the first difference are looked at:
a batch of another size adds up in another order, so two tokens with (nearly) the same score are a tie that
either may win. Anything else is a fault, and the exit code is 1.
"""

import argparse
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.conversations import CONTEXT, GREEDY, LIMIT, VERIFY_COST_H200, conversations
from engine.cache import Cache
from engine.generator import Generator, GeneratorOptions
from engine.loading import EngineOptions, Loaded, load
from engine.protocol import Done, Request
from engine.speculator import Proposal, Speculator
from glimmer_tui.wiring import bundled_model, tool_schemas

TIE = 0.02
"""Scores nearer than this are a tie; other batch cuts move scores by up to 0.01."""


@dataclass
class Outcome:
    """What was written: for each prompt its ids and the reply's, and in how many steps."""

    written: list[tuple[tuple[int, ...], tuple[int, ...]]] = field(default_factory=list)
    steps: int = 0

    @property
    def tokens(self) -> int:
        """Tokens of all replies."""
        return sum(len(reply) for _, reply in self.written)


class Counted(Speculator):
    """Remembers how many drafts stood at each step."""

    def __init__(self, cache: Cache, fixed: int | None) -> None:
        super().__init__(cache, fixed, cuts=fixed is None)
        self.stood: list[int] = []

    def observe(self, proposal: Proposal, stood: int, seconds: float) -> None:
        """Take note, and learn."""
        if len(proposal.tokens) == (self._cache.drafter.most if self._cache.drafter else -1):
            self.stood.append(stood)
        super().observe(proposal, stood, seconds)


def write(loaded: Loaded, requests: Sequence[Request], drafts: int | None) -> tuple[Outcome, Counted]:
    """All replies; one conversation follows the other in the same cache."""
    generator = Generator(
        loaded.cache, loaded.model.vocabulary, GREEDY, GeneratorOptions(drafts, constrains=False)
    )
    counted = generator.speculator = Counted(loaded.cache, drafts)
    generator.conversation.clear()
    found = Outcome()
    for request in requests:
        *_, done = generator.generate(request, threading.Event())
        assert isinstance(done, Done)
        ids = generator.conversation.log.ids
        found.written.append((ids[: done.usage.prompt], ids[done.usage.prompt :]))
        found.steps += done.usage.steps
    return found, counted


def margin(loaded: Loaded, prompt: tuple[int, ...], one: tuple[int, ...], other: tuple[int, ...]) -> float:
    """The difference of the two tokens' scores where the replies part."""
    length = min(len(one), len(other))
    at = next((i for i in range(length) if one[i] != other[i]), None)
    if at is None:
        return float("inf")
    cache, ids = loaded.cache, (*prompt, *one[:at])
    cache.clear()
    for start in range(0, len(ids), cache.batch_size):
        cache.read(ids[start : start + cache.batch_size], start)
    scores = cache.scores(-1)
    return abs(float(scores[one[at]] - scores[other[at]]))


def judge(loaded: Loaded, plain: Outcome, drafted: Outcome) -> tuple[int, int]:
    """How many replies differ at a tie, and how many elsewhere."""
    ties = faults = 0
    for (prompt, one), (_, other) in zip(plain.written, drafted.written, strict=True):
        if one != other:
            is_tie = margin(loaded, prompt, one, other) < TIE
            ties, faults = ties + is_tie, faults + (not is_tie)
    return ties, faults


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, default=bundled_model())
    parser.add_argument("--tasks", type=int, default=200)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    loaded = load(options.model, EngineOptions(CONTEXT, options.threads))
    if loaded.cache.drafter is None:
        raise SystemExit("There is no drafter beside the model.")
    tools = tool_schemas(Path.cwd())
    requests = [Request(said, tools, "low", GREEDY, LIMIT) for said in conversations(options.tasks)]
    plain, _ = write(loaded, requests, 0)
    print(f"{options.tasks} tasks, {len(requests)} replies, {plain.tokens:,} tokens", flush=True)
    wrong = 0
    for drafts in (loaded.cache.drafter.most, None):
        drafted, counted = write(loaded, requests, drafts)
        ties, faults = judge(loaded, plain, drafted)
        wrong += faults
        same = len(requests) - ties - faults
        name = "adaptive" if drafts is None else f"k = {drafts}"
        print(
            f"{name}: {same} replies the same, {ties} part at a tie, {faults} elsewhere; "
            f"{drafted.tokens / drafted.steps:.2f} tokens a step",
            flush=True,
        )
        if drafts is not None and counted.stood:
            steps = len(counted.stood)
            shares = [sum(stood > at for stood in counted.stood) / steps for at in range(drafts)]
            print("accepted by position: " + " ".join(f"{share:.3f}" for share in shares))
            cost = drafted.tokens / drafted.steps / VERIFY_COST_H200
            print(f"computed, with an H200's published cost of a verify step: {cost:.2f}x plain")
    loaded.close()
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
