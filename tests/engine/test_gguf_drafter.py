"""What is refused as a drafter, in which words, and what is read from a good one."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.shape_gguf import (
    DrafterShape,
    ModelShape,
    add_drafter_keys,
    drafter_tensors,
    finish,
    write_drafter,
    write_model,
)
from engine.errors import ModelError
from engine.gguf.drafter import DrafterMetadata, read_drafter_file
from engine.gguf.model import ModelMetadata, read_model_file
from tests.engine.tiny_gguf import add_key

TARGET = ModelShape(layers=8, width=64, ffn=64, heads=2, kv_heads=1, head=32, window=64, context=4096)
SHAPE = DrafterShape(layers=2, ffn=64, heads=2, kv_heads=1, head=32, window=64, target_layers=(1, 4, 7))


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> ModelMetadata:
    return read_model_file(write_model(tmp_path_factory.mktemp("target") / "target.gguf", TARGET))


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_drafter(tmp_path_factory.mktemp("drafter") / "drafter.gguf", TARGET, SHAPE)


def write(path: Path, keys: dict[str, Any], tensors: dict[str, Any] | None = None) -> Path:
    """A drafter with some keys and tensors replaced; None drops one."""
    writer = gguf.GGUFWriter(path, "dflash")
    add_drafter_keys(writer, TARGET, SHAPE)
    stored = writer.kv_data[0]
    for name, value in keys.items():
        key = name if "." in name and name.split(".")[0] in ("general", "tokenizer") else f"dflash.{name}"
        stored.pop(key, None)
        if value is not None:
            add_key(writer, key, value)
    matrices = {name: np.ones(size, np.float32) for name, size in drafter_tensors(TARGET, SHAPE)}
    for name, value in (matrices | (tensors or {})).items():
        if value is not None:
            writer.add_tensor(name, value)
    return finish(writer, path)


def refusal(path: Path, target: ModelMetadata) -> str:
    with pytest.raises(ModelError) as caught:
        read_drafter_file(path, target)
    assert caught.value.what
    assert caught.value.todo
    return str(caught.value)


def test_a_good_file_tells_what_drafting_needs(good: Path, target: ModelMetadata) -> None:
    found = read_drafter_file(good, target)
    assert found.block == 16
    assert found.target_layers == (1, 4, 7)
    assert found.mask_id == target.special_ids["<|mask|>"]
    assert (found.shape.layers, found.shape.kv_heads, found.shape.window) == (2, 1, 64)
    assert found.shape.local == (True, True)
    assert found.vocabulary_size == target.vocabulary_size
    assert not found.has_embedding
    assert not found.has_head
    assert found.weights.embedding == 0
    assert 0 < found.weights.total < good.stat().st_size


def test_a_drafter_may_bring_its_own_embedding_and_head(tmp_path: Path, target: ModelMetadata) -> None:
    matrix = np.ones((TARGET.vocabulary, TARGET.width), np.float32)
    path = tmp_path / "d.gguf"
    found = read_drafter_file(write(path, {}, {"token_embd.weight": matrix}), target)
    assert found.has_embedding
    assert found.has_head
    assert found.weights.embedding == matrix.nbytes
    gain = np.ones(TARGET.width, np.float32)
    found = read_drafter_file(write(path, {}, {"blk.0.post_ffw_norm.weight": gain}), target)
    assert not found.has_embedding


def test_a_drafter_without_a_window(tmp_path: Path, target: ModelMetadata) -> None:
    keys = {"attention.sliding_window": None, "attention.sliding_window_pattern": None}
    found = read_drafter_file(write(tmp_path / "d.gguf", keys), target)
    assert found.shape.window == 0
    assert found.shape.local == (False, False)


@pytest.mark.parametrize(
    ("architecture", "words"),
    [("muse-glimmer", "whole model"), ("clip", "vision projector"), ("eagle3", "'eagle3'")],
)
def test_another_kind_of_file_is_named(
    tmp_path: Path, target: ModelMetadata, architecture: str, words: str
) -> None:
    path = tmp_path / "d.gguf"
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_tensor("a", np.ones(4, np.float32))
    finish(writer, path)
    assert words in refusal(path, target)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"block_size": np.uint32(0)}, "2 to 256 is possible"),
        ({"block_size": np.uint32(1)}, "2 to 256 is possible"),
        ({"block_size": np.uint32(1 << 31)}, "2 to 256 is possible"),
        ({"block_size": "16"}, "not of type"),
        ({"block_size": None}, "lacks the key dflash.block_size"),
        ({"target_layers": None}, "lacks the key dflash.target_layers"),
        ({"target_layers": [1, 4, 8]}, "reads layer 8"),
        ({"target_layers": [1, -4, 7]}, "reads layer -4"),
        ({"target_layers": [1, 1, 7]}, "does not name the layers"),
        ({"target_layers": [1.0, 4.0, 7.0]}, "lacks the key"),
        ({"target_layers": [1, 4]}, "shape"),
        ({"embedding_length": np.uint32(128)}, "of width 128"),
        ({"embedding_length": np.uint32(0)}, "embedding_length"),
        ({"block_count": np.uint32(0)}, "block_count"),
        ({"block_count": np.uint32(513)}, "block_count"),
        ({"block_count": np.uint32(3)}, "name the local layers"),
        ({"attention.head_count": np.uint32(0)}, "head_count"),
        ({"attention.head_count_kv": np.uint32(3)}, "head_count_kv|share"),
        ({"attention.key_length": np.uint32(31)}, "attention.value_length|rotates"),
        ({"attention.sliding_window_pattern": [False, False]}, "local layers"),
        ({"attention.sliding_window_pattern": [True]}, "local layers"),
        ({"attention.sliding_window_pattern": None}, "sliding_window_pattern"),
        ({"attention.layer_norm_rms_epsilon": -1.0}, "epsilon"),
        ({"rope.dimension_sections": [8, 8, 0, 0]}, "several dimensions"),
        ({"rope.scaling.type": "yarn"}, "position scaling"),
        ({"hyper_connection.count": np.uint32(4)}, "hyper_connection"),
        ({"selector_rank": np.uint32(4)}, "selector_rank"),
        ({"expert_count": np.uint32(4)}, "expert_count"),
        ({"hidden_activation": "relu"}, "activation"),
        ({"tokenizer.ggml.mask_token_id": None}, "mask_token_id"),
        ({"tokenizer.ggml.mask_token_id": np.uint32(1 << 20)}, "mask"),
        ({"split.count": None, "general.type": "model"}, ""),
    ],
)
def test_what_cannot_be_used_is_refused(
    tmp_path: Path, target: ModelMetadata, keys: dict[str, Any], words: str
) -> None:
    path = write(tmp_path / "d.gguf", keys)
    if not words:
        assert read_drafter_file(path, target)
        return
    said = refusal(path, target)
    assert any(part in said for part in words.split("|"))


def test_a_drafter_of_another_vocabulary_is_refused(tmp_path: Path, target: ModelMetadata) -> None:
    other = ModelShape(
        layers=8, width=64, ffn=64, heads=2, kv_heads=1, head=32, window=64, vocabulary=TARGET.vocabulary + 1
    )
    assert "tokens" in refusal(write_drafter(tmp_path / "d.gguf", other, SHAPE), target)


@pytest.mark.parametrize("name", [name for name, _ in drafter_tensors(TARGET, SHAPE) if "blk.1" not in name])
def test_each_tensor_is_needed_in_its_shape(tmp_path: Path, target: ModelMetadata, name: str) -> None:
    size = dict(drafter_tensors(TARGET, SHAPE))[name]
    path = tmp_path / "d.gguf"
    assert name in refusal(write(path, {}, {name: None}), target)
    longer = (size[0] + 1, *size[1:])
    assert "shape" in refusal(write(path, {}, {name: np.ones(longer, np.float32)}), target)


@pytest.mark.parametrize("name", ["d2t", "markov_w1.weight", "selector_hidden.weight", "blk.9.attn_q.weight"])
def test_variants_are_refused(tmp_path: Path, target: ModelMetadata, name: str) -> None:
    path = write(tmp_path / "d.gguf", {}, {name: np.ones(64, np.float32)})
    assert "plain DFlash" in refusal(path, target)


def test_gains_are_stored_whole(tmp_path: Path, target: ModelMetadata) -> None:
    half = np.ones(TARGET.width, np.float16)
    assert "F16" in refusal(write(tmp_path / "d.gguf", {}, {"output_norm.weight": half}), target)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_file_cut_anywhere_is_refused(
    good: Path, target: ModelMetadata, tmp_path: Path, data: st.DataObject
) -> None:
    path = tmp_path / "cut.gguf"
    shutil.copy(good, path)
    os.truncate(path, data.draw(st.integers(0, good.stat().st_size - 1)))
    refusal(path, target)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_flipped_bytes_never_raise_anything_else(
    good: Path, target: ModelMetadata, tmp_path: Path, data: st.DataObject
) -> None:
    damaged = bytearray(good.read_bytes())
    for at in data.draw(st.lists(st.integers(0, 12000), min_size=1, max_size=3)):
        damaged[at] ^= data.draw(st.integers(1, 255))
    path = tmp_path / "flipped.gguf"
    path.write_bytes(damaged)
    try:
        assert isinstance(read_drafter_file(path, target), DrafterMetadata)
    except ModelError as error:
        assert error.what


@pytest.mark.parametrize("damage", ["bytes", "keys"])
def test_no_damage_ends_the_process(tmp_path: Path, damage: str) -> None:
    """What the check lets through is loaded and drafted with: the library must survive all of it."""
    command = [sys.executable, "-m", "tests.engine.load_damaged_drafter", damage, str(tmp_path), "0", "60"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])
    outcomes = ran.stdout.splitlines()
    assert ran.returncode == 0, f"{outcomes[-1:]} {ran.stderr[-2000:]}"
    assert len(outcomes) == 60
    assert any(line.endswith("used") for line in outcomes)
    assert any("refused:" in line for line in outcomes)
