"""Pictures from end to end: on the command line, and on the real screen over a real, random projector."""

import io
import json
import shutil
import sys
from pathlib import Path

import pytest
from PIL import Image as Pillow

from benchmarks.shape_gguf import ProjectorShape, write_projector
from engine.messages import Image
from engine.protocol import Capabilities
from engine.scripted import ScriptedEngine, text_reply
from glimmer_tui import wiring
from glimmer_tui.cli import run
from glimmer_tui.wiring import bundled_model
from tests.e2e.terminal import Terminal

SEEING = Capabilities("scripted", None, 131072, vision=True, picture_tokens=1196)
BLIND = Capabilities("scripted", None, 131072)
PROJECTOR = "mmproj-Muse-Glimmer-30B-Q4_K_M.gguf"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with two pictures; settings and state are the test's own."""
    monkeypatch.setenv("GLIMMER_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("GLIMMER_STATE_DIR", str(tmp_path / "state"))
    folder = tmp_path / "project"
    folder.mkdir()
    Pillow.new("RGB", (280, 140), "red").save(folder / "shot.png")
    Pillow.new("RGB", (56, 56), "blue").save(folder / "small.png")
    (folder / "broken.png").write_bytes((folder / "shot.png").read_bytes()[:60])
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch):
    """Puts a scripted engine in the place of the model, and text on standard input."""

    def put(model: Capabilities, piped: str = "") -> ScriptedEngine:
        scripted = ScriptedEngine([text_reply("Seen.")], model)
        monkeypatch.setattr(wiring, "_engine", lambda options: scripted)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(piped.encode())))
        return scripted

    return put


def asked(engine: ScriptedEngine) -> tuple[str, list[Image]]:
    """The words and the pictures of what the model was asked."""
    parts = engine.requests[0].messages[-1].parts
    return parts[0].text, [part for part in parts if isinstance(part, Image)]


def test_pictures_of_options_and_of_the_prompt_go_with_it(project: Path, engine, capsys) -> None:
    scripted = engine(SEEING, piped="and @broken.png here")
    assert run(["-p", "Compare with @small.png", "--image", "shot.png"]) == 0
    text, images = asked(scripted)
    assert text == (
        "[image 1: shot.png 280x140]\nCompare with [image 2: small.png 56x56]"
        "\n\n<input>\nand @broken.png here\n</input>"
    )
    assert [(image.width, image.height) for image in images] == [(280, 140), (56, 56)]
    assert capsys.readouterr().out == "Seen.\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-p", "x", "--image", "nowhere.png"], "There is no file nowhere.png."),
        (["-p", "x", "--image", "broken.png"], "broken.png is damaged."),
        (["-p", "see @broken.png"], "broken.png is damaged."),
        (["--image", "shot.png"], "--image goes with -p."),
    ],
)
def test_a_picture_that_cannot_be_used_is_wrong_usage(project, engine, capsys, arguments, words) -> None:
    scripted = engine(SEEING)
    assert run(arguments) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("glimmer: ") and words in err
    assert scripted.requests == []


@pytest.mark.parametrize("arguments", [["-p", "x", "--image", "shot.png"], ["-p", "see @shot.png"]])
def test_a_model_without_a_projector_is_refused_the_picture(project, engine, capsys, arguments) -> None:
    scripted = engine(BLIND)
    assert run([*arguments, "--output", "json"]) == 3
    report = json.loads(capsys.readouterr().out)
    assert report["error"]["kind"] == "model" and PROJECTOR in report["error"]["todo"]
    assert scripted.requests == []


def test_a_model_that_sees_none_is_still_told_the_path_of_a_picture(project: Path, engine) -> None:
    scripted = engine(BLIND)
    prompt = f"Make {project}/shot.png smaller."
    assert run(["-p", prompt]) == 0
    assert asked(scripted) == (prompt, [])


def test_a_picture_is_attached_looked_at_shown_and_expired_on_the_real_screen(project: Path) -> None:
    model = project.parent / "model"
    model.mkdir()
    shutil.copy(bundled_model(), model / "model.gguf")
    write_projector(model / "mmproj.gguf", ProjectorShape(192), seed=1)
    arguments = ["-m", "glimmer_tui", "--model", str(model / "model.gguf"), "--max-steps", "1"]
    terminal = Terminal(arguments, project, rows=90)
    try:
        terminal.wait_for("ready")
        terminal.press("/image shot.png\r")
        terminal.wait_for("shot.png  280x140 · 50 tokens")
        terminal.press("what is it?\r")
        terminal.wait_for("image 1  280x140 · 50 tokens")
        terminal.wait_for("tok/s")
        terminal.press("and @small.png?\r")
        terminal.wait_for("image 1  56x56 · 4 tokens")
        terminal.wait_for("tok/s")
        terminal.press("/expire\r")
        terminal.wait_for("out of the model's view")
        terminal.press("/quit\r")
        assert terminal.wait_end() == 0
    finally:
        terminal.close()
