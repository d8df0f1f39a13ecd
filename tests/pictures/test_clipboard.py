import asyncio
import base64
from pathlib import Path

import pytest
from PIL import Image

from glimmer_tui.pictures import clipboard
from glimmer_tui.pictures.attached import PictureError
from glimmer_tui.pictures.clipboard import read_clipboard
from tests.pictures.conftest import Clipboard, encoded, opened, put_program
from tools.pictures.desktop import desktop_environment, desktops

ELSEWHERE = Path("/nowhere")
RED = (200, 30, 40)
PNG = encoded(Image.new("RGB", (40, 30), RED))


@pytest.fixture(params=["x11", "wayland"])
def board(request: pytest.FixtureRequest) -> Clipboard:
    return request.getfixturevalue(request.param)


async def test_a_picture_comes_out_of_the_clipboard(board: Clipboard) -> None:
    board.copy("image/png", PNG)
    clipping = await read_clipboard(ELSEWHERE)
    assert clipping.program in ("xclip", "wl-paste")
    (picture,) = clipping.content
    assert (picture.width, picture.height) == (40, 30)
    assert opened(picture.image.data).getpixel((5, 5)) == RED
    assert picture.placeholder(2) == "[image 2: pasted picture 40x30]"


async def test_other_formats_and_text_come_as_they_are(board: Clipboard) -> None:
    board.copy("image/jpeg", encoded(Image.new("RGB", (64, 8), RED), "JPEG"))
    (picture,) = (await read_clipboard(ELSEWHERE)).content
    assert (picture.image.width, picture.image.height) == (64, 8)
    board.copy("UTF8_STRING", "grün\n".encode())
    assert (await read_clipboard(ELSEWHERE)).content == "grün\n"


async def test_copied_files_are_the_pictures_in_them(board: Clipboard, tmp_path: Path) -> None:
    path = tmp_path / "a picture.png"
    path.write_bytes(PNG)
    board.copy("text/uri-list", f"# copied\r\n{path.as_uri()}\r\n".encode())
    (picture,) = (await read_clipboard(ELSEWHERE)).content
    assert picture.placeholder(1) == "[image 1: a picture.png 40x30]"


async def test_a_damaged_picture_is_an_error(board: Clipboard) -> None:
    board.copy("image/png", PNG[:50])
    with pytest.raises(PictureError) as caught:
        await read_clipboard(ELSEWHERE)
    assert caught.value.what == "pasted picture is damaged."


async def test_a_kind_that_nobody_reads_is_named(board: Clipboard) -> None:
    board.copy("image/tiff", b"II*\0")
    with pytest.raises(PictureError, match="image/tiff"):
        await read_clipboard(ELSEWHERE)


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"SSH_CONNECTION": "1.2.3.4 5 6.7.8.9 22"}, "over SSH.*scp.*@path"),
        ({}, "no desktop.*@path"),
        ({"DISPLAY": ":0"}, "No program.*xclip"),
        ({"WAYLAND_DISPLAY": "wayland-0"}, "No program.*wl-clipboard"),
        ({"WSL_DISTRO_NAME": "Debian"}, "No program.*WSL"),
    ],
)
async def test_what_is_missing_is_said(
    variables: dict[str, str], words: str, bin_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clipboard, "desktops", lambda environ: desktops(environ, "linux", "6.1-generic"))
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(PictureError, match=words) as caught:
        await read_clipboard(ELSEWHERE)
    assert caught.value.what and caught.value.why and caught.value.todo


