"""Pictures in a conversation, with a real vision encoder of random weights."""

import random
import threading
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image as Pillow

from benchmarks.shape_gguf import (
    DrafterShape,
    ModelShape,
    ProjectorShape,
    write_drafter,
    write_model,
    write_projector,
)
from engine.errors import EngineError
from engine.loading import EngineOptions, Loaded, load
from engine.messages import Image, Message, Part, Text, ToolResult
from engine.protocol import Delta, Done, PictureProgress, Request, Sampling, SpanEvicted
from engine.vision.pictures import is_place

SHAPE = ModelShape(4, 64, 64, 300, 2, 1, 32, 64, 8192)
DRAFTER = DrafterShape(2, 64, 2, 1, 32, 64, 8, (1, 2))
GREEDY = Sampling(temperature=0.0)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("seeing")
    write_drafter(folder / "dflash.gguf", SHAPE, DRAFTER, "F32", seed=2)
    write_projector(folder / "mmproj.gguf", ProjectorShape(SHAPE.width), seed=3)
    return write_model(folder / "model.gguf", SHAPE, "F32", seed=1)


def opened(path: Path, **more: object) -> Loaded:
    return load(path, replace(EngineOptions(2048, threads=1, batch=64, constrains=False), **more))


def picture(seed: int, width: int = 280, height: int = 140) -> Image:
    noise = np.random.default_rng(seed).integers(0, 255, (height, width, 3), dtype=np.uint8)
    buffer = BytesIO()
    Pillow.fromarray(noise).save(buffer, "PNG")
    return Image(buffer.getvalue(), width, height)


def said(*parts: Part | str, name: str = "") -> Message:
    made = tuple(Text(part) if isinstance(part, str) else part for part in parts)
    return Message("user", made, name) if name else Message("user", made)


def run(loaded: Loaded, messages: tuple[Message, ...], limit: int = 12, name: str = "r") -> list[Delta]:
    asked = Request(messages, sampling=GREEDY, max_tokens=limit, reply_id=name)
    return list(loaded.generator.generate(asked, threading.Event()))


def done(deltas: list[Delta]) -> Done:
    assert isinstance(deltas[-1], Done)
    return deltas[-1]


def reply(loaded: Loaded, deltas: list[Delta]) -> tuple[int, ...]:
    return loaded.generator.conversation.log.ids[done(deltas).usage.prompt :]


def scores(loaded: Loaded) -> np.ndarray:
    return np.array(loaded.cache.scores(-1))


def test_the_encoder_makes_as_many_tokens_as_were_reserved(model: Path) -> None:
    loaded = opened(model, picture_tokens=60)
    assert loaded.pictures is not None
    chance = random.Random(4)
    for number in range(25):
        width, height = chance.randint(1, 700), chance.randint(1, 400)
        places = loaded.pictures.places(picture(number, width, height))
        assert 1 <= len(places) <= 60
        list(loaded.pictures.see(places, lambda: True))
        vectors = loaded.pictures.vectors(places)
        assert vectors is not None and vectors.shape == (len(places), SHAPE.width)
        assert np.isfinite(vectors).all()
    loaded.close()


def test_the_model_sees_which_picture_it_is(model: Path) -> None:
    loaded = opened(model, drafts=0)
    found = []
    for seed in (1, 2, 1):
        loaded.generator.conversation.clear()
        run(loaded, (said("what is ", picture(seed), "?"),), limit=1)
        found.append(scores(loaded))
    np.testing.assert_array_equal(found[0], found[2])
    assert np.abs(found[0] - found[1]).max() > 0.01
    loaded.close()


def test_the_reply_is_the_same_with_drafts_and_whatever_the_batch(model: Path) -> None:
    messages = (said("look: ", picture(1), " and ", picture(2), " ..."),)
    replies = set()
    for more in ({"drafts": 0}, {"drafts": 0, "batch": 7}, {"drafts": 7}, {"drafts": 3, "batch": 512}):
        loaded = opened(model, **more)
        replies.add(reply(loaded, run(loaded, messages, 40)))
        loaded.close()
    assert len(replies) == 1


