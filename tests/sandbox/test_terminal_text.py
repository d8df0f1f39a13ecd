import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.terminal_text import Live, Recording, bounded, plain

_NOISE = st.lists(
    st.sampled_from(
        ["\x1b", "[", "]", "0", ";", "m", "K", "2K", "\x07", "\\", "P", "\r", "\b", "\n", "\x9b", "\x9d", "a"]
    )
    | st.characters(),
    max_size=40,
).map("".join)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b[38:2::1:2:3mtrue\x1b[m", "true"),
        ("\x9b31mred\x9b0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]52;c;aGk=\x07x", "x"),
        ("\x1bPq#0;2;0\x1b\\after", "after"),
        ("\x1b_Gf=100;AAAA\x1b\\after", "after"),
        ("\x1b]0;never ended\nnext line", "\nnext line"),
        ("\x1b(B\x1b)0\x1b=\x1b>\x1b7\x1b8\x1bcx", "x"),
        ("\x1b[?1049h\x1b[2J\x1b[Hx\x1b[?25l", "x"),
        ("a\x00\x01\x7f\x0eb", "ab"),
        ("one\r\ntwo\r\n", "one\ntwo\n"),
        ("10%\r50%\r100%\n", "100%\n"),
        ("long text\rab\n", "abng text\n"),
        ("long text\r\x1b[Kab\n", "ab\n"),
        ("long text\x1b[2K\rab\n", "ab       \n"),
        ("abc\b\bX\n", "aXc\n"),
        ("_\bu\n", "u\n"),
        ("\b\b\ba", "a"),
        ("naïve 😀\rx", "xaïve 😀"),
        ("lone escape \x1b", "lone escape "),
        ("cut short \x1b[12", "cut short "),
        ("[31m is text", "[31m is text"),
    ],
)
def test_control_is_carried_out_or_removed(raw: str, expected: str) -> None:
    assert plain(raw) == expected


@settings(deadline=None, max_examples=60)
@given(_NOISE)
def test_no_control_survives(raw: str) -> None:
    found = plain(raw)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", found)
    assert plain(found) == found
    assert found.count("\n") == raw.count("\n")


@settings(deadline=None, max_examples=60)
@given(st.text(max_size=300), st.integers(1, 100))
def test_bounding_keeps_both_ends_and_counts(text: str, limit: int) -> None:
    found, cut = bounded(text, limit)
    assert cut == max(0, len(text) - limit)
    if not cut:
        assert found == text
        return
    head, _, tail = found.partition(f"\n[… {cut} characters left out …]\n")
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) + len(tail) == limit


@settings(deadline=None, max_examples=60)
@given(st.lists(st.binary(max_size=30), max_size=30), st.integers(0, 60), st.integers(1, 60))
def test_a_recording_is_the_stream_less_its_middle(chunks: list[bytes], head: int, tail: int) -> None:
    chunks = [bytes(byte & 0x7F for byte in chunk) for chunk in chunks]
    recording = Recording(head, tail)
    for chunk in chunks:
        recording.add(chunk)
    whole = b"".join(chunks).decode()
    first, last, cut = recording.parts()
    assert len(first) + len(last) + cut == len(whole)
    assert whole.startswith(first)
    assert whole.endswith(last)
    assert bool(cut) == (len(whole) > head + tail)


def test_a_recording_counts_characters_not_bytes() -> None:
    recording = Recording(4, 4)
    for _ in range(100):
        recording.add("é".encode())
    assert recording.parts() == ("éé", "éé", 96)


def test_live_output_is_decoded_across_chunks_and_bounded() -> None:
    live = Live(100)
    live.add("é".encode()[:1])
    assert live.take() == ""
    live.add("é".encode()[1:])
    assert live.take() == "é"
    live.add(b"x" * 10_000 + b"end")
    found = live.take()
    assert found.endswith("xend")
    assert "9903 characters left out" in found
    live.add(b"\xc3")
    assert live.take(final=True) == "\ufffd"
