import os
import socket
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from glimmer_tui.pictures.attached import picture_from_file
from tests.pictures.conftest import encoded, opened
from tools.pictures import decode
from tools.pictures.decode import decode_bytes, decode_file
from tools.pictures.errors import PictureError
from tools.pictures.flatten import NEUTRAL

RED, BLUE = (204, 0, 51), (0, 51, 204)


def two_halves(mode: str = "RGB", size: tuple[int, int] = (40, 20)) -> Image.Image:
    """Red on the left, blue on the right."""
    picture = Image.new("RGB", size, RED)
    picture.paste(BLUE, (size[0] // 2, 0, *size))
    return picture.convert(mode)


def is_near(found: object, wanted: tuple[int, ...], by: int = 12) -> bool:
    return isinstance(found, tuple) and all(abs(a - b) <= by for a, b in zip(found, wanted, strict=True))


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width: int, height: int, rows: bytes, depth: int = 8, colour: int = 0) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    parts = chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(rows, 1)), chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


@pytest.mark.parametrize(
    ("form", "mode", "options"),
    [
        ("PNG", "RGB", {}),
        ("PNG", "P", {}),
        ("PNG", "RGBA", {}),
        ("JPEG", "RGB", {"quality": 95, "subsampling": 0}),
        ("JPEG", "RGB", {"quality": 95, "subsampling": 0, "progressive": True}),
        ("JPEG", "CMYK", {"quality": 95}),
        ("WEBP", "RGB", {"lossless": True}),
        ("WEBP", "RGBA", {"lossless": True}),
        ("WEBP", "RGB", {"quality": 95}),
        ("GIF", "P", {}),
        ("BMP", "RGB", {}),
        ("BMP", "P", {}),
    ],
)
def test_every_format_becomes_an_rgb_png(form: str, mode: str, options: dict, tmp_path: Path) -> None:
    path = tmp_path / "no-picture.txt"
    path.write_bytes(encoded(two_halves(mode), form, **options))
    found = decode_file(path)
    picture = opened(found.picture.data)
    assert (picture.format, picture.mode, picture.size) == ("PNG", "RGB", (40, 20))
    assert (found.width, found.height) == (found.picture.width, found.picture.height) == (40, 20)
    assert is_near(picture.getpixel((5, 10)), RED) and is_near(picture.getpixel((35, 10)), BLUE)


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_camera_held_in_any_way_gives_an_upright_picture(orientation: int, form: str) -> None:
    upright = Image.new("RGB", (32, 16), (255, 255, 255))
    upright.paste(RED, (0, 0, 16, 8))
    back = {5: 5, 6: 8, 7: 7, 8: 6}.get(orientation, orientation)
    stored = upright
    if (turn := decode._UPRIGHT.get(back)) is not None:
        stored = upright.transpose(turn)
    exif = Image.Exif()
    exif[0x0112] = orientation
    options = {"quality": 95, "subsampling": 0} if form == "JPEG" else {}
    found = decode_bytes(encoded(stored, form, exif=exif, **options))
    picture = opened(found.picture.data)
    assert picture.size == (found.width, found.height) == (32, 16)
    assert is_near(picture.getpixel((4, 4)), RED, 40)
    assert all(is_near(picture.getpixel(at), (255, 255, 255), 40) for at in ((28, 4), (4, 13), (28, 13)))


def test_nothing_but_the_pixels_is_kept() -> None:
    exif = Image.Exif()
    exif[0x010E] = "taken at home"
    data = decode_bytes(encoded(two_halves(), "JPEG", exif=exif, comment=b"at home")).picture.data
    assert b"home" not in data and b"eXIf" not in data


@pytest.mark.parametrize(("form", "mode"), [("PNG", "RGBA"), ("PNG", "LA"), ("WEBP", "RGBA")])
def test_what_is_transparent_shows_grey(form: str, mode: str) -> None:
    picture = Image.new("RGBA", (10, 10), (255, 255, 255, 0)).convert(mode)
    found = opened(
        decode_bytes(encoded(picture, form, **({"lossless": True} if form == "WEBP" else {}))).picture.data
    )
    assert found.getpixel((3, 3)) == NEUTRAL


def test_transparent_colours_of_a_palette_show_grey() -> None:
    picture = two_halves("P")
    data = encoded(picture, "PNG", transparency=picture.getpixel((0, 0)))
    found = opened(decode_bytes(data).picture.data)
    assert found.getpixel((2, 2)) == NEUTRAL and is_near(found.getpixel((35, 2)), BLUE)


def test_sixteen_bits_are_scaled_and_not_cut_off() -> None:
    picture = Image.new("I;16", (4, 4), 0x8000)
    assert opened(decode_bytes(encoded(picture)).picture.data).getpixel((1, 1)) == (128, 128, 128)


