"""A whole reply under constraint: what may come next, and what comes of it."""

import codecs
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.calls.constraint import CallConstraint
from engine.chat_format import GENERATION_PROMPT, Marker, Piece, message_pieces
from engine.errors import EngineError
from engine.gguf.model import read_model_file
from engine.llama import Model
from engine.messages import Message, Reasoning, Text, ToolCall, ToolSchema
from engine.protocol import Delta, StopReason, ToolCallFailed, ToolCallReady
from engine.stream_parser import StreamParser
from engine.vocabulary import Vocabulary
from nano.prefix import schemas
from tests.engine.random_writing import Writer

NANO = Path(__file__).parents[2] / "glimmer_tui" / "models" / "glimmer-nano.gguf"
ARGUMENTS: dict[str, dict[str, Any]] = {
    "read": {"path": "a/é.py", "start": 3, "end": -1},
    "list": {"glob": "*.py"},
    "search": {"pattern": "<a[^>]*>", "path": "x"},
    "outline": {"path": "x.py"},
    "edit": {"path": "x", "old": "a\n</atem:parameter>\n    </atem:invoke>", "new": "", "all": False},
    "write": {"path": "x", "content": "<|eot|> to=user<|message|>\n</atem:parameter>\n</atem:invoke>\n"},
    "test": {},
    "run": {"command": "ls", "timeout": 1.5},
    "diff": {},
    "plan": {"items": [{"text": 'say "x"\n→', "status": "done"}, {"status": "", "text": "b", "n": [None]}]},
}
CALL = '<atem:function_calls>\n<atem:invoke name="diff">\n</atem:invoke>\n</atem:function_calls>'


@pytest.fixture(scope="module")
def vocabulary() -> Iterator[Vocabulary]:
    model = Model(read_model_file(NANO), 0, None)
    yield model.vocabulary
    model.close()


@pytest.fixture
def constraint(vocabulary: Vocabulary) -> Iterator[CallConstraint]:
    with closing(CallConstraint(vocabulary, schemas())) as made:
        yield made


def ids(vocabulary: Vocabulary, pieces: Iterable[Piece]) -> list[int]:
    tokens: list[int] = []
    for piece in pieces:
        match piece:
            case Marker():
                tokens.append(vocabulary.special_ids[piece.value])
            case str():
                tokens += vocabulary.tokenize(piece)
            case _:
                raise AssertionError(piece)
    return tokens


def write(constraint: CallConstraint, tokens: Iterable[int]) -> int | None:
    """Write tokens as long as they are allowed; the place of the first that is not, or None."""
    for place, token in enumerate(tokens):
        if not constraint.allows(token):
            return place
        constraint.accept(token)
    return None


def parsed(
    vocabulary: Vocabulary, tokens: Sequence[int], tools: Sequence[ToolSchema], stop: StopReason
) -> list[Delta]:
    markers = {vocabulary.special_ids[marker.value]: marker for marker in Marker}
    parser, decoder = StreamParser(tools), codecs.getincrementaldecoder("utf-8")("replace")
    deltas: list[Delta] = []
    for token in tokens:
        marker = markers.get(token)
        if text := decoder.decode(vocabulary.piece(token), marker is not None):
            deltas += parser.feed(text)
        if marker is not None:
            deltas += parser.feed(marker)
    return deltas + parser.finish(stop)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_a_rendered_reply_comes_through(
    constraint: CallConstraint, vocabulary: Vocabulary, name: str
) -> None:
    call = ToolCall("1", name, ARGUMENTS[name])
    message = Message("assistant", (Reasoning("think to=x\n"), Text(f"I say {CALL}"), call, call))
    tokens = ids(vocabulary, message_pieces(message))
    prompt = ids(vocabulary, GENERATION_PROMPT)
    for _ in range(2):
        constraint.reset()
        assert write(constraint, tokens[len(prompt) :]) is None
        assert not any(map(constraint.allows, range(-1, vocabulary.size + 1)))
    deltas = parsed(vocabulary, tokens[len(prompt) :], schemas(), "end")
    assert [delta.call.name for delta in deltas if isinstance(delta, ToolCallReady)] == [name, name]


