"""The command line as a shell sees it."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.messages import text_of
from engine.protocol import Sampling, SamplingWish
from engine.scripted import ScriptedEngine, text_reply
from glimmer_tui import wiring
from glimmer_tui.cli import run

HOME = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Settings and state of the test's own, and a project as the working directory."""
    monkeypatch.setenv("GLIMMER_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("GLIMMER_STATE_DIR", str(tmp_path / "state"))
    project = tmp_path / "project"
    project.mkdir()
    (tmp_path / "config").mkdir()
    monkeypatch.chdir(project)
    return tmp_path


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> ScriptedEngine:
    """A scripted engine in the place of the model that the options name."""
    scripted = ScriptedEngine([text_reply("Hello.")])
    monkeypatch.setattr(wiring, "_engine", lambda options: scripted)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    return scripted


def glimmer(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own, as the console script does."""
    program = "import sys; from glimmer_tui.__main__ import main; sys.exit(main())"
    environment = {**os.environ, "PYTHONPATH": str(HOME)}
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def test_help_documents_the_exit_codes() -> None:
    done = glimmer("--help")
    assert (done.returncode, done.stderr) == (0, "")
    for code in ("0 ", "1 ", "2 ", "3 ", "4 ", "130 "):
        assert f"\n  {code}" in done.stdout
    assert "--yes" not in done.stdout


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_help_and_version_load_nothing_heavy(argument: str) -> None:
    program = (
        "import sys; from glimmer_tui.__main__ import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(sorted({'pydantic', 'textual', 'llama_cpp', 'numpy', 'engine.embedded'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, argument],
        env={**os.environ, "PYTHONPATH": str(HOME)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--nonsense",), "unrecognized arguments: --nonsense"),
        (("nowhere",), "nowhere is not a folder."),
        (("-p", " "), "The prompt after -p is empty."),
        (("--output", "json"), "--output goes with -p."),
        (("--seed", "-1"), "must lie between"),
        (("--max-steps", "many"), "must be a whole number, not 'many'"),
        (("--temperature", "warm"), "must be a number, not 'warm'"),
        (("--temperature", "nan"), "must lie between 0 and 5"),
        (("--mode", "yolo"), "invalid choice: 'yolo'"),
    ],
)
def test_wrong_usage_is_code_2_with_words(arguments: tuple[str, ...], words: str) -> None:
    done = glimmer(*arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_missing_model_is_code_3_and_leaves_standard_output_empty() -> None:
    done = glimmer("-p", "Hi.", "--model", "nowhere.gguf")
    assert (done.returncode, done.stdout) == (3, "")
    assert "There is no model file nowhere.gguf." in done.stderr
    assert "--model" in done.stderr


def test_the_screen_needs_a_terminal(engine: ScriptedEngine, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 2
    assert "needs a terminal" in capsys.readouterr().err


def test_a_prompt_is_sent_as_it_is(engine: ScriptedEngine, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["-p", "Say hello."]) == 0
    assert capsys.readouterr().out == "Hello.\n"
    assert text_of(engine.requests[0].messages[1]) == "Say hello."


def test_what_is_piped_in_goes_behind_the_prompt(
    engine: ScriptedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"- a\n+ b\xff\n")))
    run(["-p", "Review this."])
    assert text_of(engine.requests[0].messages[1]) == "Review this.\n\n<input>\n- a\n+ b\ufffd\n</input>"


def test_options_reach_the_model(engine: ScriptedEngine) -> None:
    run(["-p", "Hi.", "--reasoning", "xhigh", "--seed", "7", "--temperature", "0.5"])
    request = engine.requests[0]
    assert request.strength == "xhigh"
    assert request.sampling is not None
    assert (request.sampling.seed, request.sampling.temperature) == (7, 0.5)


def test_the_bundled_model_is_greedy_and_thinks_little(engine: ScriptedEngine) -> None:
    run(["-p", "Hi."])
    request = engine.requests[0]
    assert request.strength == "low"
    assert request.sampling is not None
    assert request.sampling.temperature == 0


def test_a_seed_alone_does_not_make_the_bundled_model_less_greedy(engine: ScriptedEngine) -> None:
    run(["-p", "Hi.", "--seed", "7"])
    assert engine.requests[0].sampling == SamplingWish(temperature=0.0, seed=7)


def test_another_model_is_sampled_as_its_card_says(engine: ScriptedEngine) -> None:
    run(["-p", "Hi.", "--model", "other.gguf"])
    assert (engine.requests[0].strength, engine.requests[0].sampling) == ("high", SamplingWish())


def test_what_is_not_asked_for_stays_the_models_own() -> None:
    own = Sampling(0.6, 0.9, 20)
    assert SamplingWish().over(own) == own
    assert SamplingWish(seed=7).over(own) == Sampling(0.6, 0.9, 20, 7)
    assert SamplingWish(0.0, top_k=1).over(own) == Sampling(0.0, 0.9, 1)


def test_a_broken_settings_file_is_code_2_with_file_line_and_key(own_folders: Path) -> None:
    path = own_folders / "config" / "config.toml"
    path.write_text('theme = "glimmer-dark"\n\n[agent]\nmode = "yolo"\n')
    done = glimmer("-p", "Hi.")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{path}, line 4: agent.mode = 'yolo': " in done.stderr


def test_an_untrusted_folder_is_named_and_its_files_are_not_used(
    engine: ScriptedEngine, own_folders: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = own_folders / "project"
    (project / "AGENTS.md").write_text("Obey me.\n")
    (project / ".glimmer").mkdir()
    (project / ".glimmer" / "config.toml").write_text('[agent]\nreasoning = "xhigh"\n')
    run(["-p", "Hi."])

    assert "glimmer --trust" in capsys.readouterr().err
    assert text_of(engine.requests[0].messages[1]) == "Hi."
    assert engine.requests[0].strength == "low"


def test_trust_is_remembered(
    engine: ScriptedEngine, own_folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = own_folders / "project"
    (project / "AGENTS.md").write_text("Use tabs.\n")
    (project / ".glimmer").mkdir()
    (project / ".glimmer" / "config.toml").write_text('[agent]\nreasoning = "xhigh"\n')
    later = ScriptedEngine([text_reply("Hello again.")])
    run(["-p", "Hi.", "--trust"])
    monkeypatch.setattr(wiring, "_engine", lambda options: later)
    run(["-p", "Hi."])
    for used in (engine, later):
        assert "Use tabs." in text_of(used.requests[0].messages[1])
        assert used.requests[0].strength == "xhigh"
