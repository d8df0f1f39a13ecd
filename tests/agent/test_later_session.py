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


async def test_a_turn_in_conflict_can_be_passed_over(world) -> None:
    again = {"path": "notes.txt", "old": "one", "new": "uno"}
    here = world([call_reply("edit", FIX), text_reply("A."), call_reply("edit", again), text_reply("B.")])
    await here.say("Fix it.")
    await here.say("Translate it.")
    (here.root / "notes.txt").write_text("mine\n")

    await here.session.undo()
    assert (here.root / "notes.txt").read_text() == "mine\n"
    await here.session.pass_over()
    await here.session.undo()

    assert (here.root / "calc.py").read_text() == "def add(a, b):\n    return a - b\n"
    assert (here.root / "notes.txt").read_text() == "mine\n"
