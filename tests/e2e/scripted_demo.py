"""Glimmer on its sample project with a written model: `python scripted_demo.py FOLDER`.

Everything but the model is the real thing: screen, session, tools, shell, pytest, snapshots.
"""

import sys
from pathlib import Path

from engine.scripted import ScriptedEngine, call_reply, text_reply
from glimmer_tui.app import GlimmerApp
from glimmer_tui.demo import write_demo
from glimmer_tui.options import Flags, resolve
from glimmer_tui.wiring import build_session

EDIT = {"path": "cart.py", "old": "return price + count", "new": "return price * count"}
ANSWER = (
    "Fixed `get_total` in cart.py: `return price + count` is now `return price * count`. All 3 tests pass."
)


def main() -> None:
    folder = write_demo(Path(sys.argv[1]), Path.cwd())
    replies = [
        call_reply("test", {}, "First I run the tests."),
        call_reply("search", {"pattern": "def get_total"}, "get_total fails. I search for it."),
        call_reply("read", {"path": "cart.py"}, "get_total is in cart.py. I read it."),
        call_reply("edit", EDIT, "The line `return price + count` is wrong."),
        call_reply("test", {}, "I changed get_total. I run the tests again."),
        text_reply(ANSWER),
    ]
    options = resolve(folder, Flags())
    GlimmerApp(build_session(options, ScriptedEngine(replies)), options.theme).run()


if __name__ == "__main__":
    main()
