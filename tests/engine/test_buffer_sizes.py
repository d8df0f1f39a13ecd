"""Predicted buffers against those that llama.cpp reserves and names in its log."""

import json
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from benchmarks.shape_gguf import DrafterShape, ModelShape, write_drafter, write_model
from engine.buffer_sizes import (
    DRAFTER_BATCH,
    Buffer,
    BufferKind,
    KvType,
    ModelFiles,
    Settings,
    cell_bytes,
    local_cells,
    predict,
)
from engine.gguf.drafter import read_drafter_file
from engine.gguf.model import read_model_file
from engine.gguf.projector import ProjectorMetadata
from engine.placement import Device

MIB = 1024**2
ROOT = Path(__file__).parents[2]
NANO = ROOT / "glimmer_tui" / "models" / "glimmer-nano.gguf"
LINE = re.compile(r"(model|KV|compute|output) buffer size = +([\d.]+) MiB")
CPU = Device("CPU", "cpu", 64 << 30, 64 << 30)


@dataclass(frozen=True)
class Load:
    """One way to load a model, with a drafter where one is named."""

    model: str
    context: int
    ubatch: int
    kv_type: KvType = "f16"
    outputs: int = 32
    drafter: str = ""

    @property
    def settings(self) -> Settings:
        return Settings(self.context, self.kv_type, self.ubatch, self.outputs, 0, True, "off", 0)


