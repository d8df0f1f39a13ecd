"""The log's promises: what is in stays in, ids drawn are kept, and re-reading is counted."""

from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.token_log import Block, Plan, TokenLog, Wanted

EOT = 99


@dataclass
class Talk:
    """Plays the generator's part over a log without a model: `history` is what is asked for next."""

    log: TokenLog = field(default_factory=TokenLog)
    history: list[Wanted] = field(default_factory=lambda: [Wanted("system", "s", "be good")])
    replies: int = 0

    def say(self, text: str) -> None:
        self.history.append(Wanted("user", f"m{len(self.history)}-{text}", text))

    def plan(self, reply: str) -> Plan:
        matched = self.log.matched(self.history)
        blocks = [self.block(wanted) for wanted in self.history[matched:]]
        return self.log.plan(matched, [*blocks, Block("reply", reply, None, (1, 2))], EOT)

    def block(self, wanted: Wanted) -> Block:
        if (drawn := self.log.reply(wanted)) is not None:
            return Block("reply", wanted.message_id, None, drawn)
        return Block(wanted.kind, wanted.message_id, wanted.source, ids_of(str(wanted.source)))

    def reply(self, drawn: list[int], keep: bool = True) -> Plan:
        """A whole turn; `keep` puts the reply into the history, as a caller does."""
        self.replies += 1
        name = f"r{self.replies}"
        plan = self.plan(name)
        self.log.apply(plan, plan.keepable)
        self.log.advance(len(self.log.pending(1 << 20)))
        for token in drawn:
            self.log.append(token)
            if token != drawn[-1]:
                self.log.advance(1)
        if keep:
            self.history.append(Wanted("assistant", name, "whatever the parser made of it"))
        return plan


def ids_of(text: str) -> tuple[int, ...]:
    return (*(100 + ord(letter) for letter in text), EOT)


def test_a_turn_reads_only_what_is_new() -> None:
    talk = Talk()
    talk.say("hello")
    talk.reply([7, 8, EOT])
    before = talk.log.ids
    talk.say("more")
    plan = talk.plan("r")
    assert plan.ids == (*before, *ids_of("more"), 1, 2)
    assert plan.keepable == talk.log.cached == len(before) - 1
    assert plan.reread(plan.keepable, len(plan.ids)) == 0


def test_a_cut_reply_is_closed_and_its_last_token_read() -> None:
    talk = Talk()
    talk.say("hello")
    talk.reply([7, 8])
    before = talk.log.ids
    talk.say("go on")
    plan = talk.plan("r")
    assert plan.ids == (*before, EOT, *ids_of("go on"), 1, 2)
    assert talk.log.ids[plan.keepable :] == (8,)


def test_a_reply_is_never_made_anew_from_its_message() -> None:
    talk = Talk()
    talk.say("a")
    talk.reply([7, EOT])
    talk.say("b")
    talk.reply([8, EOT])
    kept = talk.log.ids
    talk.history[1] = Wanted("user", "edited", "a new question")
    plan = talk.plan("r")
    assert plan.ids[: len(ids_of("be good"))] == ids_of("be good")
    assert plan.ids[len(ids_of("be good") + ids_of("a new question")) :][:4] == (1, 2, 7, EOT)
    assert 8 in plan.ids
    assert kept[-3:] == (2, 8, EOT)


def test_replies_survive_another_conversation() -> None:
    talk = Talk()
    talk.say("a")
    talk.reply([7, EOT])
    mine = list(talk.history)
    talk.history = [Wanted("system", "t", "be bad"), Wanted("user", "x", "x")]
    talk.reply([9, EOT])
    talk.history = mine
    assert talk.plan("r").ids[-6:-2] == (1, 2, 7, EOT)
    talk.log.clear()
    assert talk.log.reply(mine[-1]) is None