def test_the_drafter_follows_through_a_picture(model: Path) -> None:
    loaded = opened(model, drafts=7)
    assert done(run(loaded, (said(picture(1)),), 20)).usage.drafted > 0
    loaded.close()


def test_the_next_turn_reads_nothing_again_and_an_old_picture_is_not_encoded_again(model: Path) -> None:
    loaded = opened(model)
    first = (said("one", picture(1), name="a"),)
    progress = [delta for delta in run(loaded, first) if isinstance(delta, PictureProgress)]
    assert [p.done for p in progress] == list(range(progress[0].total + 1))
    answer = Message("assistant", (Text("x"),), "r")
    deltas = run(loaded, (*first, answer, said("two", picture(1), picture(2))), name="s")
    assert done(deltas).usage.reread == 0
    assert sum(delta.done == delta.total for delta in deltas if isinstance(delta, PictureProgress)) == 1
    loaded.close()


def test_another_picture_of_the_same_size_is_another_conversation(model: Path) -> None:
    loaded = opened(model, drafts=0)
    run(loaded, (said("see", picture(1), name="a"),))
    changed = done(run(loaded, (said("see", picture(2), name="a"),)))
    here = scores(loaded)
    loaded.generator.conversation.clear()
    assert changed.usage.prefilled >= len(loaded.pictures.places(picture(2)))
    run(loaded, (said("see", picture(2), name="a"),))
    np.testing.assert_allclose(here, scores(loaded), atol=0.02)
    loaded.close()


def test_an_encoded_picture_is_kept_on_disk_and_a_torn_one_is_encoded_again(
    model: Path, tmp_path: Path
) -> None:
    def encoded(folder: Path) -> tuple[int, np.ndarray]:
        loaded = opened(model, picture_folder=folder)
        deltas = run(loaded, (said(picture(1)),), 1)
        found = scores(loaded)
        loaded.close()
        return sum(isinstance(delta, PictureProgress) for delta in deltas), found

    steps, fresh = encoded(tmp_path)
    assert steps > 0
    (kept,) = tmp_path.iterdir()
    assert kept.stat().st_mode & 0o777 == 0o600
    again, same = encoded(tmp_path)
    assert again == 0
    np.testing.assert_array_equal(fresh, same)
    kept.write_bytes(kept.read_bytes()[:-9] + b"wrong one")
    assert encoded(tmp_path)[0] == steps
    kept.write_bytes(b"")
    assert encoded(tmp_path)[0] == steps


def test_encoding_is_broken_off_and_the_next_try_works(model: Path) -> None:
    loaded = opened(model)
    cancelled = threading.Event()
    stream = loaded.generator.generate(Request((said(picture(1, 1200, 900)),), max_tokens=4), cancelled)
    for delta in stream:
        if isinstance(delta, PictureProgress) and delta.done == 1:
            cancelled.set()
    assert isinstance(delta, Done)
    assert delta.stop == "cancelled"
    assert done(run(loaded, (said(picture(1, 1200, 900)),), 4)).stop == "length"
    loaded.close()


def test_expired_pictures_and_results_free_their_cells_and_nothing_is_read_again(model: Path) -> None:
    loaded = opened(model, drafts=0, context_size=4096)
    history: list[Message] = []
    for turn in range(10):
        history.append(said(f"screen {turn} ", picture(turn), name=f"u{turn}"))
        history.append(Message("tool", (ToolResult("c", "read", "line of text\n" * 6),), f"t{turn}"))
        usage = done(run(loaded, tuple(history), 8, f"r{turn}")).usage
        history.append(Message("assistant", (Text("ok"),), f"r{turn}"))
    before = usage.context_used
    history = [_all_expired(message) if message.id != "u9" else message for message in history]
    deltas = run(loaded, (*history, said("go on", name="last")), 8, "end")
    freed = [delta for delta in deltas if isinstance(delta, SpanEvicted)]
    assert done(deltas).usage.reread == 0
    assert {delta.message_id for delta in freed} >= {f"u{turn}" for turn in range(8)}
    assert {delta.message_id for delta in freed} >= {f"t{turn}" for turn in range(8)}
    assert done(deltas).usage.context_used < before - 8 * len(loaded.pictures.places(picture(0)))
    later = run(loaded, (*history, said("go on", name="last"), Message("assistant", (Text("k"),), "end")), 4)
    assert done(later).usage.reread == 0
    assert not any(isinstance(delta, SpanEvicted) and delta.message_id == "u1" for delta in later)
    loaded.close()


