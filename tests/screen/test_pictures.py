"""Pictures on the screen: attached, sent, shown, expired, and refused in words."""

from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image as Pillow
from textual import events as keys

from engine.messages import Image
from engine.protocol import Capabilities, Timings, Usage
from engine.vision.grid import grid_of
from glimmer_tui.agent import events
from glimmer_tui.agent.events import ModelLoaded
from glimmer_tui.agent.sight import Expired
from glimmer_tui.pictures import clipboard
from glimmer_tui.pictures.attached import PictureError, picture_from_bytes
from glimmer_tui.pictures.clipboard import Clipping
from glimmer_tui.widgets.picture_block import PictureBlock, Preview
from tools.base import Display, Picture

SEEING = (ModelLoaded(Capabilities("muse-glimmer", None, 8192, vision=True, picture_tokens=1196)),)
PROJECTOR = "mmproj-Muse-Glimmer-30B-Q4_K_M.gguf"
SIZE = (100, 40)


def png(width: int = 280, height: int = 140, colour: str = "red") -> bytes:
    buffer = BytesIO()
    Pillow.new("RGB", (width, height), colour).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project's folder, with pictures in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shot.png").write_bytes(png())
    (tmp_path / "my other.png").write_bytes(png(1280, 720, "blue"))
    (tmp_path / "notes.txt").write_text("no picture")
    return tmp_path


def write(on, text: str) -> None:
    on.screen.composer.load_text(text)
    on.screen.composer.move_cursor(on.screen.composer.document.end)


async def send(on, text: str) -> None:
    write(on, text)
    on.screen.composer.send()
    await on.pilot.pause()


def sent(on) -> list[tuple[object, ...]]:
    return [call[1:] for call in on.session.calls if call[0] == "submit"]


def chips(on) -> list[str]:
    return [picture.name for picture in on.screen.attaching.row.pictures]


def squashed(text: str) -> str:
    return "".join(text.split())


async def test_a_file_is_attached_with_its_size_and_cost_and_sent(stage) -> None:
    async with stage(opening=SEEING, size=SIZE) as on:
        await send(on, "/image shot.png")
        await on.until(lambda: chips(on) == ["shot.png"])
        tokens = grid_of(280, 140, 1196).tokens
        await on.until(lambda: f"shot.png  280x140 · {tokens} tokens   Backspace takes it away" in on.text())
        await send(on, "What is it?")
        await on.until(lambda: sent(on))
        ((text, image),) = sent(on)
        assert text == "[image 1: shot.png 280x140]\nWhat is it?"
        assert isinstance(image, Image) and (image.width, image.height) == (280, 140)
        assert chips(on) == [] and "Backspace" not in on.text()


async def test_a_picture_needs_no_words(stage) -> None:
    async with stage(opening=SEEING) as on:
        await send(on, "/image 'my other.png'")
        await on.until(lambda: chips(on))
        await on.pilot.press("enter")
        await on.until(lambda: sent(on))
        assert sent(on)[0][0] == "[image 1: my other.png 1280x720]"


async def test_before_the_model_is_loaded_the_cost_is_a_guess(stage) -> None:
    async with stage(opening=(), size=SIZE) as on:
        await send(on, "/image shot.png")
        await on.until(lambda: "~50 tokens" in on.text())
        await on.play(*SEEING)
        assert " 50 tokens" in on.text() and "~" not in on.text()


async def test_a_model_that_turns_out_to_see_none_takes_the_pictures_away_in_words(stage) -> None:
    async with stage(opening=(), size=SIZE) as on:
        await send(on, "/image shot.png")
        await on.until(lambda: chips(on))
        await on.play(ModelLoaded(Capabilities("muse-glimmer", None, 8192)))
        await on.until(lambda: PROJECTOR in on.text())
        assert chips(on) == []