def test_a_dropped_reply_leaves_the_log() -> None:
    talk = Talk()
    talk.say("a")
    start = len(talk.plan("r").ids)
    talk.reply([7, 8, 9, EOT], keep=False)
    talk.say("b")
    plan = talk.plan("r")
    assert plan.keepable == start - 2 == len(ids_of("be good") + ids_of("a"))
    assert 7 not in plan.ids


def test_the_same_prompt_again_reads_its_last_token_once_more() -> None:
    talk = Talk()
    talk.say("a")
    talk.reply([7, EOT], keep=False)
    plan = talk.plan("again")
    assert plan.keepable == len(plan.ids) - 1
    assert plan.reread(plan.keepable, len(plan.ids)) == 1


def test_a_changed_system_block_keeps_what_is_equal_and_counts_the_rest() -> None:
    talk = Talk()
    talk.say("a question")
    talk.reply([7, EOT])
    talk.history[0] = Wanted("system", "s", "be gone")
    plan = talk.plan("r")
    assert plan.keepable == len("be go")
    moved = len(ids_of("a question")) + len((1, 2, 7))
    assert plan.reread(plan.keepable, len(plan.ids)) == moved
    assert plan.reread(0, len(plan.ids)) == moved + plan.keepable


def test_a_lost_cache_is_read_again_and_counted() -> None:
    talk = Talk()
    talk.say("a")
    talk.reply([7, EOT])
    read = talk.log.cached
    talk.log.lose_cache()
    talk.say("b")
    plan = talk.plan("r")
    assert plan.keepable == 0
    assert plan.reread(0, len(plan.ids)) == read
    assert plan.reread(0, 3) == 3


def test_misuse_is_refused() -> None:
    log = TokenLog()
    with pytest.raises(ValueError, match="no reply"):
        log.append(1)
    with pytest.raises(ValueError, match="pending"):
        log.advance(1)
    plan = log.plan(0, [Block("user", "m", "x", (1, 2))], EOT)
    with pytest.raises(ValueError, match="cannot hold"):
        log.apply(plan, 1)


turns = st.lists(
    st.tuples(
        st.text("abc", min_size=1, max_size=4),
        st.lists(st.integers(3, 9), max_size=4),
        st.booleans(),
        st.sampled_from(["keep", "keep", "keep", "drop", "edit", "lose"]),
    ),
    max_size=12,
)


@settings(max_examples=60, deadline=None)
@given(turns)
def test_any_conversation_keeps_the_log_true(script: list[tuple[str, list[int], bool, str]]) -> None:
    talk = Talk()
    for text, drawn, ended, what in script:
        talk.say(text)
        if what == "edit":
            talk.history[1] = Wanted("user", f"edit{talk.replies}", text * 2)
        if what == "lose":
            talk.log.lose_cache()
        old, cached = talk.log.ids, talk.log.cached
        plan = talk.reply([*drawn, EOT] if ended else drawn, keep=what != "drop")
        assert plan.keepable <= cached
        assert plan.ids[: plan.keepable] == old[: plan.keepable]
        assert 0 <= plan.reread(plan.keepable, len(plan.ids)) <= len(plan.ids) - plan.keepable
        spans = talk.log.spans
        assert spans[0].start == 0
        assert spans[-1].end == len(talk.log.ids)
        assert all(one.end == two.start for one, two in pairwise(spans))
        for span in spans[:-1]:
            assert talk.log.ids[span.end - 1] == EOT


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.text("abc", min_size=1), st.lists(st.integers(3, 9), min_size=1), st.booleans()))
)
def test_a_history_that_only_grows_never_rereads(script: list[tuple[str, list[int], bool]]) -> None:
    talk = Talk()
    read = 0
    for text, drawn, ended in script:
        talk.say(text)
        cached = talk.log.cached
        plan = talk.reply([*drawn, EOT] if ended else drawn)
        assert plan.keepable == cached
        assert plan.reread(plan.keepable, len(plan.ids)) == 0
        read += len(plan.ids) - plan.keepable
    assert read <= len(talk.log.ids)
