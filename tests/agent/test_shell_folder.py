"""Commands are judged from the folder they would run in, which is the shell's own."""

from engine.scripted import call_reply, text_reply
from glimmer_tui.agent import events
from sandbox.actions import Decision


def run(command: str):
    return call_reply("run", {"command": command})


async def test_after_cd_a_command_is_judged_from_there(world) -> None:
    here = world(
        [
            run("cd src"),
            run("cat ../calc.py"),
            run("cat ../../secret.txt"),
            run("cat lib.py"),
            text_reply("Done."),
        ]
    )
    (here.root / "src").mkdir()
    (here.root / "src" / "lib.py").write_text("lib = 1\n")
    (here.root.parent / "secret.txt").write_text("private\n")
    await here.say("Look around.")

    asked = [request.preview.command for request in here.of(events.ApprovalRequested)]
    assert asked == ["cat ../../secret.txt"]
    assert "return a - b" in here.results[1]
    assert "lib = 1" in here.results[3]


async def test_a_link_beside_the_command_is_followed_from_there(world) -> None:
    here = world([run("cd src"), run("cat out/secret.txt"), text_reply("Done.")])
    (here.root / "src").mkdir()
    outside = here.root.parent / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("private\n")
    (here.root / "src" / "out").symlink_to(outside)
    await here.say("Look around.")

    asked = [request.preview.command for request in here.of(events.ApprovalRequested)]
    assert asked == ["cat out/secret.txt"]


async def test_always_is_for_the_folder_it_was_said_in(world) -> None:
    here = world([run("./go"), run("./go"), run("cd src"), run("./go"), text_reply("Done.")])
    (here.root / "src").mkdir()
    for folder in (here.root, here.root / "src"):
        (folder / "go").write_text("#!/bin/sh\npwd\n")
        (folder / "go").chmod(0o755)
    here.answers = lambda request: Decision("allow_always")
    await here.say("Go.")

    folders = [request.preview.cwd for request in here.of(events.ApprovalRequested)]
    assert folders == [str(here.root), str(here.root / "src")]


async def test_a_link_that_was_entered_does_not_move_what_is_above(world) -> None:
    here = world([run("cd ln"), run("cd ../.. && cat outside.txt"), text_reply("Done.")])
    (here.root / "a/b/c/d/e").mkdir(parents=True)
    (here.root / "ln").symlink_to("a/b/c/d/e")
    (here.root.parent / "outside.txt").write_text("private\n")
    await here.say("Look around.")

    assert not here.of(events.ApprovalRequested)
    assert "private" not in here.results[1]
