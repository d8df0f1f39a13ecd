from pathlib import PurePosixPath

from sandbox.recorded_files import Restored

FILES = (
    Restored(PurePosixPath("cart.py"), "write"),
    Restored(PurePosixPath("new.py"), "remove"),
    Restored(PurePosixPath("notes.md"), "conflict", "it was changed since"),
)


async def undo(on) -> None:
    on.screen.composer.load_text("/undo")
    on.screen.composer.send()


async def test_undo_first_says_what_it_will_change(stage):
    async with stage(undoable=FILES) as on:
        await undo(on)
        await on.until(lambda: on.screen.prompt is not None and on.screen.prompt.has_focus)
        text = on.text()
        for words in (
            "cart.py  goes back",
            "new.py  is removed",
            "notes.md  is left alone: it was changed since",
        ):
            assert words in text
        assert ("undo",) not in on.session.calls
        await on.pilot.press("y")
        assert ("undo",) not in on.session.calls
        await on.answer("y")
        await on.until(lambda: ("undo",) in on.session.calls)
        await on.until(lambda: "put back cart.py" in on.text())
        assert on.screen.prompt is None and on.screen.composer.has_focus


async def test_no_leaves_the_files(stage):
    async with stage(undoable=FILES) as on:
        for key in ("n", "escape"):
            await undo(on)
            await on.until(lambda: on.screen.prompt is not None and on.screen.prompt.has_focus)
            await on.answer(key)
            await on.until(lambda: on.screen.prompt is None)
        assert ("undo",) not in on.session.calls


async def test_nothing_to_undo_is_said(stage):
    async with stage() as on:
        await undo(on)
        await on.until(lambda: "Nothing to undo" in on.text())
        assert on.screen.prompt is None


async def test_undo_is_refused_while_a_turn_runs(stage):
    async with stage(lambda _: (3600.0,), undoable=FILES) as on:
        on.session.submit("go")
        await undo(on)
        await on.until(lambda: "A turn is running" in on.text())
        assert on.screen.prompt is None and ("preview_undo",) not in on.session.calls


async def test_a_file_changed_since_can_be_overwritten_or_its_turn_skipped(stage):
    async with stage(undoable=FILES) as on:
        for key, call in (("o", ("undo", "force")), ("s", ("pass_over",))):
            await undo(on)
            await on.until(lambda: on.screen.prompt is not None and on.screen.prompt.has_focus)
            assert "overwrite what was changed since" in on.text()
            await on.answer(key)
            await on.until(lambda call=call: call in on.session.calls)


async def test_without_a_conflict_there_is_nothing_to_overwrite(stage):
    async with stage(undoable=FILES[:2]) as on:
        await undo(on)
        await on.until(lambda: on.screen.prompt is not None and on.screen.prompt.has_focus)
        assert "overwrite" not in on.text()
        await on.answer("o")
        assert on.screen.prompt is not None and on.session.calls[-1] == ("preview_undo",)
