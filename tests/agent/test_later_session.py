"""A second session in the same project: undo reaches back, but what counts as changed starts anew."""

from engine.scripted import call_reply, text_reply

FIX = {"path": "calc.py", "old": "a - b", "new": "a + b"}


async def test_changes_of_an_earlier_session_are_no_changes_of_this_one(world) -> None:
    first = world([call_reply("edit", FIX), text_reply("Done.")])
    await first.say("Fix it.")
    await first.session.close()

    second = world([call_reply("diff", {}), text_reply("Nothing.")])
    await second.session.start()
    await second.say("What did you change?")

    assert second.results == ["No changes."]


async def test_what_an_earlier_session_changed_can_still_be_undone(world) -> None:
    first = world([call_reply("edit", FIX), text_reply("Done.")])
    await first.say("Fix it.")
    await first.session.close()

    second = world([])
    await second.session.start()
    await second.session.undo()

    assert (second.root / "calc.py").read_text() == "def add(a, b):\n    return a - b\n"