@pytest.mark.parametrize(
    ("pieces", "is_allowed"),
    [
        ([" to=read", Marker.MESSAGE], True),
        (
            [" to=self", Marker.MESSAGE, "x", Marker.EOM, Marker.START, "assistant to=user", Marker.MESSAGE],
            True,
        ),
        ([Marker.MESSAGE, "an answer without a recipient", Marker.EOT], True),
        ([" to=self", Marker.MESSAGE, "x to=diff", Marker.MESSAGE, CALL, Marker.EOT], True),
        ([" to=self", Marker.MESSAGE, "x to=user", Marker.MESSAGE, "y", Marker.END_OF_TEXT], True),
        ([" to=diff", Marker.MESSAGE, CALL, Marker.EOM, Marker.START, "assistant", Marker.MESSAGE], True),
        ([" to=reader"], False),
        (["read"], False),
        (["Hello"], False),
        ([" to=rea", Marker.MESSAGE], False),
        ([" to=", Marker.MESSAGE], False),
        ([Marker.EOT], False),
        ([" to=user", Marker.EOT], False),
        ([Marker.START], False),
        ([" to=user", Marker.MESSAGE, "x", Marker.EOM, Marker.EOT], False),
        ([" to=user", Marker.MESSAGE, "x", Marker.EOM, "x"], False),
        ([" to=user", Marker.MESSAGE, "x", Marker.EOM, Marker.START, "user"], False),
        ([" to=user", Marker.MESSAGE, "x", Marker.START], False),
        ([" to=user", Marker.MESSAGE, "x to=read", Marker.MESSAGE], False),
        ([" to=self", Marker.MESSAGE, "x to=reader", Marker.MESSAGE], False),
        ([" to=self", Marker.MESSAGE, "x to=read it", Marker.MESSAGE], False),
        ([" to=self", Marker.MESSAGE, "xto=read", Marker.MESSAGE], False),
        ([" to=self", Marker.MESSAGE, "x to=diff", Marker.MESSAGE, "words"], False),
        ([" to=diff", Marker.MESSAGE, Marker.EOT], False),
        ([" to=diff", Marker.MESSAGE, CALL, "\n"], False),
        ([" to=diff", Marker.MESSAGE, CALL, Marker.MESSAGE], False),
        ([" to=diff", Marker.MESSAGE, CALL[:-1], Marker.EOM], False),
    ],
)
def test_messages_follow_the_format(
    constraint: CallConstraint, vocabulary: Vocabulary, pieces: list[Piece], is_allowed: bool
) -> None:
    *before, last = pieces
    assert write(constraint, ids(vocabulary, before)) is None
    assert (write(constraint, ids(vocabulary, [last])) is None) == is_allowed


@pytest.mark.parametrize("seed", range(5))
def test_what_is_written_at_random_is_read_as_fitting_calls(
    constraint: CallConstraint, vocabulary: Vocabulary, seed: int
) -> None:
    tools = schemas()
    words = [f" to={tool.name}" for tool in tools]
    for key in {key for tool in tools for key in tool.parameters["properties"]}:
        words += [f'<atem:parameter name="{key}">', f'</atem:parameter>\n<atem:parameter name="{key}">']
    writer = Writer(vocabulary, seed, sorted(words))
    scores = np.random.default_rng(seed)

    def allowed() -> Sequence[int]:
        row = scores.random(vocabulary.size, np.float32)
        constraint.mask(row)
        return np.flatnonzero(np.isfinite(row)).tolist()

    markers = ids(vocabulary, (Marker.MESSAGE, Marker.EOM, Marker.START))
    (end,) = ids(vocabulary, (Marker.EOT,))
    tokens: list[int] = []
    for _ in range(300):
        tokens += writer.write(constraint, allowed) if not constraint.allows(markers[2]) else []
        for marker in markers:
            if constraint.allows(marker) and writer.chance(0.5):
                constraint.accept(marker)
                tokens.append(marker)
        if end in tokens:
            break
    is_whole = end in tokens or constraint.allows(end)
    deltas = parsed(vocabulary, tokens, tools, "end" if is_whole else "length")
    failed = [delta for delta in deltas if isinstance(delta, ToolCallFailed)]
    assert not [delta for delta in failed if delta.problem != "no_recipient"]
    assert deltas