async def test_backspace_at_the_start_of_the_text_takes_the_last_one_away(stage) -> None:
    async with stage(opening=SEEING) as on:
        await send(on, "/image shot.png")
        await send(on, "/image 'my other.png'")
        await on.until(lambda: len(chips(on)) == 2)
        await on.pilot.press("a", "backspace")
        assert len(chips(on)) == 2
        await on.pilot.press("backspace")
        await on.until(lambda: chips(on) == ["shot.png"])
        await on.pilot.press("b", "home", "backspace")
        await on.until(lambda: chips(on) == [])
        assert on.screen.composer.text == "b"


async def test_ctrl_c_clears_the_text_first_and_then_the_pictures(stage) -> None:
    async with stage(opening=SEEING) as on:
        await send(on, "/image shot.png")
        await on.until(lambda: chips(on))
        await on.pilot.press("x", "ctrl+c")
        assert chips(on) and on.screen.composer.text == ""
        await on.pilot.press("ctrl+c")
        assert not chips(on) and "again to quit" not in on.text()


@pytest.mark.parametrize(
    ("written", "words"),
    [("nowhere.png", "There is no file"), ("notes.txt", "is not a picture"), (".", "is a folder")],
)
async def test_what_is_no_picture_is_told_and_the_command_can_be_mended(stage, written, words) -> None:
    async with stage(opening=SEEING, size=SIZE) as on:
        await send(on, f"/image {written}")
        await on.until(lambda: words in on.text())
        assert on.screen.composer.text == f"/image {written}" and chips(on) == []
        assert len(on.app.screen.query(".notice-block")) == 1


async def test_a_mention_goes_with_the_message(stage) -> None:
    async with stage(opening=SEEING) as on:
        await send(on, "/image shot.png")
        await on.until(lambda: chips(on))
        await send(on, 'compare with @"my other.png", and read @notes.txt')
        await on.until(lambda: sent(on))
        text, *images = sent(on)[0]
        assert text == (
            "[image 1: shot.png 280x140]\ncompare with [image 2: my other.png 1280x720], and read @notes.txt"
        )
        assert [image.width for image in images] == [280, 1280]


async def test_a_message_with_a_bad_picture_is_not_sent_and_nothing_of_it_is_lost(stage) -> None:
    Path("broken.png").write_bytes(png()[:60])
    async with stage(opening=SEEING, size=SIZE) as on:
        await send(on, "/image shot.png")
        await on.until(lambda: chips(on))
        on.screen.composer.load_text("see @broken.png")
        on.screen.composer.send()
        await on.pilot.press(*"more")
        await on.until(lambda: "broken.png is damaged" in on.text())
        assert sent(on) == [] and chips(on) == ["shot.png"]
        assert on.screen.composer.text == "see @broken.png\nmore"


async def test_messages_keep_their_order_while_a_picture_is_read(stage) -> None:
    async with stage(opening=SEEING) as on:
        on.screen.composer.load_text("@shot.png first")
        on.screen.composer.send()
        on.screen.composer.load_text("second")
        on.screen.composer.send()
        await on.until(lambda: len(sent(on)) == 2)
        assert [call[0] for call in sent(on)] == ["[image 1: shot.png 280x140] first", "second"]


async def test_a_model_without_a_projector_is_given_nothing_and_the_file_to_get_is_named(stage) -> None:
    async with stage(size=SIZE) as on:
        await send(on, "/image shot.png")
        await on.until(lambda: PROJECTOR in on.text())
        assert chips(on) == [] and "beside the model" in on.text()
        await send(on, "look at @shot.png")
        await on.until(lambda: on.screen.composer.text == "look at @shot.png")
        path = Path("shot.png").absolute()
        await send(on, f"make {path} smaller")
        await on.until(lambda: sent(on))
        assert sent(on) == [(f"make {path} smaller",)]


async def test_dropped_files_become_pictures_and_other_text_stays_text(stage, folder: Path) -> None:
    async with stage(opening=SEEING) as on:
        composer = on.screen.composer
        for text in (f"{folder}/shot.png", f"file://{folder}/my%20other.png\n'{folder}/shot.png'"):
            composer.post_message(keys.Paste(text))
        await on.until(lambda: chips(on) == ["shot.png", "my other.png", "shot.png"])
        assert composer.text == ""
        for text in ("plain words\nin two lines", f" {folder}/nowhere.png"):
            composer.post_message(keys.Paste(text))
            await on.until(lambda text=text: text in composer.text)
        assert len(chips(on)) == 3


