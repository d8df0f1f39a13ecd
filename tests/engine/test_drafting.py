"""Drafting: what stands, how much is worth drafting, and that it changes nothing but the speed."""

import random
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from gguf import GGUFReader
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.shape_gguf import DrafterShape, ModelShape, write_drafter, write_model
from engine.cache import Cache
from engine.depth import Acceptance, Depth
from engine.errors import EngineError
from engine.features import LayerInputs
from engine.loading import EngineOptions, Loaded, load
from engine.messages import Message, Text
from engine.ngram import LONGEST, SHORTEST, NgramIndex
from engine.protocol import Done, Request, Sampling
from engine.speculator import Speculator
from engine.verifier import verified
from glimmer_tui.agent.prompt import system_message
from glimmer_tui.wiring import bundled_model, tool_schemas

SHAPE = ModelShape(4, 64, 64, 300, 2, 1, 32, 64, 4096)
DRAFTER = DrafterShape(2, 64, 2, 1, 32, 64, 8, (1, 2))
GREEDY = Sampling(temperature=0.0)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pair")
    write_drafter(folder / "dflash.gguf", SHAPE, DRAFTER, "F32", seed=2)
    return write_model(folder / "model.gguf", SHAPE, "F32", seed=1)


def opened(path: Path, **more: object) -> Loaded:
    return load(path, replace(EngineOptions(1024, threads=1, batch=64), **more))


def reply(loaded: Loaded, text: str, sampling: Sampling, limit: int = 60) -> tuple[tuple[int, ...], Done]:
    loaded.generator.conversation.reset()
    asked = Request((Message("user", (Text(text),)),), sampling=sampling, max_tokens=limit)
    *_, done = loaded.generator.generate(asked, threading.Event())
    assert isinstance(done, Done)
    return loaded.generator.conversation.log.ids[done.usage.prompt :], done


@given(
    drafted=st.lists(st.integers(0, 3), max_size=8),
    drawn=st.lists(st.integers(0, 3), min_size=9, max_size=9),
    stops=st.sets(st.integers(0, 3), max_size=1),
)
def test_what_is_written_is_what_was_drawn_up_to_the_first_difference(drafted, drawn, stops) -> None:
    rows: list[int] = []

    def draw(row: int) -> int:
        rows.append(row)
        return drawn[row]

    written = verified(drafted, draw, stops)
    assert written == drawn[: len(written)]
    assert rows == list(range(len(written)))
    assert written[:-1] == drafted[: len(written) - 1]
    if len(written) <= len(drafted):
        assert written[-1] != drafted[len(written) - 1] or written[-1] in stops
    assert not stops.intersection(written[:-1])