def _all_expired(message: Message) -> Message:
    parts = (
        replace(part, expired="old, removed") if isinstance(part, Image | ToolResult) else part
        for part in message.parts
    )
    return replace(message, parts=tuple(parts))


def test_a_picture_that_expired_before_it_was_read_is_words(model: Path) -> None:
    loaded = opened(model)
    run(loaded, (_all_expired(said("see", picture(1))),), 1)
    ids = loaded.generator.conversation.log.ids
    assert not any(map(is_place, ids))
    text = b"".join(loaded.model.vocabulary.piece(token) for token in ids).decode(errors="replace")
    assert "[old, removed]" in text
    loaded.close()


def test_a_stored_conversation_with_pictures_goes_on_as_if_nothing_had_happened(
    model: Path, tmp_path: Path
) -> None:
    messages = (said("see", picture(1), name="a"),)
    loaded = opened(model, drafts=0)
    run(loaded, messages)
    state = loaded.generator.conversation.store()
    answer = Message("assistant", (Text("x"),), "r")
    more = (*messages, answer, said("and", picture(2), name="b"))
    expected = reply(loaded, run(loaded, more, name="s"))
    loaded.close()
    other = opened(model, drafts=0)
    other.generator.conversation.restore(state)
    deltas = run(other, more, name="s")
    assert done(deltas).usage.reread == 0
    assert reply(other, deltas) == expected
    other.close()


def test_a_lost_cache_reads_pictures_again(model: Path) -> None:
    loaded = opened(model, drafts=0)
    messages = (said("see", picture(1), name="a"),)
    expected = reply(loaded, run(loaded, messages))
    loaded.generator.conversation.lose_cache()
    assert reply(loaded, run(loaded, messages)) == expected
    loaded.close()


def test_without_a_projector_a_picture_is_an_error_that_names_the_file(model: Path) -> None:
    loaded = opened(model, sees=False)
    assert not loaded.capabilities.vision
    with pytest.raises(EngineError, match="mmproj-Muse-Glimmer-30B"):
        run(loaded, (said(picture(1)),))
    assert done(run(loaded, (said("words"),))).usage.generated > 0
    loaded.close()


@pytest.mark.parametrize("data", [b"", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"text", b"\xff\xd8\xff\xe0junk"])
def test_a_damaged_picture_is_an_error_and_the_conversation_goes_on(model: Path, data: bytes) -> None:
    loaded = opened(model)
    with pytest.raises(EngineError, match="could not be read"):
        run(loaded, (said(Image(data, 10, 10)),))
    assert done(run(loaded, (said("words"),))).usage.generated > 0
    loaded.close()


def test_the_cells_of_pictures_are_counted_apart_until_they_expire(model: Path) -> None:
    loaded = opened(model)
    first, second = said("one ", picture(1), name="a"), said(picture(2), name="b")
    counts = [len(loaded.pictures.places(picture(seed))) for seed in (1, 2)]
    assert done(run(loaded, (first,))).usage.pictures == counts[0]
    answer, more = Message("assistant", (Text("x"),), "r"), said("word " * 90, name="c")
    assert done(run(loaded, (first, answer, second), name="s")).usage.pictures == sum(counts)
    old = replace(first, parts=(first.parts[0], replace(first.parts[1], expired="old")))
    deltas = run(loaded, (old, answer, second, Message("assistant", (Text("x"),), "s"), more), name="t")
    assert done(deltas).usage.pictures == counts[1]
    loaded.close()
