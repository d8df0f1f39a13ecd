"""What Glimmer says of a machine and of a model's speed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.shape_gguf import DrafterShape, ModelShape, write_drafter, write_model
from engine.loading import EngineOptions
from glimmer_tui.bench import as_json, as_table, run_bench

ROOT = Path(__file__).parents[2]
SHAPE = ModelShape(4, 64, 64, 300, 2, 1, 32, 64, 4096)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {
        **os.environ,
        "GLIMMER_STATE_DIR": str(tmp_path / "state"),
        "GLIMMER_CONFIG_DIR": str(tmp_path / "config"),
        "PYTHONPATH": str(ROOT),
    }


def doctor(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "glimmer_tui", "doctor", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_the_doctor_names_the_machine_the_files_and_the_plan(environment: dict[str, str]) -> None:
    done = doctor(environment)
    assert (done.returncode, done.stderr) == (0, "")
    for word in ("Memory", "Model", "Glimmer Nano", "Drafter", "Plan", "tokens of context", "git", "bash"):
        assert word in done.stdout
    assert "✗" not in done.stdout


def test_the_doctor_says_what_is_wrong_with_a_model(environment: dict[str, str], tmp_path: Path) -> None:
    torn = tmp_path / "torn.gguf"
    torn.write_bytes(b"GGUF\x03\x00\x00\x00")
    done = doctor(environment, "--model", str(torn))
    assert done.returncode == 1
    assert "✗ Model" in done.stdout
    assert "→" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
    missing = doctor(environment, "--model", str(tmp_path / "nowhere.gguf"))
    assert missing.returncode == 3
    assert "nowhere.gguf" in missing.stderr


def test_a_bench_measures_every_part_and_says_so_in_two_forms(tmp_path: Path) -> None:
    write_drafter(
        tmp_path / "dflash.gguf", SHAPE, DrafterShape(2, 64, 2, 1, 32, 64, 8, (1, 2)), "F32", seed=2
    )
    model = write_model(tmp_path / "model.gguf", SHAPE, "F32", seed=1)
    report = run_bench(model, EngineOptions(2048, threads=1), (), quick=True)
    data = json.loads(as_json(report))
    assert [speed["length"] for speed in data["speeds"]] == [1024]
    assert data["drafting"]["tokens"] > 0
    assert data["drafting"]["same"]
    assert len(data["drafting"]["shares"]) == 7
    assert data["restoring"]["nbytes"] > 0
    assert data["share"] > 0
    table = as_table(report)
    for word in ("Plan:", "Drafting:", "Accepted by place:", "back to a checkpoint", "GB/s", "Memory:"):
        assert word in table
