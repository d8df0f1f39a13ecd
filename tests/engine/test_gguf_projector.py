"""What is read from a projector's file, and what is refused before llama.cpp sees it."""

import random
from pathlib import Path

import gguf
import pytest

from benchmarks.shape_gguf import (
    DrafterShape,
    ModelShape,
    ProjectorShape,
    write_drafter,
    write_model,
    write_projector,
)
from engine.errors import EngineError, ModelError
from engine.gguf.model import ModelMetadata, read_model_file
from engine.gguf.projector import read_projector_file
from engine.loading import EngineOptions, load

SHAPE = ModelShape(4, 64, 64, 300, 2, 1, 32, 64, 4096)


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> ModelMetadata:
    return read_model_file(
        write_model(tmp_path_factory.mktemp("target") / "model.gguf", SHAPE, "F32", seed=1)
    )


def changed(path: Path, key: str, value: int | float | bool) -> Path:
    """The file with one key's value written over."""
    reader = gguf.GGUFReader(path, "r+")
    field = reader.get_field(key)
    assert field is not None
    field.parts[field.data[0]][0] = value
    return path


def test_its_sizes(tmp_path: Path, target: ModelMetadata) -> None:
    path = write_projector(tmp_path / "mmproj.gguf", ProjectorShape(SHAPE.width), seed=1)
    found = read_projector_file(path, target)
    assert (found.width, found.feed_forward, found.blocks) == (64, 128, 4)
    assert 0.9 * path.stat().st_size < found.nbytes < path.stat().st_size


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("clip.vision.embedding_length", 0, "embedding_length is 0"),
        ("clip.vision.embedding_length", 96, "shape"),
        ("clip.vision.attention.head_count", 5, "5 heads"),
        ("clip.vision.patch_size", 16, "only 14"),
        ("clip.vision.spatial_merge_size", 4, "only 2"),
        ("clip.vision.block_count", 5, "lacks the tensor v.blk.4"),
        ("clip.vision.block_count", 3, "v.blk.3"),
        ("clip.vision.projection_dim", 65, "width 65"),
        ("clip.vision.image_size", 225, "225"),
        ("clip.vision.image_std", 0.0, "holds a zero"),
        ("clip.vision.image_mean", float("nan"), "three numbers"),
        ("clip.has_vision_encoder", False, "no vision encoder"),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path: Path, target, key: str, value: float, words: str) -> None:
    path = write_projector(tmp_path / "mmproj.gguf", ProjectorShape(SHAPE.width), seed=1)
    with pytest.raises(ModelError) as caught:
        read_projector_file(changed(path, key, value), target)
    assert words in str(caught.value)
    assert "cannot be used as a projector" in caught.value.what


def test_other_kinds_of_files_are_refused(tmp_path: Path, target: ModelMetadata) -> None:
    drafter = write_drafter(tmp_path / "d.gguf", SHAPE, DrafterShape(2, 64, 2, 1, 32, 64, 8, (1, 2)), "F32")
    for path in (target.path, drafter):
        with pytest.raises(ModelError, match="a projector's is 'clip'"):
            read_projector_file(path, target)
    (tmp_path / "text.gguf").write_bytes(b"no model at all")
    with pytest.raises(ModelError):
        read_projector_file(tmp_path / "text.gguf", target)


def test_a_damaged_projector_is_a_notice_and_the_model_loads(tmp_path: Path) -> None:
    write_model(tmp_path / "model.gguf", SHAPE, "F32", seed=1)
    whole = write_projector(tmp_path / "mmproj.gguf", ProjectorShape(SHAPE.width), seed=1).read_bytes()
    chance = random.Random(5)
    for _ in range(12):
        (tmp_path / "mmproj.gguf").write_bytes(whole[: chance.randrange(len(whole))])
        loaded = load(tmp_path / "model.gguf", EngineOptions(1024, threads=1, batch=64))
        assert not loaded.capabilities.vision
        assert len(loaded.capabilities.notices) == 1
        assert "cannot look at pictures" in loaded.capabilities.notices[0]
        loaded.close()


@pytest.mark.parametrize("tokens", [0, -1, 4097])
def test_an_impossible_cap_is_refused(tmp_path: Path, tokens: int) -> None:
    with pytest.raises(EngineError, match="impossible"):
        load(tmp_path / "model.gguf", EngineOptions(picture_tokens=tokens))