async def test_xsel_reads_text_and_says_that_it_sees_no_pictures(
    bin_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISPLAY", ":0")
    put_program(bin_folder, "xsel", "printf hello")
    assert (await read_clipboard(ELSEWHERE)).content == "hello"
    put_program(bin_folder, "xsel", "exit 0")
    with pytest.raises(PictureError, match=r"reads no pictures.*xclip"):
        await read_clipboard(ELSEWHERE)


async def test_a_desktop_that_does_not_answer_is_no_empty_clipboard(
    bin_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISPLAY", ":0")
    put_program(bin_folder, "xclip", 'echo "Error: Can\'t open display: :0" >&2; exit 1')
    with pytest.raises(PictureError, match="does not answer"):
        await read_clipboard(ELSEWHERE)
    put_program(bin_folder, "xclip", "echo 'Error: target TARGETS not available' >&2; exit 1")
    assert (await read_clipboard(ELSEWHERE)).content is None


async def test_a_program_of_the_project_is_never_started(
    bin_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISPLAY", ":0")
    put_program(bin_folder, "xclip", f"touch {bin_folder}/started")
    with pytest.raises(PictureError, match="No program"):
        await read_clipboard(bin_folder.parent)
    assert not (bin_folder / "started").exists()


async def test_a_program_that_hangs_or_floods_is_stopped(
    bin_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(clipboard, "SECONDS", 0.3)
    put_program(bin_folder, "xclip", "sleep 100")
    with pytest.raises(PictureError, match="does not answer"):
        await read_clipboard(ELSEWHERE)
    monkeypatch.setattr(clipboard, "SECONDS", 60)
    put_program(bin_folder, "xclip", "exec cat /dev/zero")
    with pytest.raises(PictureError, match="gave too much"):
        await read_clipboard(ELSEWHERE)


async def test_cancelling_ends_the_program(bin_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(clipboard, "SECONDS", 60)
    put_program(bin_folder, "xclip", f"echo $$ > {bin_folder}/pid; exec sleep 100")
    reading = asyncio.create_task(read_clipboard(ELSEWHERE))
    pid = bin_folder / "pid"
    while not (pid.exists() and pid.read_text().strip()):
        await asyncio.sleep(0.01)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    while Path("/proc", pid.read_text().strip()).exists():
        await asyncio.sleep(0.01)


async def test_macos_with_pngpaste_and_without(bin_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clipboard, "desktops", lambda environ: ("macos",))
    (bin_folder / "p.png").write_bytes(PNG)
    put_program(bin_folder, "osascript", f"printf '«data PNGf%s»\\n' {PNG.hex()}")
    clipping = await read_clipboard(ELSEWHERE)
    assert clipping.program == "osascript"
    assert clipping.content[0].width == 40
    put_program(bin_folder, "pngpaste", f"cat {bin_folder}/p.png")
    clipping = await read_clipboard(ELSEWHERE)
    assert clipping.program == "pngpaste"
    assert clipping.content[0].height == 30
    put_program(bin_folder, "pngpaste", "echo 'no image' >&2; exit 1")
    put_program(bin_folder, "pbpaste", "printf words")
    assert (await read_clipboard(ELSEWHERE)).content == "words"


async def test_windows_clipboard_in_wsl(bin_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WSL_DISTRO_NAME", "Debian")
    put_program(bin_folder, "powershell.exe", f"printf 'image\\r\\n{base64.b64encode(PNG).decode()}\\r\\n'")
    assert (await read_clipboard(ELSEWHERE)).content[0].width == 40
    put_program(bin_folder, "powershell.exe", "printf 'text\\r\\naGVsbG8=\\r\\n'")
    assert (await read_clipboard(ELSEWHERE)).content == "hello"
    put_program(bin_folder, "powershell.exe", "printf 'nothing\\r\\n'")
    assert (await read_clipboard(ELSEWHERE)).content is None
    put_program(bin_folder, "powershell.exe", "printf 'image\\r\\n***\\r\\n'")
    with pytest.raises(PictureError, match="something else"):
        await read_clipboard(ELSEWHERE)


def test_which_desktop_it_is() -> None:
    both = {"DISPLAY": ":0", "WAYLAND_DISPLAY": "wayland-0"}
    ssh = {"SSH_CONNECTION": "a"}
    assert desktops(both, "linux", "6.1") == ("wayland", "x11")
    assert desktops(ssh | {"DISPLAY": "localhost:10"}, "linux", "6.1") == ("x11",)
    assert desktops(ssh, "darwin", "23") == ("ssh",)
    assert desktops({}, "darwin", "23") == ("macos",)
    assert desktops(both, "linux", "5.15-microsoft-standard-WSL2")[0] == "wsl"
    assert desktops({}, "linux", "6.1") == ("none",)


def test_programs_for_the_screen_see_no_secrets() -> None:
    kept = desktop_environment({"DISPLAY": ":0", "XAUTHORITY": "/x", "API_TOKEN": "s", "LD_PRELOAD": "x.so"})
    assert kept["DISPLAY"] == ":0" and kept["XAUTHORITY"] == "/x"
    assert not {"API_TOKEN", "LD_PRELOAD"} & set(kept)
