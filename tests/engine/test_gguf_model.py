"""What is refused as a model file, in which words, and what is read from one that is good."""

import math
import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.errors import ModelError
from engine.gguf.file import read_gguf
from engine.gguf.model import read_model_file
from engine.protocol import Sampling
from tests.engine import load_damaged
from tests.engine.tiny_gguf import (
    ARCHITECTURE,
    Shape,
    byte_alphabet,
    default_tokens,
    metadata,
    tensors,
    write,
    write_tiny,
)


def refusal(path: Path) -> str:
    with pytest.raises(ModelError) as caught:
        read_model_file(path)
    assert caught.value.what
    assert caught.value.todo
    return str(caught.value)


def test_a_good_file_tells_what_the_rest_needs(tiny_model: Path) -> None:
    found = read_model_file(tiny_model)
    assert found.name == "Tiny Glimmer"
    assert found.is_demo
    assert found.context_length == 4096
    assert (found.shape.layers, found.shape.window) == (4, 64)
    assert found.vocabulary_size == len(default_tokens())
    assert found.special_ids["<|eot|>"] == default_tokens().index("<|eot|>")
    assert found.sampling == Sampling(temperature=1.0, top_p=0.95, top_k=64)


def test_an_unmarked_model_is_not_the_demonstration(tmp_path: Path) -> None:
    assert not read_model_file(write_tiny(tmp_path / "m.gguf", glimmer__demo=None)).is_demo


def test_a_models_own_sampling_is_used_and_an_impossible_one_is_not(tmp_path: Path) -> None:
    own = {"general__sampling__temp": 0.5, "general__sampling__top_k": np.uint32(7)}
    found = read_model_file(write_tiny(tmp_path / "own.gguf", **own))
    assert found.sampling == Sampling(temperature=0.5, top_p=0.95, top_k=7)
    wild = {"general__sampling__temp": math.nan, "general__sampling__top_p": "all"}
    assert read_model_file(write_tiny(tmp_path / "wild.gguf", **wild)).sampling == Sampling()


def test_a_name_cannot_move_the_cursor(tmp_path: Path) -> None:
    found = read_model_file(write_tiny(tmp_path / "m.gguf", general__name="a\x1b[2J\nb" * 50))
    assert found.name.isprintable()
    assert len(found.name) <= 80


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS pointer"),
        (b"PK\x03\x04" + bytes(100), "zip archive"),
        (struct.pack("<Q", 40) + b'{"__metadata__":{}}' + bytes(100), "safetensors"),
        (b"<!DOCTYPE html><html>", "web page"),
        (b"Dear diary,\ntoday", "text file"),
        (bytes(4096), "starts with zeros"),
        (b"lmgg" + bytes(100), "older than GGUF"),
        (b"\x7fELF\x02\x01" + bytes(100), "not a GGUF file"),
        (b"GGUF", "ends in the middle"),
        (b"GGUF" + struct.pack("<I", 1) + bytes(100), "version 1"),
        (b"GGUF" + struct.pack(">IQQ", 3, 0, 0) + bytes(100), "version 50331648"),
        (b"GGUF" + struct.pack("<IQQ", 3, 1 << 60, 0), "claims 1152921504606846976 tensors"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1 << 40), "claims 1099511627776 keys"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 1 << 62), "at most 65535"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 50) + b"short", "ends in the middle"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 0), "family is not named"),
    ],
)
def test_foreign_files_are_named(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    assert words in refusal(path)


@pytest.mark.parametrize("kind", ["Q", "text", "arrays"])
def test_a_list_that_claims_to_be_huge_allocates_nothing(tmp_path: Path, kind: str) -> None:
    item = {"Q": 10, "text": 8, "arrays": 9}[kind]
    head = b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 1) + b"k"
    path = tmp_path / "model.gguf"
    path.write_bytes(head + struct.pack("<IIQ", 9, item, 1 << 59) + bytes(64))
    assert "cannot be used" in refusal(path)


def test_what_cannot_be_opened_is_said_in_words(tmp_path: Path) -> None:
    assert "no model file" in refusal(tmp_path / "absent.gguf")
    assert "folder" in refusal(tmp_path)
    pipe = tmp_path / "pipe.gguf"
    os.mkfifo(pipe)
    assert "not a regular file" in refusal(pipe)
    assert "cannot be read" in refusal(tmp_path / ("x" * 300))
    assert "cannot be read" in refusal(Path("/proc/self/mem"))
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert "loop" in refusal(tmp_path / "loop")


@pytest.mark.parametrize(
    ("architecture", "words"),
    [("clip", "vision projector"), ("dflash", "drafter"), ("llama", "'llama'"), ("qwen3", "chat format")],
)
def test_another_family_is_refused_in_words(tmp_path: Path, architecture: str, words: str) -> None:
    keys = metadata(Shape(), default_tokens()) | {"general.architecture": architecture}
    assert words in refusal(write(tmp_path / "m.gguf", keys, {}))


