"""The system's viewer, with a small program in the place of xdg-open."""

from pathlib import Path

import pytest

from glimmer_tui.pictures.viewer import Viewer
from tests.pictures.conftest import put_program

PNG = b"\x89PNG and more"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DISPLAY", ":99")
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def test_the_picture_is_handed_over_as_a_private_file_that_goes_away(root, bin_folder, tmp_path) -> None:
    put_program(bin_folder, "xdg-open", f'cp "$1" "{tmp_path}/seen"; echo "$1" > "{tmp_path}/name"')
    viewer = Viewer(root)
    assert viewer.show(PNG) == ""
    path = Path((tmp_path / "name").read_text().strip())
    assert (tmp_path / "seen").read_bytes() == PNG
    assert path.suffix == ".png" and path.stat().st_mode & 0o777 == 0o600
    viewer.close()
    assert not path.exists() and not path.parent.exists()


@pytest.mark.parametrize("script", ["exit 3", None])
def test_where_nothing_opens_it_the_file_is_named(root, bin_folder, script) -> None:
    if script is not None:
        put_program(bin_folder, "xdg-open", script)
    viewer = Viewer(root)
    told = viewer.show(b"\xff\xd8 a photograph")
    path = Path(
        told.removeprefix("No viewer could be opened. It lies in ").removesuffix(" until you leave Glimmer.")
    )
    assert path.suffix == ".jpg" and path.is_file()
    viewer.close()


def test_a_viewer_of_the_projects_own_is_passed_over(root, tmp_path, monkeypatch) -> None:
    put_program(root, "xdg-open", f'touch "{tmp_path}/started"')
    monkeypatch.setenv("PATH", str(root))
    viewer = Viewer(root)
    assert viewer.show(PNG).startswith("No viewer could be opened.")
    assert not (tmp_path / "started").exists()
    viewer.close()