@given(
    st.lists(st.integers(0, 2), max_size=120), st.lists(st.integers(0, 2), max_size=40), st.integers(1, 20)
)
def test_a_match_is_the_longest_that_came_before_and_what_followed_it(first, second, most) -> None:
    """Whatever was followed before: the index answers as a search through all ids does."""
    index = NgramIndex()
    index.follow(first)
    ids = first[: len(first) // 2] + second
    index.follow(ids)
    found = index.match(most)
    ends = [
        end
        for end in range(SHORTEST, len(ids))
        if ids[end - SHORTEST : end] == ids[len(ids) - SHORTEST :] and len(ids) >= SHORTEST
    ]
    assert (found is None) == (not ends)
    if found is None:
        return
    recent = ends[-16:]

    def length(end: int) -> int:
        count = 0
        while count < min(end, LONGEST) and ids[end - count - 1] == ids[len(ids) - count - 1]:
            count += 1
        return count

    assert found.length == max(map(length, recent))
    assert found.tokens in [tuple(ids[end : end + most]) for end in recent if length(end) == found.length]


def simulated(
    depth: Depth, stands: float, cost: float, steps: int, seed: int = 0
) -> tuple[float, Counter[int]]:
    """Tokens a unit of time, and the drafts chosen; a draft stands with a chance and costs `cost`."""
    rng = random.Random(seed)
    tokens = time = 0.0
    chosen: Counter[int] = Counter()
    for _ in range(steps):
        count = depth.choose(15).depth
        stood = 0
        while stood < count and rng.random() < stands:
            stood += 1
        seconds = 1.0 + cost * count + (0.1 if count else 0.0)
        depth.observe(count, stood, seconds)
        chosen[count] += 1
        tokens, time = tokens + stood + 1, time + seconds
    return tokens / time, chosen


@pytest.mark.parametrize("stands", [0.2, 0.6, 0.9, 0.99])
@pytest.mark.parametrize("cost", [0.012, 0.1, 0.3, 1.0])
def test_the_depth_comes_near_to_the_best_and_never_far_below_plain(stands: float, cost: float) -> None:
    rate, _ = simulated(Depth(15), stands, cost, 4000)
    acceptance = [sum(stands**i for i in range(k + 1)) for k in range(16)]
    best = max(acceptance[k] / (1.0 + cost * k + (0.1 if k else 0.0)) for k in range(16))
    assert rate > 0.93 * best
    assert rate > 0.97


def test_the_depth_follows_a_change_of_the_text() -> None:
    depth = Depth(15)
    simulated(depth, 0.1, 0.3, 1500)
    _, chosen = simulated(depth, 0.97, 0.05, 3000, seed=1)
    assert chosen.most_common(1)[0][0] >= 7


@pytest.mark.parametrize("slope", [0.012, 0.1])
@pytest.mark.parametrize("setting_up", [1.0, 3.0, 8.0])
def test_repeats_are_used_as_soon_as_they_come_true(slope: float, setting_up: float) -> None:
    """Text that repeats itself wrongly for long, then rightly; the first step of each size takes longer."""
    rng = random.Random(1)
    wrong = [rng.randrange(5) for _ in range(3000)]
    period = [5 + number % 60 for number in range(6000)]
    text = wrong + period
    speculator = Speculator(cast("Cache", SimpleNamespace(drafter=None)))
    speculator.begin(())
    seen: set[int] = set()
    at, time, marks = 0, 0.0, list[tuple[int, float]]()
    while at < len(text) - 40:
        proposal = speculator.propose(text[at], at, 31)
        stood = 0
        while stood < len(proposal.tokens) and proposal.tokens[stood] == text[at + stood]:
            stood += 1
        count = len(proposal.tokens)
        seconds = (1 + slope * count) * (1.0 if count in seen else setting_up)
        seen.add(count)
        speculator.observe(proposal, stood, seconds)
        for token in text[at : at + stood + 1]:
            speculator.append(token)
        at, time = at + stood + 1, time + seconds
        marks.append((at, time))
    until = next(mark for mark in marks if mark[0] >= len(wrong))
    late = next(mark for mark in marks if mark[0] >= len(text) - 2000)
    assert until[0] / until[1] > 0.93
    assert (marks[-1][0] - late[0]) / (marks[-1][1] - late[1]) > 0.8 * max(
        (k + 1) / (1 + slope * k) for k in range(24)
    )


def test_unseen_places_are_hoped_for_and_seen_ones_counted() -> None:
    acceptance = Acceptance(4, 0.5)
    assert acceptance.expected(0) == 1.0
    for _ in range(200):
        acceptance.observe(2, 2)
    shares = acceptance.shares()
    assert shares[0] > 0.97
    assert shares[1] > 0.94
    assert 0.4 < shares[2] / shares[1] < 0.6


@pytest.mark.parametrize("depth", [1, 2, 7])
def test_a_draft_is_what_stands_in_the_places_of_the_masks(pair: Path, tmp_path: Path, depth: int) -> None:
    """A drafter of zeros passes embeddings on to the head, so every mask gives the same known token."""
    drafter = write_drafter(tmp_path / "dflash.gguf", SHAPE, DRAFTER, "F32")
    tensors = {tensor.name: tensor.data for tensor in GGUFReader(pair).tensors}
    embeddings, head = tensors["token_embd.weight"], tensors["output.weight"]
    loaded = opened(pair, drafter=drafter)
    mask = loaded.model.vocabulary.special("<|mask|>")
    tokens = list(b"a conversation")
    loaded.cache.read(tokens, 0)
    for last in range(20):
        drafted = loaded.cache.draft(last, len(tokens), depth)
        assert len(drafted.chances) == depth and all(0 <= chance <= 1 for chance in drafted.chances)
        assert list(drafted.tokens) == [int((head @ embeddings[mask]).argmax())] * depth
        assert int((head @ embeddings[last]).argmax()) not in drafted.tokens
    loaded.close()


def test_the_bundled_drafter_is_mostly_right() -> None:
    """On what the demonstration model says of its own: more than half of its first tokens stand."""
    loaded = load(bundled_model(), EngineOptions(8192, threads=2, drafts=1, constrains=False))
    said = (system_message(), Message("user", (Text("Fix the failing test"),)))
    asked = Request(said, tool_schemas(Path.cwd()), "low", GREEDY, max_tokens=60)
    *_, done = loaded.generator.generate(asked, threading.Event())
    assert isinstance(done, Done)
    assert done.usage.drafted >= 10
    assert done.usage.accepted > 0.5 * done.usage.drafted
    loaded.close()


@pytest.mark.parametrize("sampling", [GREEDY, Sampling(0.8, 0.9, 20, 5), Sampling(1.0, 1.0, 0, 6)])
@pytest.mark.parametrize("drafts", [1, 3, 7, None])
def test_the_text_is_the_same_with_and_without_drafts(
    pair: Path, sampling: Sampling, drafts: int | None
) -> None:
    plain, drafted = opened(pair, drafts=0), opened(pair, drafts=drafts)
    total = 0
    for number in range(4):
        expected, _ = reply(plain, f"say {number} " * 9, sampling)
        found, done = reply(drafted, f"say {number} " * 9, sampling)
        assert found == expected
        total += done.usage.drafted
        assert done.usage.steps + done.usage.accepted >= done.usage.generated - 1
    assert total > 0
    plain.close()
    drafted.close()


@pytest.mark.parametrize("temperature", [0.5, 1.0, 1.6])
def test_sampled_text_has_the_distribution_of_the_target(pair: Path, temperature: float) -> None:
    """Chi-square over the third token of many seeds; with drafts against without."""
    counts: list[Counter[int]] = []
    for drafts, first_seed in ((0, 0), (7, 100_000)):
        loaded = opened(pair, drafts=drafts, constrains=False)
        counts.append(Counter())
        for seed in range(200):
            ids, _ = reply(loaded, "x", Sampling(temperature, 1.0, 6, first_seed + seed), 4)
            counts[-1][ids[2] if len(ids) > 2 else -1] += 1
        loaded.close()
    common = [token for token, _ in (counts[0] + counts[1]).most_common(8)]
    rows = [[count[token] for token in common] for count in counts]
    rows = [[*row, 200 - sum(row)] for row in rows]
    chi = sum((a - b) ** 2 / (a + b) for a, b in zip(*rows, strict=True) if a + b)
    assert chi < 29.7, rows  # 8 degrees of freedom: exceeded by chance once in 4,000


def test_a_drafter_of_another_model_is_a_notice_and_plain_decoding(pair: Path, tmp_path: Path) -> None:
    other = replace(SHAPE, width=128)
    wrong = write_drafter(tmp_path / "dflash-other.gguf", other, DRAFTER, "F32", seed=3)
    loaded = opened(pair, drafter=wrong)
    assert not loaded.capabilities.drafts
    assert any("Drafting is off" in notice for notice in loaded.capabilities.notices)
    ids, _ = reply(loaded, "go", GREEDY)
    assert ids
    loaded.close()


def test_a_truncated_drafter_is_a_notice_and_plain_decoding(pair: Path, tmp_path: Path) -> None:
    whole = (pair.parent / "dflash.gguf").read_bytes()
    torn = tmp_path / "dflash.gguf"
    torn.write_bytes(whole[: len(whole) // 2])
    loaded = opened(pair, drafter=torn)
    assert not loaded.capabilities.drafts
    assert len(loaded.capabilities.notices) == 1
    loaded.close()


def test_a_library_without_the_functions_decodes_plainly(pair: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.loading.missing_symbols", lambda: ("_Zsomething",))
    loaded = opened(pair)
    assert not loaded.capabilities.drafts
    assert any("_Zsomething" in notice for notice in loaded.capabilities.notices)
    ids, _ = reply(loaded, "go", GREEDY)
    assert ids
    monkeypatch.setattr("engine.features.missing_symbols", lambda: ("_Zsomething",))
    with pytest.raises(EngineError, match="cannot hand out"):
        LayerInputs(loaded.cache.context, (1,), 64)
    loaded.close()
