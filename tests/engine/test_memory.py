"""The cache walked at random: whatever was done before, its scores are those of a cache that never did it."""

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from benchmarks.shape_gguf import DrafterShape, ModelShape, write_drafter, write_model
from engine.cache import Cache
from engine.errors import EngineError
from engine.loading import EngineOptions, Loaded, load
from engine.memory import Memory
from engine.verifier import verified

CONTEXT, BATCH, WINDOW, VOCABULARY = 512, 64, 64, 300
TOLERANCE = 1e-2
"""The most that other batch cuts change a score, through f16 keys; a lost window is off by 1."""


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random model with a random drafter beside it."""
    folder = tmp_path_factory.mktemp("pair")
    shape = ModelShape(8, 64, 64, VOCABULARY, 2, 1, 32, WINDOW, 4096)
    drafter = DrafterShape(2, 64, 2, 1, 32, WINDOW, 8, (2, 4, 6))
    write_drafter(folder / "dflash.gguf", shape, drafter, "F32", seed=2)
    return write_model(folder / "model.gguf", shape, "F32", seed=1)


def opened(path: Path) -> Loaded:
    return load(path, EngineOptions(CONTEXT, threads=1, batch=BATCH))


@pytest.fixture(scope="module")
def walked(pair: Path):
    made = opened(pair)
    assert made.capabilities.drafts
    yield made.cache
    made.close()


@pytest.fixture(scope="module")
def fresh(pair: Path):
    made = opened(pair)
    yield made.cache
    made.close()


@dataclass
class Walk:
    """A memory, and by which reads and removals a new one would come to hold the same."""

    memory: Memory
    ids: list[int] = field(default_factory=list)
    removals: list[tuple[int, int, int]] = field(default_factory=list)
    """(when, start, end): with how many tokens read the positions start to end - 1 were removed."""

    @property
    def position(self) -> int:
        return len(self.ids)

    def read(self, tokens: list[int]) -> None:
        for start in range(0, len(tokens), BATCH):
            part = tokens[start : start + BATCH]
            self.memory.cache.read(part, self.position, len(tokens) - start - len(part))
            self.ids += part
            shut = [hole for hole in self.memory.holes.all if not hole.is_open]
            self.memory.reopen(self.position)
            opened_now = [hole for hole in shut if hole not in self.memory.holes.all]
            self.removals += [(self.position, hole.start, hole.end) for hole in opened_now]

    def draft(self, right: int, rng: np.random.Generator) -> None:
        """A verify step in which `right` drafts stand; the drafts are the drafter's where it has some."""
        last = int(rng.integers(0, VOCABULARY))
        drafts = self.memory.cache.draft(last, self.position, 7).tokens
        assert len(drafts) in (0, 7)
        drafts = drafts or [int(token) for token in rng.integers(0, VOCABULARY, 7)]
        self.memory.cache.verify([last, *drafts], self.position)
        drawn = verified(drafts, lambda row: drafts[row] if row < right else -1, ())
        self.memory.cache.accept(self.position, len(drawn), 8)
        self.ids += [last, *drafts[: len(drawn) - 1]]

    def go_back(self, position: int) -> None:
        how, kept = self.memory.go_back(position)
        assert kept <= position
        assert how in ("rewound", "restored", "reread")
        lost = self.ids[kept:position]
        self.ids = self.ids[:kept]
        self.memory.holes.forget_after(position)
        self.removals = [(min(when, kept), start, end) for when, start, end in self.removals if end <= kept]
        self.read(lost)

    def remove(self, start: int, end: int) -> None:
        if end - start < 1 or end > self.memory.passed(self.position):
            return
        if not self.memory.holes.covers(start, end):
            self.memory.remove(start, end)
            self.removals.append((self.position, start, end))

    def expected(self, fresh: Cache, probe: int) -> np.ndarray:
        """The scores after `probe` of a memory that only reads and removes."""
        again = Walk(Memory(fresh))
        again.memory.clear()
        for when, start, end in sorted(self.removals):
            if when > self.position:
                continue  # opened again only after the probe was read
            again.read(self.ids[again.position : when])
            again.memory.remove(start, end)
        again.read([*self.ids[again.position :], probe])
        return fresh.scores(-1).copy()


SHARE = st.floats(0, 1)
STEP = st.one_of(
    st.tuples(st.just("read"), st.integers(1, 150)),
    st.tuples(st.just("draft"), st.integers(0, 7)),
    st.tuples(st.just("checkpoint"), st.none()),
    st.tuples(st.just("back"), SHARE),
    st.tuples(st.just("back a little"), st.integers(1, 70)),
    st.tuples(st.just("remove"), st.tuples(SHARE, SHARE)),
    st.tuples(st.just("lose"), st.none()),
    st.tuples(st.just("store"), st.none()),
)


@settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.generate],
)
@given(steps=st.lists(STEP, min_size=3, max_size=14), seed=st.integers(0, 10_000))
def test_no_walk_corrupts_the_cache(walked: Cache, fresh: Cache, steps, seed: int) -> None:
    rng = np.random.default_rng(seed)
    walk = Walk(Memory(walked, checkpoint_bytes=1 << 20))
    walk.memory.clear()
    for step, value in [("read", 80), *steps]:
        position = walk.position
        match step:
            case "read" if walk.memory.in_use(position) + value + 16 <= CONTEXT:
                walk.read([int(token) for token in rng.integers(0, VOCABULARY, value)])
            case "draft" if walk.memory.in_use(position) + 16 <= CONTEXT:
                walk.draft(value, rng)
            case "checkpoint":
                walk.memory.checkpoint(position)
            case "back":
                walk.go_back(int(value * (position - 1)))
            case "back a little":
                walk.go_back(max(0, position - value))
            case "remove":
                start, end = sorted(int(share * walk.memory.passed(position)) for share in value)
                walk.remove(max(0, start), end)
            case "store":
                state = walk.memory.store(position)
                walked.clear()
                walk.memory.restore(replace(state))
            case "lose" if walk.memory.in_use(position) == position:
                walk.memory.lose()
                ids, walk.ids = walk.ids, []
                walk.read(ids)
            case _:
                continue
        probe = int(rng.integers(0, VOCABULARY))
        if walk.memory.in_use(walk.position) + 1 > CONTEXT or not walk.position:
            continue
        walk.read([probe])
        expected = walk.expected(fresh, walk.ids.pop())
        assert np.abs(walked.scores(-1) - expected).max() < TOLERANCE, step
        walk.ids.append(probe)


def test_ten_times_the_context_goes_on(walked: Cache, fresh: Cache) -> None:
    """Old spans are removed again and again; the scores stay those of a cache that had them removed so."""
    rng = np.random.default_rng(4)
    walk = Walk(Memory(walked))
    walk.memory.clear()
    while walk.position < 10 * CONTEXT:
        if walk.memory.in_use(walk.position) + 2 * BATCH > CONTEXT:
            ends = [hole.end for hole in walk.memory.holes.all]
            start = max([64, *ends])
            walk.remove(start, walk.memory.passed(walk.position))
        walk.read([int(token) for token in rng.integers(0, VOCABULARY, BATCH)])
    assert walk.memory.in_use(walk.position) <= CONTEXT
    found = walked.scores(-1).copy()
    expected = walk.expected(fresh, walk.ids.pop())
    assert np.abs(found - expected).max() < TOLERANCE


def test_a_removed_span_is_not_seen_any_more(walked: Cache, fresh: Cache) -> None:
    """The scores are those of a cache without the span, and far from those of one that still holds it."""
    tokens = [int(token) for token in np.random.default_rng(8).integers(0, VOCABULARY, 300)]
    walk = Walk(Memory(walked))
    walk.memory.clear()
    walk.read(tokens)
    walk.remove(100, 200)
    walk.read(tokens[:20])
    kept = Walk(Memory(fresh))
    kept.memory.clear()
    kept.read([*tokens, *tokens[:20]])
    found, seeing = walked.scores(-1).copy(), fresh.scores(-1).copy()
    without = walk.expected(fresh, walk.ids.pop())
    assert np.abs(found - seeing).max() > 4 * np.abs(found - without).max()


def test_going_back_to_a_place_does_not_bring_back_what_was_removed_from_the_drafter(walked: Cache) -> None:
    rng = np.random.default_rng(3)
    walk = Walk(Memory(walked))
    walk.memory.clear()
    walk.read([int(token) for token in rng.integers(0, VOCABULARY, 300)])
    walk.memory.checkpoint(300)
    walk.remove(20, 220)
    held = len(walked.store(300).drafter)
    walk.read([int(token) for token in rng.integers(0, VOCABULARY, 200)])
    assert walk.memory.go_back(300) == ("restored", 300)
    assert len(walked.store(300).drafter) == held


def test_a_drafter_that_fails_starts_anew_and_the_model_goes_on(
    walked: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert walked.drafter is not None
    walk = Walk(Memory(walked))
    walk.memory.clear()
    walk.read([5] * 100)

    def fail(*_: object) -> None:
        raise EngineError("The model failed while it was reading or writing.")

    with monkeypatch.context() as patched:
        patched.setattr("engine.dflash.Context.step", fail)
        assert walked.draft(5, 100, 7).tokens == ()
    walk.read([6] * 10)
    assert len(walked.draft(6, 110, 7).tokens) == 7
    assert len(walked.draft(6, 110, 99).tokens) == walked.drafter.most
