"""The binding over the real library: text to ids and back, rewinding, and silence."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from engine.context import Context, ContextOptions
from engine.errors import EngineError, ModelError
from engine.gguf.model import read_model_file
from engine.llama import Model, Weights
from tests.engine.tiny_gguf import SPECIALS, Shape, default_tokens, metadata, tensors, write, write_tiny

quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
spelled = st.sampled_from([*SPECIALS, "<", "<|", "|>", "start", " ", "é", "\0", "x\n"])
hostile = st.lists(spelled | st.text()).map("".join)


ROUNDING = 0.1
"""How far the scores of one text may lie apart when it is read in other batches."""


def text_of(model: Model, tokens: list[int]) -> bytes:
    return b"".join(map(model.vocabulary.piece, tokens))


@quick
@given(hostile)
@example(" t")
def test_text_never_becomes_a_special_token_and_is_kept_whole(model: Model, text: str) -> None:
    tokens = model.vocabulary.tokenize(text)
    assert not any(map(model.vocabulary.is_special, tokens))
    assert text_of(model, tokens) == text.encode("utf-8", "replace")


@pytest.mark.parametrize("marker", SPECIALS)
def test_each_marker_spelled_in_a_file_stays_text(model: Model, marker: str) -> None:
    for text in (marker, f"a{marker}b", marker * 3, f"<|{marker}|>", f"<{marker}"):
        tokens = model.vocabulary.tokenize(text)
        assert not any(map(model.vocabulary.is_special, tokens))
        assert text_of(model, tokens) == text.encode()


def test_lone_surrogates_are_replaced_not_fatal(model: Model) -> None:
    assert text_of(model, model.vocabulary.tokenize("a\ud800b")) == b"a?b"


def test_special_tokens_are_known_by_their_text(model: Model) -> None:
    for text in SPECIALS:
        token = model.vocabulary.special(text)
        assert token == default_tokens().index(text)
        assert model.vocabulary.piece(token) == b""
    assert model.vocabulary.special("<|absent|>") is None


def test_long_tokens_come_back_whole(tmp_path: Path) -> None:
    tokens = [*default_tokens(), "a" * 300]
    path = write(tmp_path / "m.gguf", metadata(Shape(), tokens), tensors(Shape(), len(tokens)))
    made = Model(read_model_file(path), 0, None)
    assert made.vocabulary.piece(len(tokens) - 1) == b"a" * 300
    made.close()


def scores(model: Model, tokens: list[int]) -> np.ndarray:
    fresh = Context(model, ContextOptions(1024, 64, threads=1), None)
    for start in range(0, len(tokens), 64):
        fresh.decode(tokens[start : start + 64], start)
    found = fresh.scores(-1, model.vocabulary.size).copy()
    fresh.close()
    return found


def read(context: Context, tokens: list[int], position: int) -> None:
    for start in range(0, len(tokens), 64):
        context.decode(tokens[start : start + 64], position + start)


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(st.tuples(st.integers(1, 300), st.integers(0, 400)), min_size=2, max_size=5),
    seed=st.integers(0, 1000),
)
def test_a_rewind_that_is_allowed_is_exact(
    model: Model, context: Context, steps: list[tuple[int, int]], seed: int
) -> None:
    """Whatever was read and dropped before, the scores equal those of a cache that never saw it."""
    rng = np.random.default_rng(seed)
    context.clear()
    held: list[int] = []
    for length, back in steps:
        position = max(0, len(held) - back)
        if held and position and context.can_rewind(position):
            context.rewind(position)
            held = held[:position]
        new = [int(token) for token in rng.integers(0, 256, length)]
        if len(held) + length > context.size:
            break
        read(context, new, len(held))
        held += new
        assert np.abs(context.scores(-1, model.vocabulary.size) - scores(model, held)).max() < ROUNDING


def test_a_rewind_past_the_window_is_refused_and_would_be_wrong(model: Model, context: Context) -> None:
    tokens = [int(token) for token in np.random.default_rng(5).integers(0, 256, 900)]
    read(context, tokens, 0)
    assert context.can_rewind(890)
    assert not context.can_rewind(600)
    context.rewind(600)
    read(context, tokens[:20], 600)
    expected = scores(model, [*tokens[:600], *tokens[:20]])
    assert np.abs(context.scores(-1, model.vocabulary.size) - expected).max() > 5 * ROUNDING


def test_a_short_conversation_rewinds_anywhere(context: Context) -> None:
    read(context, [65] * 100, 0)
    assert all(map(context.can_rewind, range(1, 100)))


def test_an_empty_cache_has_nothing_to_rewind(context: Context) -> None:
    assert not context.can_rewind(10)


def test_a_decode_the_library_refuses_is_an_error(context: Context) -> None:
    context.decode([65, 66], 0)
    with pytest.raises(EngineError, match="decode step returned"):
        context.decode([67], 7)
    context.clear()
    context.decode([65, 66], 0)
    with pytest.raises(ValueError, match="batch"):
        context.decode([65] * 65, 2)


def test_what_is_closed_says_so(tiny_model: Path) -> None:
    made = Model(read_model_file(tiny_model), 0, None)
    context = Context(made, ContextOptions(256, 32, threads=1), None)
    context.close()
    context.close()
    with pytest.raises(EngineError, match="closed"):
        context.decode([65], 0)
    made.close()
    made.close()
    with pytest.raises(EngineError, match="closed"):
        Context(made, ContextOptions(256, 32, threads=1), None)
    with pytest.raises(EngineError, match="closed"):
        made.vocabulary.tokenize("a")
    with pytest.raises(EngineError, match="closed"):
        context.clear()


def test_a_cache_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    path = write_tiny(tmp_path / "odd.gguf", Shape(head=24))
    made = Model(read_model_file(path), 0, None)
    with pytest.raises(ModelError, match="no room for a context"):
        Context(made, ContextOptions(256, 32, 1, "q8_0"), None)
    made.close()


def test_a_quantized_cache_works(model: Model) -> None:
    context = Context(model, ContextOptions(256, 32, 1, "q8_0"), None)
    context.decode([65, 66, 67], 0)
    assert np.isfinite(context.scores(-1, model.vocabulary.size)).all()
    context.close()


def test_a_model_the_library_refuses_is_an_error(tmp_path: Path) -> None:
    path = write_tiny(tmp_path / "m.gguf", tokenizer__ggml__pre="a pre-tokenizer of tomorrow")
    with pytest.raises(ModelError, match="could not be loaded"):
        Model(read_model_file(path), 0, tmp_path / "llama.log")
    assert "tomorrow" in (tmp_path / "llama.log").read_text()


SILENT = """
import sys
from pathlib import Path
from engine.errors import ModelError
from engine.context import Context, ContextOptions
from engine.llama import Model
from engine.gguf.model import read_model_file
log = Path(sys.argv[3]) if len(sys.argv) > 3 else None
model = Model(read_model_file(Path(sys.argv[1])), -1, log)
context = Context(model, ContextOptions(256, 32, 1), log)
context.decode([65, 66], 0)
context.close()
model.close()
try:
    Model(read_model_file(Path(sys.argv[2])), -1, log)
except ModelError:
    pass
"""


@pytest.mark.parametrize("log", ["made/on/demand.log", "", "tiny.gguf/not-a-folder.log"])
def test_the_terminal_is_left_alone(tiny_model: Path, tmp_path: Path, log: str) -> None:
    refused = write_tiny(tmp_path / "refused.gguf", tokenizer__ggml__pre="unknown")
    (tmp_path / "tiny.gguf").touch()
    arguments = [str(tmp_path / log)] if log else []
    command = [sys.executable, "-c", SILENT, str(tiny_model), str(refused), *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    if log.startswith("made"):
        assert "llama" in (tmp_path / log).read_text("utf-8")


def test_a_second_file_that_fails_leaves_the_log_of_the_first_open(tiny_model: Path, tmp_path: Path) -> None:
    log = tmp_path / "engine.log"
    refused = write_tiny(tmp_path / "refused.gguf", tokenizer__ggml__pre="unknown")
    first = Model(read_model_file(tiny_model), 0, log)
    with pytest.raises(ModelError):
        Weights(refused, 64, 0, log)
    size = log.stat().st_size
    Context(first, ContextOptions(512, 64, 1), log).close()
    assert log.stat().st_size > size
    first.close()
