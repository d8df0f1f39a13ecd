from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from glimmer_tui.pictures.attached import PictureError
from glimmer_tui.pictures.mentions import MOST, find_pictures, picture_at
from tests.pictures.conftest import encoded

SHOT = encoded(Image.new("RGB", (1280, 720), (9, 9, 9)))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    (folder / "shot.png").write_bytes(SHOT)
    (folder / "a b.png").write_bytes(SHOT)
    (folder / "it's.png").write_bytes(SHOT)
    (folder / "noname").write_bytes(SHOT)
    (folder / "main.py").write_text("print()")
    (folder / ".env").write_text("KEY=1")
    (tmp_path / "outside.png").write_bytes(SHOT)
    return folder


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("@shot.png", "[image 1: shot.png 1280x720]"),
        ("see @shot.png, please", "see [image 1: shot.png 1280x720], please"),
        ("(@shot.png)", "([image 1: shot.png 1280x720])"),
        ("why @shot.png?", "why [image 1: shot.png 1280x720]?"),
        ('@"a b.png" x', "[image 1: a b.png 1280x720] x"),
        ("@'a b.png'", "[image 1: a b.png 1280x720]"),
        (r"@a\ b.png!", "[image 1: a b.png 1280x720]!"),
        ("@../outside.png", "[image 1: outside.png 1280x720]"),
        ("@noname", "[image 1: noname 1280x720]"),
        ("{root}/shot.png is wrong", "[image 1: shot.png 1280x720] is wrong"),
        ("{root}/a b.png", "[image 1: a b.png 1280x720]"),
        ("'{root}/a b.png' ", "[image 1: a b.png 1280x720] "),
        ('look: "{root}/a b.png"', "look: [image 1: a b.png 1280x720]"),
        (r"'{root}/it'\''s.png'", "[image 1: it's.png 1280x720]"),
        (r"x {root}/a\ b.png y", "x [image 1: a b.png 1280x720] y"),
        ("file://{root}/a%20b.png", "[image 1: a b.png 1280x720]"),
        ("'file://{root}/a%20b.png'", "[image 1: a b.png 1280x720]"),
        ("file://localhost{root}/shot.png.", "[image 1: shot.png 1280x720]."),
    ],
)
def test_a_named_picture_becomes_a_placeholder(typed: str, told: str, root: Path) -> None:
    said = find_pictures(typed.replace("{root}", str(root)), root)
    assert said.text == told
    (picture,) = said.pictures
    assert (picture.image.width, picture.image.height) == (1280, 720)


@pytest.mark.parametrize(
    "typed",
    [
        "",
        "write to me@shot.png",
        "@pytest.fixture",
        "@nothing.png",
        "/nothing/there.png",
        "@main.py",
        "@src.py @ @@ @@shot.png@",
        'it prints "shot.png"',
        "shot.png",
        'import logo from "./shot.png"',
        "cp ./shot.png ../outside.png",
        "file:///nothing.png",
        "file://%00.png @a\0b.png",
        "add .env and src/ to it",
        "https://example.org/shot.png",
        "~nobody-of-that-name/shot.png",
        "@" + "x" * 5000,
    ],
)
def test_what_names_no_picture_stays_as_it_is(typed: str, root: Path) -> None:
    assert find_pictures(typed, root) == (found := find_pictures(typed, root))
    assert (found.text, found.pictures) == (typed, ())


def test_several_pictures_are_numbered_and_the_same_one_is_sent_once(root: Path) -> None:
    (root / "link.png").symlink_to(root / "shot.png")
    said = find_pictures('@shot.png and @"a b.png"\nagain @./shot.png, @link.png', root, first=3)
    assert said.text == (
        "[image 3: shot.png 1280x720] and [image 4: a b.png 1280x720]\n"
        "again [image 3: shot.png 1280x720], [image 3: shot.png 1280x720]"
    )
    assert [picture.name for picture in said.pictures] == ["shot.png", "a b.png"]


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("@src", "src is a folder"),
        ("@.", "is a folder"),
        ("@.env", ".env is not sent. It is no picture"),
        ("@text.png", "text.png is not a picture. Its content is text"),
        ("{root}/text.png", "text.png is not a picture"),
        ("@id_rsa.png", "id_rsa.png is not a picture"),
        ("@cut.png", "cut.png is damaged"),
        ("@folder.png", "folder.png is a folder"),
        ("@secrets.json", "secrets.json is not sent"),
    ],
)
def test_what_cannot_be_sent_is_an_error_and_never_text(typed: str, words: str, root: Path) -> None:
    (root / "text.png").write_text("hello")
    (root / "id_rsa.png").write_text("-----BEGIN")
    (root / "cut.png").write_bytes(SHOT[:100])
    (root / "folder.png").mkdir()
    (root / "secrets.json").write_text("{}")
    with pytest.raises(PictureError) as caught:
        find_pictures(typed.replace("{root}", str(root)), root)
    assert words in str(caught.value)
    assert caught.value.why and caught.value.todo


def test_a_message_holds_so_many_pictures_and_no_more(root: Path) -> None:
    small = encoded(Image.new("RGB", (2, 2)))
    for number in range(MOST + 1):
        (root / f"{number}.png").write_bytes(small)
    names = [f"@{number}.png" for number in range(MOST + 1)]
    assert len(find_pictures(" ".join(names[:-1]), root).pictures) == MOST
    with pytest.raises(PictureError, match=f"{MOST} pictures"):
        find_pictures(" ".join(names), root)


def test_a_name_cannot_break_out_of_its_placeholder(root: Path) -> None:
    path = root / "a] b\n[image 9.png"
    path.write_bytes(SHOT)
    placeholder = picture_at(str(path), root).placeholder(1)
    assert placeholder.count("]") == 1 and "\n" not in placeholder


@pytest.mark.parametrize(
    "typed", ["shot.png", "@shot.png", '"a b.png"', "a b.png", r"a\ b.png", "../outside.png"]
)
def test_a_command_takes_a_path_as_it_is_typed(typed: str, root: Path) -> None:
    assert picture_at(typed, root).width == 1280


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("", "No picture is named"),
        ("nothing.png", "no file"),
        ("main.py", "not a picture"),
        ("src", "folder"),
    ],
)
def test_a_command_refuses_the_rest(typed: str, words: str, root: Path) -> None:
    with pytest.raises(PictureError, match=words):
        picture_at(typed, root)


@given(st.text(alphabet="@\"'\\ ./~file:png\nax%0", max_size=60))
def test_any_text_without_files_stays_as_it_is(text: str) -> None:
    try:
        assert find_pictures(text, Path("/nowhere/at/all")).text == text
    except PictureError as fault:
        # The one thing that is there: `@/` and `@~`, in many spellings.
        assert "is a folder" in fault.what
