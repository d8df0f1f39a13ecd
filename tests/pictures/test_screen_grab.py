import threading
from pathlib import Path

import pytest
from PIL import Image

from tests.pictures.conftest import encoded, opened, put_program
from tools.pictures import screen_grab
from tools.pictures.errors import PictureError
from tools.pictures.screen_grab import grab_desktop

ELSEWHERE = Path("/nowhere")
SCREEN = encoded(Image.new("RGB", (320, 200), (1, 2, 3)))


@pytest.fixture
def screen_file(bin_folder: Path) -> Path:
    path = bin_folder / "screen.bin"
    path.write_bytes(SCREEN)
    return path


def test_a_real_x_screen_or_a_played_one(
    x_server: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setenv("DISPLAY", x_server or ":9")
    if not x_server or not any(
        screen_grab.find_outside(name, ELSEWHERE) for name in ("scrot", "import", "maim")
    ):
        file = request.getfixturevalue("screen_file")
        put_program(file.parent, "import", f"cat {file}")
    grab = grab_desktop(ELSEWHERE)
    assert (grab.decoded.width, grab.decoded.height) == (320, 200)
    assert grab.program in ("maim", "scrot", "import")


def test_a_real_wayland_screen_or_a_played_one(
    compositor: dict[str, str], monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    for name, value in (compositor or {"WAYLAND_DISPLAY": "wayland-9"}).items():
        monkeypatch.setenv(name, value)
    if not compositor or screen_grab.find_outside("grim", ELSEWHERE) is None:
        file = request.getfixturevalue("screen_file")
        put_program(file.parent, "grim", f"cat {file}")
    grab = grab_desktop(ELSEWHERE)
    assert (grab.decoded.width, grab.decoded.height, grab.program) == (320, 200, "grim")
    assert opened(grab.decoded.picture.data).size == (320, 200)


def test_the_next_program_is_tried_when_one_fails(screen_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-9")
    put_program(screen_file.parent, "grim", "echo no screencopy >&2; exit 1")
    put_program(screen_file.parent, "gnome-screenshot", f'cp {screen_file} "$2"')
    assert grab_desktop(ELSEWHERE).program == "gnome-screenshot"
    put_program(screen_file.parent, "gnome-screenshot", "exit 0")
    with pytest.raises(PictureError, match=r"no screencopy.*There is no file.*Install grim"):
        grab_desktop(ELSEWHERE)


def test_macos(screen_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screen_grab, "desktops", lambda environ: ("macos",))
    put_program(screen_file.parent, "screencapture", f'cp {screen_file} "$4"')
    assert grab_desktop(ELSEWHERE).decoded.width == 320


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"SSH_CONNECTION": "x"}, r"over SSH.*scp"),
        ({"WSL_DISTRO_NAME": "Debian"}, r"belongs to Windows.*Win\+Shift\+S"),
        ({"DISPLAY": ":9"}, r"No program.*Install scrot"),
    ],
)
def test_where_there_is_no_way_words_say_what_to_do(
    variables: dict[str, str], words: str, bin_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(PictureError, match=words) as caught:
        grab_desktop(ELSEWHERE)
    assert caught.value.todo


def test_cancelling_stops_it(screen_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-9")
    put_program(screen_file.parent, "grim", "exec sleep 100")
    put_program(screen_file.parent, "gnome-screenshot", f'cp {screen_file} "$2"')
    cancelled = threading.Event()
    cancelled.set()
    with pytest.raises(PictureError, match="cancelled"):
        grab_desktop(ELSEWHERE, cancelled)