@pytest.mark.parametrize("form", ["GIF", "WEBP", "PNG"])
def test_of_an_animation_the_first_frame_is_seen(form: str) -> None:
    frames = [Image.new("RGB", (20, 10), colour) for colour in (RED, BLUE)]
    data = encoded(frames[0], form, save_all=True, append_images=frames[1:], duration=100)
    assert is_near(opened(decode_bytes(data).picture.data).getpixel((5, 5)), RED)


@pytest.mark.parametrize(
    ("form", "size", "wanted"),
    [
        ("JPEG", (4500, 8000), (1440, 2560)),
        ("PNG", (9000, 40), (7168, 32)),
        ("PNG", (40, 9000), (32, 7168)),
        ("PNG", (30_000, 2), (7168, 1)),
        ("PNG", (2, 1), (2, 1)),
        ("GIF", (3000, 1300), (2917, 1264)),
    ],
)
def test_what_nobody_can_see_is_scaled_away(
    form: str, size: tuple[int, int], wanted: tuple[int, int]
) -> None:
    found = decode_bytes(encoded(two_halves("RGB", size), form))
    assert (found.picture.width, found.picture.height) == wanted
    assert (found.width, found.height) == size
    picture = opened(found.picture.data)
    assert is_near(picture.getpixel((0, 0)), RED, 20)
    assert is_near(picture.getpixel((wanted[0] - 1, wanted[1] - 1)), BLUE, 20)


def refusal(data: bytes) -> PictureError:
    with pytest.raises(PictureError) as caught:
        decode_bytes(data, "shot.png")
    assert caught.value.what and caught.value.why and caught.value.todo
    return caught.value


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "shot.png is empty"),
        (b"hello\n" * 100, "not a picture. Its content is text"),
        ("grüße\n".encode() * 900, "Its content is text"),
        (b"<?xml version='1.0'?><svg xmlns='x'/>", "an SVG drawing"),
        (b"%PDF-1.7\n", "a PDF document"),
        (b"\0\0\0\x18ftypheic\0\0\0\0", "a HEIC picture"),
        (b"\0\1\2\3" * 20, "data of another kind"),
        (b"\x89PNG\r\n\x1a\n", "damaged"),
        (b"\xff\xd8\xff", "damaged"),
        (b"\xff\xd8\xff\xe0\0\0" * 50, "damaged"),
        (b"GIF89a\1\0\1\0\0\0\0", "damaged"),
        (b"GIF89a\1\0\1\0\0\0\0" + b"!\xf9\1\0" * 9000, "damaged"),
        (b"RIFF\0\0\0\0WEBPVP8X\n\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff", "too large. It declares"),
        (b"BM" + bytes(12) + struct.pack("<Iii", 40, -5, 5) + bytes(30), "declares a size of -5x5"),
        (b"BM" + bytes(12) + struct.pack("<Iii", 40, 1 << 30, -(1 << 31)) + bytes(30), "too large"),
        (png(50_000, 50_000, b"\0" * 1000), "too large. It declares 50000x50000"),
        (png(0, 5, b""), "declares a size of 0x5"),
        (png(1000, 1000, b"\0" * 1000), "damaged"),
    ],
)
def test_what_is_no_picture_is_refused_in_three_parts(data: bytes, words: str) -> None:
    assert words in str(refusal(data))


def test_headers_that_lie_are_refused() -> None:
    data = encoded(two_halves(), "JPEG")
    at = data.index(b"\xff\xc0") + 5
    assert "too large" in str(refusal(data[:at] + b"\xff\xff\xff\xff" + data[at + 4 :]))
    two_headers = png(4, 4, b"\0" * 20)
    extra = chunk(b"IHDR", struct.pack(">IIBBBBB", 9_000, 9_000, 8, 0, 0, 0, 0))
    assert "damaged" in str(refusal(two_headers[:33] + extra + two_headers[33:]))
    gif = bytearray(encoded(two_halves("P"), "GIF"))
    frame = gif.index(b",\0\0\0\0")
    gif[frame + 5 : frame + 9] = b"\xff\xff\xff\xff"
    assert "too large" in str(refusal(bytes(gif)))


def test_a_jpeg_of_countless_passes_is_refused() -> None:
    data = encoded(two_halves(), "JPEG", progressive=True)
    at = data.index(b"\xff\xda")
    scan = data[at : data.index(b"\xff", at + 2)]
    assert "passes" in str(refusal(data[:at] + scan * 500 + data[at:]))


SOURCES = [
    encoded(two_halves(), "PNG"),
    encoded(two_halves("P"), "PNG"),
    encoded(two_halves(), "JPEG"),
    encoded(two_halves(), "JPEG", progressive=True),
    encoded(two_halves(), "WEBP"),
    encoded(two_halves("RGBA"), "WEBP", lossless=True),
    encoded(two_halves("P"), "GIF"),
    encoded(two_halves(), "BMP"),
]