NOT_NEEDED = {
    "general.architecture",
    "general.name",
    "glimmer.demo",
    f"{ARCHITECTURE}.attention.value_length",
    f"{ARCHITECTURE}.attention.sliding_window_pattern",
    f"{ARCHITECTURE}.rope.dimension_count",
    f"{ARCHITECTURE}.vocab_size",
    f"{ARCHITECTURE}.final_logit_softcapping",
    "tokenizer.ggml.pre",
    "tokenizer.ggml.bos_token_id",
    "tokenizer.ggml.eos_token_id",
    "tokenizer.ggml.eot_token_id",
    "tokenizer.ggml.add_bos_token",
}


@pytest.mark.parametrize("key", [key for key in metadata(Shape(), default_tokens()) if key not in NOT_NEEDED])
def test_each_needed_key_is_missed_by_name(tmp_path: Path, key: str) -> None:
    keys = metadata(Shape(), default_tokens())
    del keys[key]
    assert key in refusal(write(tmp_path / "m.gguf", keys, {}))


@pytest.mark.parametrize("name", list(tensors(Shape(layers=4), 300)))
def test_each_tensor_is_missed_by_name(tmp_path: Path, name: str) -> None:
    weights = tensors(Shape(), len(default_tokens()))
    del weights[name]
    path = write(tmp_path / "m.gguf", metadata(Shape(), default_tokens()), weights)
    assert f"lacks the tensor {name}" in refusal(path)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("block_count", np.uint32(0)),
        ("block_count", np.uint32(4_000_000_000)),
        ("embedding_length", np.uint32(65)),
        ("attention.head_count", np.uint32(0)),
        ("attention.head_count_kv", np.uint32(3)),
        ("attention.key_length", "32"),
        ("attention.value_length", np.uint32(16)),
        ("attention.layer_norm_rms_epsilon", -1.0),
        ("attention.layer_norm_rms_epsilon", math.nan),
        ("attention.sliding_window", np.uint32(0)),
        ("attention.sliding_window_pattern", [True] * 4),
        ("attention.sliding_window_pattern", [True, False]),
        ("attention.sliding_window_pattern", np.uint32(0)),
        ("rope.dimension_count", np.uint32(31)),
        ("rope.dimension_count", np.uint32(64)),
        ("rope.freq_base", math.inf),
        ("rope.scaling.type", "su"),
        ("rope.scaling.factor", math.nan),
        ("logit_scale", 0.0),
        ("vocab_size", np.uint32(9)),
        ("expert_count", np.uint32(8)),
        ("nextn_predict_layers", np.uint32(1)),
        ("pooling_type", np.uint32(4)),
        ("attention.causal", False),
        ("classifier.output_labels", ["good", "bad"]),
        ("context_length", np.uint32(0)),
    ],
)
def test_what_the_library_would_die_of_is_refused(tmp_path: Path, key: str, value: Any) -> None:
    keys = metadata(Shape(), default_tokens()) | {f"{ARCHITECTURE}.{key}": value}
    refusal(write(tmp_path / "m.gguf", keys, tensors(Shape(), len(default_tokens()))))


def with_tokens(path: Path, tokens: list[str], **replaced: Any) -> Path:
    keys = metadata(Shape(), tokens) | replaced
    return write(path, keys, tensors(Shape(), len(tokens)))


def test_a_vocabulary_that_would_lose_or_mix_up_text_is_refused(tmp_path: Path) -> None:
    tokens = default_tokens()
    path = tmp_path / "m.gguf"
    assert "twice" in refusal(with_tokens(path, [*tokens, "a"]))
    assert "twice" in refusal(with_tokens(path, [*tokens, f"[EMPTY_{len(tokens) + 1}]", ""]))
    assert "single bytes" in refusal(with_tokens(path, ["?" * 9 if text == "a" else text for text in tokens]))
    assert "impossible" in refusal(with_tokens(path, byte_alphabet()[:100] + tokens[256:]))
    for merge in ("Ġ a", "a b", "Ã ©"):
        merges = {"tokenizer.ggml.merges": ["Ġ t", merge]}
        assert "of the merge" in refusal(with_tokens(path, tokens, **merges))
    types = [1] * len(tokens)
    assert "ordinary text" in refusal(with_tokens(path, tokens, **{"tokenizer.ggml.token_type": types}))
    assert "token types" in refusal(with_tokens(path, tokens, **{"tokenizer.ggml.token_type": types[:-1]}))


@pytest.mark.parametrize("marker", ["<|begin_of_text|>", "<|start|>", "<|message|>", "<|eom|>", "<|eot|>"])
def test_each_token_of_the_chat_format_is_needed(tmp_path: Path, marker: str) -> None:
    tokens = [f"<|other_{text[2:]}" if text == marker else text for text in default_tokens()]
    keys = metadata(Shape(), default_tokens()) | {"tokenizer.ggml.tokens": tokens}
    path = write(tmp_path / "m.gguf", keys, tensors(Shape(), len(tokens)))
    assert f"lacks {marker}" in refusal(path)


