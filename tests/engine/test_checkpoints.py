"""The books of going back and of making room: checkpoints within a budget, holes, what goes first."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.cache import Snapshot
from engine.checkpoints import Checkpoint, Checkpoints
from engine.eviction import HEAD, TAIL, removable
from engine.holes import Holes
from engine.token_log import Span


def at(position: int, size: int = 10, pinned: bool = False) -> Checkpoint:
    return Checkpoint(Snapshot(position, b"x" * size, b""), pinned)


@given(st.lists(st.tuples(st.integers(1, 500), st.integers(1, 60)), max_size=30))
def test_the_budget_holds_and_the_newest_place_stays(places: list[tuple[int, int]]) -> None:
    kept = Checkpoints(100)
    for position, size in places:
        kept.add(at(position, size))
        assert kept.size <= 100
        assert position in kept.positions or position != max(kept.positions)
        assert list(kept.positions) == sorted(set(kept.positions))


def test_the_nearest_place_before_is_found_and_what_is_changed_is_dropped() -> None:
    kept = Checkpoints()
    for position in (100, 300, 200):
        kept.add(at(position))
    nearest = kept.nearest(250)
    assert nearest is not None
    assert nearest.position == 200
    assert kept.nearest(99) is None
    kept.drop_after(250)
    assert kept.positions == (100, 200)


def test_a_pinned_place_outlives_the_others_and_close_neighbours_go_first() -> None:
    kept = Checkpoints(30)
    kept.add(at(5, pinned=True))
    for position in (100, 110, 400):
        kept.add(at(position))
    assert kept.positions == (5, 100, 400)


def test_no_place_brings_back_a_part_of_what_was_removed() -> None:
    kept = Checkpoints()
    for position in (50, 100, 101, 220, 263, 264):
        kept.add(at(position))
    kept.drop_seeing(100, 200, window=64)
    assert kept.positions == (50, 100, 264)


def test_holes_are_counted_closed_and_opened_again() -> None:
    holes = Holes()
    holes.add(100, 150)
    holes.add(10, 20)
    assert (holes.freed, holes.within(120)) == (60, 30)
    with pytest.raises(ValueError, match="no hole"):
        holes.add(140, 160)
    holes.close_after(50)
    assert holes.freed == 10
    assert [hole.start for hole in holes.due(150)] == [100]
    holes.open(holes.due(150)[0])
    assert holes.freed == 60
    holes.forget_after(120)
    assert holes.within(1000) == 30


def test_a_place_whose_window_has_a_hole_is_not_gone_back_to() -> None:
    holes = Holes()
    holes.add(100, 150)
    holes.add(20, 90)
    assert holes.usable(300, window=64) == 300
    assert holes.usable(214, window=64) == 214
    assert holes.usable(213, window=64) == 20
    assert holes.usable(20, window=64) == 20


def spans(*kinds: str) -> list[Span]:
    return [Span(kind, f"m{i}", None, i * 100, i * 100 + 100) for i, kind in enumerate(kinds)]


def test_old_tool_results_go_first_and_the_wish_and_the_system_block_never() -> None:
    said = spans("system", "user", "reply", "tool", "reply", "user", "reply", "tool")
    order = [(removal.message_id, removal.end - removal.start) for removal in removable(said, Holes())]
    inside = 100 - HEAD - TAIL
    assert order == [
        ("m3", inside),
        ("m7", inside),
        ("m2", 100),
        ("m4", 100),
        ("m6", 100),
        ("m1", 100),
        ("m3", HEAD),
        ("m3", TAIL),
        ("m7", HEAD),
        ("m7", TAIL),
    ]


def test_what_is_removed_already_is_not_offered_again() -> None:
    said = spans("system", "user", "tool", "reply", "user")
    first = removable(said, Holes())[0]
    assert (first.message_id, first.start, first.end) == ("m2", 200 + HEAD, 300 - TAIL)
    holes = Holes()
    holes.add(first.start, first.end)
    assert first not in removable(said, holes)
    assert removable(said, holes)[0].message_id == "m3"


@given(st.lists(st.tuples(st.integers(0, 90), st.integers(1, 20)), max_size=15), st.integers(0, 100))
def test_the_books_of_holes_agree_with_a_plain_list(wanted: list[tuple[int, int]], cut: int) -> None:
    """Whether a place is in a hole, and how much is free, as counting positions one by one says."""
    holes, taken = Holes(), set[int]()
    for start, length in wanted:
        positions = set(range(start, start + length))
        assert holes.covers(start, start + length) == bool(taken & positions)
        if not taken & positions:
            holes.add(start, start + length)
            taken |= positions
    assert holes.freed == len(taken)
    assert holes.within(cut) == len({position for position in taken if position < cut})
    holes.forget_after(cut)
    assert holes.freed == len({position for position in taken if position < cut})
    holes.close_after(0)
    assert holes.freed == 0
    for hole in holes.due(1000):
        holes.open(hole)
    assert holes.freed == len({position for position in taken if position < cut})