@settings(deadline=None, max_examples=150)
@given(st.sampled_from(SOURCES), st.data())
def test_a_file_cut_short_is_an_error_or_a_whole_picture(source: bytes, data: st.DataObject) -> None:
    cut = source[: data.draw(st.integers(0, len(source) - 1))]
    try:
        found = decode_bytes(cut)
    except PictureError as fault:
        assert fault.what and fault.why and fault.todo
    else:
        # Only trailers were lost.
        assert opened(found.picture.data).size == (40, 20)


@settings(deadline=None, max_examples=150)
@given(st.sampled_from(SOURCES), st.lists(st.tuples(st.integers(0, 400), st.binary(max_size=5)), max_size=4))
def test_any_change_ends_in_a_picture_or_in_an_error(source: bytes, changes: list[tuple[int, bytes]]) -> None:
    data = bytearray(source)
    for place, written in changes:
        place = place % len(data)
        data[place : place + len(written)] = written
    try:
        found = decode_bytes(bytes(data))
    except PictureError as fault:
        assert fault.what and fault.why and fault.todo
    else:
        picture = opened(found.picture.data)
        assert picture.mode == "RGB" and picture.size == (found.picture.width, found.picture.height)


def test_paths_that_are_no_ordinary_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "s.png"))
        (tmp_path / "folder.png").mkdir()
        (tmp_path / "loop.png").symlink_to(tmp_path / "loop.png")
        (tmp_path / "gone.png").symlink_to(tmp_path / "nothing")
        words = {
            tmp_path / "pipe.png": "not an ordinary file",
            tmp_path / "s.png": "not an ordinary file",
            Path("/dev/zero"): "not an ordinary file",
            tmp_path / "folder.png": "is a folder",
            tmp_path / "loop.png": "cannot be read",
            tmp_path / "gone.png": "There is no file",
            tmp_path / ("x" * 300): "cannot be read",
            Path("a\0b.png"): "cannot be read",
        }
        for path, expected in words.items():
            with pytest.raises(PictureError, match=expected) as caught:
                picture_from_file(path)
            assert caught.value.todo


def test_an_unreadable_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "shot.png"
    path.write_bytes(SOURCES[0])

    def refused(*_: object, **__: object) -> int:
        raise PermissionError(13, "Permission denied")

    # Root may read everything, so the system's answer is played.
    monkeypatch.setattr(os, "open", refused)
    with pytest.raises(PictureError, match="no right to read"):
        decode_file(path)


def test_a_file_of_five_gigabytes_is_refused_by_its_size(tmp_path: Path) -> None:
    path = tmp_path / "huge.png"
    path.write_bytes(SOURCES[0])
    os.truncate(path, 5 << 30)
    with pytest.raises(PictureError, match=r"too large. It has 5\.4 GB; 268\.4 MB"):
        decode_file(path)


_CHILD = """
import resource, sys
from pathlib import Path
from PIL import Image
from tools.pictures.decode import decode_file
from tools.pictures.errors import PictureError
Image.init()
held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() if sys.argv[3] else 0
resource.setrlimit(resource.RLIMIT_AS, (held + int(sys.argv[2]),) * 2)
try:
    found = decode_file(Path(sys.argv[1]))
    print(found.picture.width, found.picture.height)
except PictureError as fault:
    print(fault)
"""


def in_little_memory(path: Path, most: int) -> str:
    """What a process says that may take `most` bytes more than it begins with."""
    command = (sys.executable, "-c", _CHILD, str(path), str(most), "x" if Path("/proc").is_dir() else "")
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, cwd=Path(__file__).parents[2]
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_hundred_megapixels_fit_into_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "large.png"
    path.write_bytes(png(10_000, 10_000, b"\0" * (1251 * 10_000), depth=1))
    assert path.stat().st_size < 200_000
    assert in_little_memory(path, 200 << 20) == "1920 1920"
    assert in_little_memory(path, 30 << 20) == (
        "large.png does not fit into memory. It has 10000x10000 pixels. "
        "Make it smaller, or close other programs."
    )


@pytest.mark.parametrize(("form", "bytes_a_pixel"), [("JPEG", 2), ("WEBP", 18), ("BMP", 5), ("GIF", 2)])
def test_memory_grows_with_the_pixels_and_no_faster(form: str, bytes_a_pixel: int, tmp_path: Path) -> None:
    path = tmp_path / "large"
    Image.new("L", (2000, 2000), 77).save(path, form)
    assert in_little_memory(path, 4_000_000 * bytes_a_pixel + (80 << 20)) == "1920 1920"
    assert decode.MOST_PIXELS * 18 + (80 << 20) < decode.MOST_MEMORY