LOADS = (
    Load("nano", 4096, 512),
    Load("nano", 4096, 128),
    Load("nano", 1024, 512),
    Load("nano", 300, 256),
    Load("true", 131072, 512),
    Load("true", 131072, 512, "q8_0"),
    Load("true", 16384, 256),
    Load("true", 8192, 64),
    Load("wide", 16384, 512),
    Load("wide", 2048, 128, "q8_0"),
    Load("wide", 16384, 512, outputs=512),
    Load("wordy", 4096, 512, outputs=512),
)
DRAFTER_LOADS = (
    Load("wide", 8192, 512, drafter="drafter"),
    Load("wide", 8192, 64, "q8_0", drafter="drafter"),
)
WIDE = ModelShape(layers=8, width=256, ffn=768, heads=4, kv_heads=2, head=64, window=512, context=16384)
WORDY = ModelShape(layers=4, width=64, heads=4, head=64, vocabulary=202048)
DRAFTER = DrafterShape(ffn=768, heads=4, kv_heads=4, head=64, window=512, target_layers=(1, 3, 5, 6, 7))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The bundled model, a narrow one with the whole cache of the 30B, and others of telling shapes."""
    folder = tmp_path_factory.mktemp("shapes")
    return {
        "nano": NANO,
        "true": write_model(folder / "true.gguf", ModelShape()),
        "wide": write_model(folder / "wide.gguf", WIDE),
        "wordy": write_model(folder / "wordy.gguf", WORDY),
        "drafter": write_drafter(folder / "drafter.gguf", WIDE, DRAFTER),
    }


@pytest.fixture(scope="module")
def measured(files: dict[str, Path]) -> dict[Load, list[tuple[str, float]]]:
    """llama.cpp's words about each load: kinds of buffers and MiB, in order."""
    loads = (*LOADS, *DRAFTER_LOADS)
    told = [
        {
            "model": str(files[load.model]),
            "drafter": str(files[load.drafter]) if load.drafter else "",
            "context": load.context,
            "ubatch": load.ubatch,
            "kv_type": load.kv_type,
            "outputs": load.outputs,
            "drafter_batch": min(DRAFTER_BATCH, load.ubatch),
        }
        for load in loads
    ]
    command = [sys.executable, "-m", "tests.engine.measure_buffers", json.dumps(told)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    logs = json.loads(ran.stdout)
    return {
        load: [(kind, float(size)) for kind, size in LINE.findall(log)]
        for load, log in zip(loads, logs, strict=True)
    }


def total(found: Iterable[tuple[str, float]], *kinds: str) -> float:
    return sum(size for kind, size in found if kind in kinds)


def mib(buffers: Iterable[Buffer], *kinds: BufferKind) -> float:
    return sum(buffer.nbytes for buffer in buffers if buffer.kind in kinds) / MIB


@pytest.mark.parametrize("load", LOADS, ids=str)
def test_buffers_are_foretold(files: dict[str, Path], measured: dict[Load, Any], load: Load) -> None:
    buffers = predict(ModelFiles(read_model_file(files[load.model])), load.settings, [CPU])
    found = measured[load]
    cache = mib(buffers, "global cache", "local cache")
    assert cache == pytest.approx(total(found, "KV"), rel=0.01, abs=0.01)
    assert mib(buffers, "weights") == pytest.approx(total(found, "model"), rel=0.02)
    everything = cache + mib(buffers, "weights", "compute")
    assert everything == pytest.approx(total(found, "model", "KV", "compute"), rel=0.1)
    assert mib(buffers, "compute") >= total(found, "compute") * 0.98


@pytest.mark.parametrize("load", DRAFTER_LOADS, ids=str)
def test_those_of_a_drafter_too(files: dict[str, Path], measured: dict[Load, Any], load: Load) -> None:
    target = read_model_file(files[load.model])
    drafter = read_drafter_file(files[load.drafter], target)
    buffers = predict(ModelFiles(target, drafter), load.settings, [CPU])
    found = measured[load]
    of_drafter = found[next(at for at in range(1, len(found)) if found[at][0] == "model") :]
    assert mib(buffers, "drafter cache") == pytest.approx(total(of_drafter, "KV"), rel=0.01, abs=0.01)
    assert mib(buffers, "drafter weights") == pytest.approx(total(of_drafter, "model"), rel=0.02)
    ours = mib(buffers, "drafter cache", "drafter weights", "drafter compute")
    assert ours == pytest.approx(total(of_drafter, "KV", "model", "compute"), rel=0.1)


def test_the_cache_at_full_length_is_known_to_the_byte(
    files: dict[str, Path], measured: dict[Load, Any]
) -> None:
    load = Load("true", 131072, 512)
    assert [size for kind, size in measured[load] if kind == "KV"] == [1664.0, 97.5]
    buffers = predict(ModelFiles(read_model_file(files["true"])), load.settings, [CPU])
    assert mib(buffers, "global cache") == 1664.0
    assert mib(buffers, "local cache") == 97.5


def test_what_a_token_takes(files: dict[str, Path]) -> None:
    shape = read_model_file(files["true"]).shape
    assert cell_bytes(shape, "f16") == 1024
    assert cell_bytes(shape, "q8_0") == 544
    assert local_cells(2048, 131072, 512) == 2560
    assert local_cells(2048, 1000, 512) == 1024
    assert local_cells(500, 131072, 100) == 768


def test_layers_lie_where_they_are_computed(files: dict[str, Path]) -> None:
    loaded = ModelFiles(read_model_file(files["true"]))
    weights = loaded.model.weights
    gpu = Device("GPU", "gpu", 8 << 30, 8 << 30)

    def on(device: str, kind: BufferKind, layers: int) -> int:
        settings = Settings(131072, "f16", 512, 32, layers, False, "off", 0)
        found = predict(loaded, settings, [gpu, CPU])
        return sum(buffer.nbytes for buffer in found if (buffer.kind, buffer.device) == (kind, device))

    assert on("CPU", "weights", 53) == weights.embedding
    assert on("GPU", "weights", 53) == weights.total - weights.embedding
    assert on("GPU", "weights", 0) == 0
    assert on("GPU", "global cache", 53) == 1664 * MIB
    assert on("GPU", "weights", 1) == weights.output
    assert on("GPU", "global cache", 1) == 0
    assert on("GPU", "global cache", 2) == 128 * MIB
    assert on("CPU", "global cache", 2) == 12 * 128 * MIB
    assert on("GPU", "local cache", 5) == 3 * 2560 * 1024


def test_two_gpus_share_the_layers_by_their_free_memory(files: dict[str, Path]) -> None:
    loaded = ModelFiles(read_model_file(files["true"]))
    gpus = [Device("A", "gpu", 32 << 30, 30 << 30), Device("B", "gpu", 16 << 30, 10 << 30)]
    settings = Settings(131072, "f16", 512, 32, 53, False, "off", 0)
    found = predict(loaded, settings, [*gpus, CPU])
    cache = {buffer.device: buffer.nbytes // MIB for buffer in found if buffer.kind == "global cache"}
    assert cache == {"A": 10 * 128, "B": 3 * 128}


def test_images_take_a_mask_of_all_pairs_of_patches(files: dict[str, Path]) -> None:
    loaded = ModelFiles(
        read_model_file(files["true"]), None, ProjectorMetadata(Path("p.gguf"), 1000, 16, 32, 2)
    )

    def compute(tokens: int) -> int:
        settings = Settings(4096, "f16", 512, 32, 0, False, "cpu", tokens)
        return int(mib(predict(loaded, settings, [CPU]), "vision compute"))

    assert compute(2691) > 4 * (4 * 2691) ** 2 // MIB
    assert compute(2691) > 6 * compute(1024)