async def test_a_dropped_file_that_cannot_be_read_is_pasted_as_its_path(stage, folder: Path) -> None:
    (folder / "broken.png").write_bytes(png()[:60])
    async with stage(opening=SEEING) as on:
        on.screen.composer.post_message(keys.Paste(f"{folder}/broken.png"))
        await on.until(lambda: "damaged" in on.text())
        assert on.screen.composer.text == f"{folder}/broken.png" and chips(on) == []


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch):
    """Puts something into the clipboard; a PictureError is what reading it ends in."""

    def put(content: object) -> None:
        async def read(root: Path | None = None) -> Clipping:
            if isinstance(content, PictureError):
                raise content
            return Clipping(content, "wl-paste")

        monkeypatch.setattr(clipboard, "read_clipboard", read)

    return put


async def test_the_clipboard_gives_a_picture_or_text(stage, copied) -> None:
    async with stage(opening=SEEING) as on:
        copied((picture_from_bytes(png(), "pasted picture"),))
        await on.pilot.press("ctrl+v")
        await on.until(lambda: chips(on) == ["pasted picture"])
        on.screen.composer.post_message(keys.Paste(""))
        await on.until(lambda: len(chips(on)) == 2)
        await send(on, "/image")
        await on.until(lambda: len(chips(on)) == 3)
        copied("some words")
        await on.pilot.press("ctrl+v")
        await on.until(lambda: on.screen.composer.text == "some words")
        copied(None)
        await on.pilot.press("ctrl+v")
        await on.until(lambda: "The clipboard is empty." in on.text())


async def test_where_the_clipboard_cannot_be_read_it_is_told_what_works(stage, copied) -> None:
    async with stage(opening=SEEING) as on:
        copied(PictureError("The clipboard cannot be read.", "Over SSH.", "Type @path, or /image PATH."))
        await on.pilot.press("ctrl+v")
        await on.until(lambda: "Type @path, or /image PATH." in on.text())
        on.app.copy_to_clipboard("copied in here")
        await on.pilot.press("ctrl+v")
        await on.until(lambda: on.screen.composer.text == "copied in here")


async def test_no_more_than_a_message_can_hold(stage, copied) -> None:
    async with stage(opening=SEEING) as on:
        copied((picture_from_bytes(png(), "pasted picture"),) * 10)
        await on.pilot.press("ctrl+v")
        await on.until(lambda: len(chips(on)) == 10)
        assert "… and 6 more" in on.text()
        await on.pilot.press("ctrl+v")
        await on.until(lambda: "A message can hold 16 pictures." in on.text())
        assert len(chips(on)) == 10


async def test_image_alone_is_one_key_to_send_although_it_could_take_a_path(stage, copied) -> None:
    copied(None)
    async with stage(opening=SEEING) as on:
        await on.pilot.press(*"/im", "tab")
        assert on.screen.composer.text == "/image "
        await on.pilot.press("ctrl+c", *"/im", "enter")
        await on.until(lambda: "The clipboard is empty." in on.text())


async def test_a_picture_is_shown_in_two_colours_a_cell(stage) -> None:
    image = Image(png(40, 20), 40, 20)
    async with stage(opening=SEEING, size=SIZE) as on:
        await on.play(events.UserMessage("look", images=(image,), message_id="m"))
        block = on.app.screen.query_one(PictureBlock)
        preview = on.app.screen.query_one(Preview)
        await on.until(lambda: "▀" * 40 in on.text())
        assert on.text().count("▀" * 40) == 10 == preview.size.height
        colours = {part.style.color.triplet for part in preview.render_line(3) if part.text == "▀"}
        assert colours == {(255, 0, 0)}
        await on.until(lambda: "image 1  40x20 · 2 tokens ▾" in on.text())
        await on.pilot.press("ctrl+o")
        assert "▀" in on.text()
        await on.pilot.press("tab", "enter")
        await on.until(lambda: "▀" not in on.text())
        assert not block.is_open