def test_tensors_of_the_wrong_kind_are_refused(tmp_path: Path) -> None:
    vocabulary = len(default_tokens())
    keys = metadata(Shape(), default_tokens())
    good = tensors(Shape(), vocabulary)
    norm, matrix = "blk.0.attn_norm.weight", "blk.0.attn_q.weight"
    path = tmp_path / "m.gguf"
    assert "F16" in refusal(write(path, keys, good | {norm: good[norm].astype(np.float16)}))
    assert "type 26" in refusal(write(path, keys, good | {matrix: good[matrix].astype(np.int32)}))
    assert "shape" in refusal(write(path, keys, good | {matrix: good[matrix][:-1]}))
    read_model_file(write(path, keys, good | {matrix: good[matrix].astype(np.float16)}))


def test_quantized_weights_are_measured_right(tmp_path: Path) -> None:
    keys = metadata(Shape(), default_tokens())
    weights = tensors(Shape(), len(default_tokens()))
    path = tmp_path / "m.gguf"
    writer = gguf.GGUFWriter(path, ARCHITECTURE)
    kinds = [gguf.GGMLQuantizationType.Q8_0, gguf.GGMLQuantizationType.Q4_0, gguf.GGMLQuantizationType.Q5_1]
    for key, value in keys.items():
        match value:
            case bool():
                writer.add_bool(key, value)
            case str():
                writer.add_string(key, value) if key != "general.architecture" else None
            case float():
                writer.add_float32(key, value)
            case list():
                writer.add_array(key, value)
            case _:
                writer.add_uint32(key, int(value))
    for number, (name, value) in enumerate(weights.items()):
        if value.ndim == 2:
            kind = kinds[number % len(kinds)]
            writer.add_tensor(name, gguf.quants.quantize(value, kind), raw_dtype=kind)
        else:
            writer.add_tensor(name, value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    ours = read_gguf(path).tensors
    assert read_model_file(path).shape.layers == 4
    for theirs in gguf.GGUFReader(path).tensors:
        assert ours[theirs.name].offset == theirs.data_offset
        assert ours[theirs.name].nbytes == theirs.n_bytes
        assert ours[theirs.name].type.name == theirs.tensor_type.name


def test_a_wider_alignment_is_followed(tmp_path: Path) -> None:
    keys = metadata(Shape(), default_tokens())
    path = write(tmp_path / "m.gguf", keys, tensors(Shape(), len(default_tokens())), alignment=4096)
    assert all(tensor.offset % 4096 == 0 for tensor in read_gguf(path).tensors.values())


@pytest.mark.parametrize("alignment", [1, 8, 48, 1 << 20])
def test_an_unusable_alignment_is_refused(tmp_path: Path, alignment: int) -> None:
    path = write_tiny(tmp_path / "m.gguf", general__alignment=np.uint32(alignment))
    assert "general.alignment" in refusal(path)


@pytest.fixture(scope="module")
def header(tiny_model: Path) -> bytes:
    """The keys and tensor infos of the tiny model, and a little of what follows."""
    return tiny_model.read_bytes()[: load_damaged.HEADER]


def write_sparse(path: Path, start: bytes, size: int) -> Path:
    """A file of `size` bytes that begins with `start` and goes on with zeros that take no room."""
    path.write_bytes(start)
    os.truncate(path, size)
    return path


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_file_cut_anywhere_is_refused(
    tiny_model: Path, header: bytes, tmp_path: Path, data: st.DataObject
) -> None:
    whole = tiny_model.stat().st_size
    size = data.draw(st.integers(0, len(header)) | st.integers(0, whole - 1))
    refusal(write_sparse(tmp_path / "cut.gguf", header[:size], size))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_flipped_bits_never_raise_anything_else(
    tiny_model: Path, header: bytes, tmp_path: Path, data: st.DataObject
) -> None:
    damaged = bytearray(header)
    flips = st.tuples(st.integers(0, len(header) - 1), st.integers(1, 255))
    for at, mask in data.draw(st.lists(flips, min_size=1, max_size=3)):
        damaged[at] ^= mask
    path = write_sparse(tmp_path / "flipped.gguf", bytes(damaged), tiny_model.stat().st_size)
    try:
        read_model_file(path)
    except ModelError as error:
        assert error.what


@pytest.mark.parametrize("damage", ["bytes", "keys"])
def test_no_damage_ends_the_process(tmp_path: Path, damage: str) -> None:
    """What the check lets through is loaded and run: the library must survive all of it."""
    command = [sys.executable, "-m", "tests.engine.load_damaged", damage, str(tmp_path), "0", "60"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])
    outcomes = ran.stdout.splitlines()
    assert ran.returncode == 0, f"{outcomes[-1:]} {ran.stderr[-2000:]}"
    assert len(outcomes) == 60
    assert ran.stderr == ""
    assert any(line.endswith("used") for line in outcomes)
    assert any("refused" in line for line in outcomes)
