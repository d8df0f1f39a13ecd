"""Settings files: what is read, and how a wrong one is told."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glimmer_tui.config import Config, ConfigError, line_of, load_config, load_project_config
from glimmer_tui.options import Flags, resolve
from glimmer_tui.trust import Trust


def test_no_file_gives_the_defaults(tmp_path: Path) -> None:
    assert load_config(tmp_path / "config.toml") == Config()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("theme = 3", "line 1: theme = 3: "),
        ("\n\n[agent]\nmaxsteps = 3", "line 4: agent.maxsteps is not a setting there."),
        ("[agent]\nmode = 'ask'\nmax_steps = 0", "line 3: agent.max_steps = 0: "),
        ("model.path = 1", "line 1: model.path = 1: "),
        ("[modle]\npath = 'x'", "line 1: modle is not a setting there."),
        ("theme = ", "is not valid TOML: "),
        ("trusted_projects = 'x'", "line 1: trusted_projects = 'x': "),
        ("trusted_projects = ['~nobody-at-all/x']", "the home folder it names is not known."),
        ("[model]\npath = '~nobody-at-all/x.gguf'", "line 2: model.path = '~nobody-at-all/x.gguf': the home"),
        ('[model]\npath = "a\\u0000b"', "a path cannot hold a NUL character."),
        (f"theme = {'[' * 5000}", "is not valid TOML: "),
    ],
)
def test_a_wrong_file_names_file_line_and_key(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "config.toml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert str(path) in str(caught.value)
    assert words in str(caught.value)


def test_every_wrong_key_is_named_at_once(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("theme = 1\n[agent]\nmode = 2\n")
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert len(str(caught.value).splitlines()) == 2


@given(st.binary(max_size=200))
def test_any_bytes_are_settings_or_an_error_in_words(data: bytes) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config.toml"
        path.write_bytes(data)
        try:
            assert isinstance(load_config(path), Config)
        except ConfigError as problem:
            assert str(path) in str(problem)


@pytest.mark.parametrize(
    "key", ["trusted_projects = ['/']", "[agent]\nmode = 'auto'", "[model]\npath = 'x.gguf'"]
)
def test_a_project_cannot_set_trust_mode_or_model(tmp_path: Path, key: str) -> None:
    path = tmp_path / "config.toml"
    path.write_text(key)
    with pytest.raises(ConfigError, match="is not a setting there"):
        load_project_config(path)


def test_the_line_of_a_key() -> None:
    text = "a = 1\n[t]\nb = 2\n\n[t.u]\nc.d = 3\n"
    assert line_of(text, ["a"]) == 1
    assert line_of(text, ["t", "b"]) == 3
    assert line_of(text, ["t", "u", "c", "d"]) == 6
    assert line_of(text, ["t", "x"]) == 2
    assert line_of(text, ["z"]) is None


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    config, project = tmp_path / "config", tmp_path / "project"
    config.mkdir()
    (project / ".glimmer").mkdir(parents=True)
    monkeypatch.setenv("GLIMMER_CONFIG_DIR", str(config))
    monkeypatch.setenv("GLIMMER_STATE_DIR", str(tmp_path / "state"))
    return config, project


def test_the_command_line_wins_over_the_project_over_the_person(folders: tuple[Path, Path]) -> None:
    config, project = folders
    (config / "config.toml").write_text(
        f'trusted_projects = ["{project}"]\n'
        '[agent]\nmode = "auto"\nreasoning = "low"\nmax_steps = 1\nmax_tokens = 2\n'
    )
    (project / ".glimmer" / "config.toml").write_text('[agent]\nreasoning = "medium"\nmax_steps = 3\n')

    options = resolve(project, Flags(max_steps=4))
    assert (options.session.max_tokens, options.session.strength, options.session.max_steps) == (
        2,
        "medium",
        4,
    )
    assert options.mode == "auto"
    assert resolve(project, Flags(mode="ask", reasoning="high")).mode == "ask"


def test_a_listed_path_that_leads_in_circles_trusts_nothing(tmp_path: Path) -> None:
    project, circle = tmp_path / "project", tmp_path / "circle"
    project.mkdir()
    circle.symlink_to(circle)
    trust = Trust(tmp_path / "state", [str(circle), str(project)])
    assert project in trust and tmp_path not in trust


def test_trust_goes_with_the_real_folder(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    trust = Trust(tmp_path / "state")
    assert real not in trust
    trust.add(link)
    assert real in trust
    assert real / "inner" not in trust
    assert link in Trust(tmp_path / "state")


@pytest.mark.parametrize("damage", [b"", b"{}", b"[1, null]", b"\xff", b'"/"'])
def test_a_damaged_list_of_trust_trusts_nothing(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "trusted.json").write_bytes(damage)
    assert Path("/") not in Trust(tmp_path)
