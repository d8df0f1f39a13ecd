from hypothesis import given
from hypothesis import strategies as st

from glimmer_tui.agent.loop_guard import LoopGuard


def loops(*entries: tuple[str, str]) -> list[bool]:
    guard = LoopGuard()
    return [guard.add(call, result) for call, result in entries]


def test_the_same_call_with_the_same_result_three_times_is_a_loop() -> None:
    assert loops(("a", "1"), ("a", "1"), ("a", "1")) == [False, False, True]


def test_a_result_that_changes_is_progress() -> None:
    assert loops(("a", "1"), ("a", "2"), ("a", "3")) == [False] * 3


def test_a_run_that_only_took_another_time_is_no_progress() -> None:
    runs = [f"1 failed in 0.{digit}s\n<Cart object at 0x7f{digit}ab>" for digit in "123"]
    assert loops(*(("run pytest", run) for run in runs)) == [False, False, True]
    assert loops(*(("tail log", f"step {count}, 3.5 kB") for count in range(3))) == [False] * 3


def test_a_call_in_between_breaks_the_row() -> None:
    assert loops(("a", "1"), ("a", "1"), ("b", "1"), ("a", "1"), ("a", "1")) == [False] * 5


def test_two_calls_that_alternate_three_times_are_a_loop() -> None:
    assert loops(*[("a", "1"), ("b", "2")] * 3) == [False] * 5 + [True]


def test_a_longer_round_of_calls_that_leads_nowhere_is_a_loop() -> None:
    around = [("test", "red"), ("search f", "f.py:1"), ("read f.py", "text"), ("edit f.py", "no change")]
    assert loops(*around * 3) == [False] * 11 + [True]


def test_alternation_with_progress_is_none() -> None:
    assert loops(("e", "1"), ("t", "bad"), ("e", "2"), ("t", "bad"), ("e", "3"), ("t", "bad")) == [False] * 6


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("12"))))
def test_it_fires_exactly_when_the_end_repeats(entries: list[tuple[str, str]]) -> None:
    def repeats(seen: list[tuple[str, str]]) -> bool:
        lengths = range(1, 7)
        return any(len(seen) >= 3 * n and seen[-3 * n :] == seen[-n:] * 3 for n in lengths)

    assert loops(*entries) == [repeats(entries[: end + 1]) for end in range(len(entries))]