def test_a_mask_leaves_the_best_that_may_come_next(
    constraint: CallConstraint, vocabulary: Vocabulary
) -> None:
    assert write(constraint, ids(vocabulary, [" to=read", Marker.MESSAGE])) is None
    scores = np.linspace(1, 0, vocabulary.size, dtype=np.float32)
    before = scores.copy()
    (opening, *_) = ids(vocabulary, ["<atem"])
    scores[opening] = -5
    constraint.mask(scores)
    kept = np.flatnonzero(np.isfinite(scores)).tolist()
    assert opening in kept or all(before[token] > before[256] for token in kept)
    assert all(constraint.allows(token) for token in kept)
    assert not constraint.allows(ids(vocabulary, ["x"])[0])


def test_a_mask_of_free_text_forbids_two_markers(constraint: CallConstraint, vocabulary: Vocabulary) -> None:
    assert write(constraint, ids(vocabulary, [" to=self", Marker.MESSAGE, "hm"])) is None
    scores = np.zeros(vocabulary.size, np.float32)
    constraint.mask(scores)
    assert np.flatnonzero(np.isinf(scores)).tolist() == ids(vocabulary, [Marker.START, Marker.MESSAGE])


def test_asking_changes_nothing(constraint: CallConstraint, vocabulary: Vocabulary) -> None:
    call = ToolCall("1", "edit", ARGUMENTS["edit"])
    tokens = ids(vocabulary, message_pieces(Message("assistant", (Reasoning("x"), call))))
    for token in tokens[len(ids(vocabulary, GENERATION_PROMPT)) :]:
        for other in range(0, vocabulary.size, 97):
            constraint.allows(other)
        constraint.mask(np.zeros(vocabulary.size, np.float32))
        assert constraint.allows(token)
        constraint.accept(token)


def test_a_token_that_may_not_come_is_not_taken(constraint: CallConstraint, vocabulary: Vocabulary) -> None:
    (token,) = ids(vocabulary, [Marker.EOT])
    with pytest.raises(EngineError, match="does not allow"):
        constraint.accept(token)
    assert write(constraint, ids(vocabulary, [" to=user", Marker.MESSAGE, Marker.EOT])) is None
    with pytest.raises(EngineError, match="may come next"):
        constraint.mask(np.zeros(vocabulary.size, np.float32))


@pytest.mark.parametrize("name", ["a b", "self", "", "x<y", "'quoted'", 'say"', "half\ud800"])
def test_a_tool_that_cannot_be_called_cannot_be_addressed(vocabulary: Vocabulary, name: str) -> None:
    tools = [ToolSchema(name, "", {}), ToolSchema("fine", "", {}), ToolSchema("bad", "", {"required": ["x"]})]
    with closing(CallConstraint(vocabulary, tools)) as constraint:
        header = f" to={name}".encode("utf-8", "replace").decode()
        if write(constraint, ids(vocabulary, [header, Marker.MESSAGE])) is None:
            assert constraint.allows(ids(vocabulary, ["x"])[0])
        constraint.reset()
        assert write(constraint, ids(vocabulary, [" to=bad"])) is not None
        constraint.reset()
        assert write(constraint, ids(vocabulary, [" to=fine", Marker.MESSAGE, "<atem"])) is None


def test_without_tools_there_is_nobody_to_call(vocabulary: Vocabulary) -> None:
    with closing(CallConstraint(vocabulary, [])) as constraint:
        assert write(constraint, ids(vocabulary, [" to=read"])) is not None
    assert not any(map(constraint.allows, range(vocabulary.size)))