@pytest.mark.parametrize("width", [20, 40, 80])
async def test_a_wide_picture_fits_a_narrow_screen(stage, width) -> None:
    image = Image(png(1280, 720), 1280, 720)
    async with stage(opening=SEEING, size=(width, 24)) as on:
        await on.play(events.UserMessage("look", images=(image,), message_id="m"))
        await on.until(lambda: "▀" in on.text())
        assert all(len(row) <= width for row in on.text().split("\n"))


async def test_a_picture_that_cannot_be_drawn_leaves_its_line(stage) -> None:
    async with stage(opening=SEEING) as on:
        await on.play(events.UserMessage("look", images=(Image(b"no picture", 280, 140),)))
        assert "image 1  280x140" in on.text() and "▀" not in on.text()


async def test_without_colours_a_picture_is_one_line(stage, monkeypatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with stage(opening=SEEING) as on:
        await on.play(events.UserMessage("look", images=(Image(png(), 280, 140),)))
        assert "image 1  280x140" in on.text() and "▀" not in on.text()


async def test_a_tools_picture_stands_behind_its_call(stage) -> None:
    shown = Picture(png(), 280, 140)
    done = events.ToolFinished("1", "screenshot", Display("The desktop"), "", images=(shown,), message_id="t")
    async with stage(opening=SEEING, size=SIZE) as on:
        await on.play(events.ToolStarted("1", "screenshot", "screenshot of the desktop"), done)
        assert on.text().index("The desktop") < on.text().index("image 1  280x140")


async def test_expired_pictures_are_marked_and_the_command_says_how_many(stage) -> None:
    image = Image(png(), 280, 140)
    async with stage(opening=SEEING, size=SIZE) as on:
        await on.play(events.UserMessage("look", images=(image, image), message_id="m"))
        on.session.expired = Expired(2, 5)
        await send(on, "/expire")
        await on.until(lambda: "2 pictures and 5 results leave the model's view" in on.text())
        assert "out of the model's view" not in on.text()
        await on.play(events.OutOfView(("m", "other")))
        assert on.text().count("out of the model's view") == 2
        on.session.expired = Expired(0, 0)
        await send(on, "/expire")
        await on.until(lambda: "nothing old in the model's view" in on.text())


async def test_o_opens_a_picture_outside_and_says_where_it_lies(stage, monkeypatch) -> None:
    monkeypatch.setenv("SSH_CONNECTION", "here")
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME", "WSL_INTEROP"):
        monkeypatch.delenv(name, raising=False)
    async with stage(opening=SEEING, size=SIZE) as on:
        await on.play(events.UserMessage("look", images=(Image(png(), 280, 140),)))
        await on.pilot.press("tab")
        await on.until(lambda: "o opens it" in on.text())
        await on.pilot.press("o")
        await on.until(lambda: "until you leave Glimmer" in on.text())
        text = squashed(on.text())
        path = Path(text[text.index("Itliesin") + len("Itliesin") : text.index("untilyouleave")])
        assert path.read_bytes() == png()
        assert path.stat().st_mode & 0o777 == 0o600 and path.parent.stat().st_mode & 0o777 == 0o700
        assert on.screen.composer.text == ""
    assert not path.exists()


async def test_the_status_row_tells_of_looking_and_of_what_pictures_take(stage) -> None:
    async with stage(opening=SEEING, size=(120, 24)) as on:
        await on.play(events.TurnStarted(1), events.Looking(12, 50))
        assert "looking at the picture 12 of 50" in on.text()
        usage = Usage(generated=3, context_used=2150, context_size=8192, pictures=1196)
        await on.play(events.StepFinished(usage, Timings(0.1, 0.1)))
        assert "2.1k/8k · 1.2k in pictures" in on.text()
        await on.play(events.ConversationCleared())
        assert "in pictures" not in on.text()
