"""Those that are compared: each writes the same replies, and its own clock says how long that took."""

import threading
from dataclasses import dataclass, field
from statistics import median
from typing import Protocol

from benchmarks.conversations import GREEDY, LIMIT
from benchmarks.llama_server import LlamaServer
from engine.generator import Generator, GeneratorOptions
from engine.loading import Loaded
from engine.protocol import Done, Request


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply's prompt and tokens, the steps and seconds of writing it, and what was read for it."""

    prompt: tuple[int, ...]
    ids: tuple[int, ...]
    steps: int
    writing_s: float
    read: int
    reading_s: float

    @property
    def rate(self) -> float:
        """Tokens a second."""
        return len(self.ids) / self.writing_s


@dataclass
class Record:
    """All replies of one writer."""

    replies: list[Reply] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Tokens written a second, over all replies."""
        return sum(len(r.ids) for r in self.replies) / sum(r.writing_s for r in self.replies)

    @property
    def read_rate(self) -> float:
        """Prompt tokens read a second, over all replies."""
        return sum(r.read for r in self.replies) / sum(r.reading_s for r in self.replies)

    @property
    def per_step(self) -> float:
        """Tokens a decode step; 0 where the steps are not known."""
        steps = sum(r.steps for r in self.replies)
        return sum(len(r.ids) for r in self.replies) / steps if steps else 0.0

    def times(self, other: "Record") -> float:
        """How many times as fast as `other` it wrote: the median over the replies, which were written in
        turn, so that what else the machine did falls out."""
        pairs = zip(self.replies, other.replies, strict=True)
        return median(mine.rate / theirs.rate for mine, theirs in pairs)

    def read_times(self, other: "Record") -> float:
        """How many times as fast as `other` it read, likewise, where both read something worth timing."""
        pairs = zip(self.replies, other.replies, strict=True)
        rates = [
            (mine.read / mine.reading_s) / (theirs.read / theirs.reading_s)
            for mine, theirs in pairs
            if mine.read >= 32 and theirs.read >= 32
        ]
        return median(rates) if rates else float("nan")

    def same(self, other: "Record", eot: int) -> str:
        """How many replies are the same, end markers aside."""
        pairs = zip(self.replies, other.replies, strict=True)
        equal = sum(_bare(a.ids, eot) == _bare(b.ids, eot) for a, b in pairs)
        return f"{equal} of {len(self.replies)} replies the same"


class Writer(Protocol):
    """Writes a reply to a request whose prompt is `prompt` (empty: render it)."""

    def write(self, request: Request, prompt: tuple[int, ...]) -> Reply: ...


class Ours:
    """Glimmer's engine. Calls are not constrained: the peer's are not either."""

    def __init__(self, loaded: Loaded, drafts: int | None) -> None:
        """`drafts` a step; None is as many as pay."""
        options = GeneratorOptions(drafts, constrains=False)
        self._generator = Generator(loaded.cache, loaded.model.vocabulary, GREEDY, options)
        self._generator.conversation.clear()

    def write(self, request: Request, prompt: tuple[int, ...]) -> Reply:
        *_, done = self._generator.generate(request, threading.Event())
        assert isinstance(done, Done)
        ids = self._generator.conversation.log.ids
        return Reply(
            ids[: done.usage.prompt],
            ids[done.usage.prompt :],
            done.usage.steps,
            done.timings.decode_s,
            done.usage.prefilled,
            max(done.timings.prefill_s, 1e-9),
        )


class Peer:
    """llama-server, by its own clock, which leaves HTTP out."""

    def __init__(self, server: LlamaServer) -> None:
        self._server = server

    def write(self, request: Request, prompt: tuple[int, ...]) -> Reply:
        answer = self._server.complete(prompt, request.max_tokens or LIMIT, cached=True)
        timings = answer["timings"]
        return Reply(
            prompt,
            tuple(answer["tokens"]),
            0,
            max(timings["predicted_ms"] / 1e3, 1e-9),
            timings["prompt_n"],
            max(timings["prompt_ms"] / 1e3, 1e-9),
        )


def in_turn(writers: dict[str, Writer], requests: list[Request]) -> dict[str, Record]:
    """Every writer writes every reply, one after the other, each time beginning with another one.

    The first one renders the prompts.
    """
    records = {name: Record() for name in writers}
    names = list(writers)
    for number, request in enumerate(requests):
        first = writers[names[0]].write(request, ())
        records[names[0]].replies.append(first)
        others = names[1:]
        turn = number % max(1, len(others))
        for name in (*others[turn:], *others[:turn]):
            records[name].replies.append(writers[name].write(request, first.prompt))
    return records


def _bare(ids: tuple[int, ...], eot: int) -> tuple[int, ...]:
    return ids[:-1] if ids and ids[-1] == eot else ids
