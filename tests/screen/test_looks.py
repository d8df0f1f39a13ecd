"""What the main states look like, at the sizes people use, in both themes."""

import pytest
from textual.pilot import Pilot

from engine.protocol import Capabilities, Timings, Usage
from glimmer_tui.agent import events
from glimmer_tui.agent.events import Event, ModelLoaded
from glimmer_tui.screens.scripted import ScriptedSession
from tools.base import CommandLine, Display, FileChange

DEMO = Capabilities("glimmer-nano", None, 8192, is_demo=True)
BEFORE = '''class Cart:
    def __init__(self) -> None:
        self.items: list[Item] = []

    def total(self) -> float:
        """What the cart costs."""
        return sum(item.price for item in self.items)
'''
AFTER = BEFORE.replace("sum(item.price for", "sum(item.price * item.count for")
DIFF = """--- a/cart.py
+++ b/cart.py
@@ -5,3 +5,3 @@
     def total(self) -> float:
         \"\"\"What the cart costs.\"\"\"
-        return sum(item.price for item in self.items)
+        return sum(item.price * item.count for item in self.items)
"""
ANSWER = """`Cart.total` ignored how many of an item there are. It now **multiplies**:

```python
return sum(item.price * item.count for item in self.items)
```

- checked: all 3 tests pass
"""
WORK: tuple[Event, ...] = (
    events.UserMessage("The total is wrong when I put two of something in the cart."),
    events.TurnStarted(1),
    events.ReasoningDelta("Look at the cart."),
    events.TextDelta("I look at the cart and its tests."),
    events.StepFinished(Usage(generated=90, context_used=2150, context_size=8192), Timings(0.5, 2.0)),
    events.ToolStarted("1", "read", "read cart.py"),
    events.ToolFinished("1", "read", Display("cart.py (7 lines)", BEFORE, "code", "cart.py"), ""),
    events.ToolStarted("2", "test", "test"),
    events.ToolFinished("2", "test", Display("1 failed, 2 passed", "E  assert 4.5 == 9.0", "terminal"), ""),
)
EDIT = events.ApprovalRequested(
    "a",
    "3",
    "edit",
    FileChange("cart.py", BEFORE, AFTER),
    "It changes a file.",
    "edits to files in this project",
)
RUN = events.ApprovalRequested(
    "b", "4", "run", CommandLine("pytest -q tests/test_cart.py", ".", 120.0), "It runs a command.", "`pytest`"
)
STATES: dict[str, tuple[Event, ...]] = {
    "start": (),
    "edit": (*WORK, events.ToolStarted("3", "edit", "edit cart.py"), EDIT),
    "run": (*WORK, events.ToolStarted("4", "run", "run pytest -q tests/test_cart.py"), RUN),
    "end": (
        *WORK,
        events.ToolStarted("3", "edit", "edit cart.py"),
        events.ToolFinished("3", "edit", Display("Replaced 1 place in cart.py", DIFF, "diff", "cart.py"), ""),
        events.TextDelta(ANSWER),
        events.TurnFinished("end", ANSWER, ("cart.py",)),
    ),
}
LOOKS = (
    ("start", (80, 24), "glimmer-dark", ()),
    ("start", (120, 40), "glimmer-light", ("/", "down")),
    ("edit", (80, 24), "glimmer-light", ()),
    ("edit", (120, 40), "glimmer-dark", ()),
    ("run", (80, 24), "glimmer-dark", ()),
    ("end", (120, 40), "glimmer-light", ("ctrl+o",)),
    ("end", (200, 60), "glimmer-dark", ()),
)


async def at_rest(pilot: Pilot[None]) -> None:
    """Wait until the picture changes no more."""
    seen: list[str] = []
    while len(seen) < 3 or len(set(seen[-3:])) > 1:
        await pilot.pause(0.1)
        seen.append(pilot.app.export_screenshot())


@pytest.mark.parametrize(
    ("state", "size", "theme", "keys"), LOOKS, ids=[f"{s}-{w}x{h}-{t}" for s, (w, h), t, _ in LOOKS]
)
def test_the_screen_looks_as_it_did(stage, snap_compare, state, size, theme, keys):
    opening = (ModelLoaded(DEMO), *STATES[state])
    session = ScriptedSession(lambda _: (), opening)
    app = stage.app(session, theme)

    async def ready(pilot: Pilot[None]) -> None:
        while not (session.drained() and app.main.status.status.mode):
            await pilot.pause(0.02)
        await at_rest(pilot)
        await pilot.press(*keys)
        await at_rest(pilot)

    assert snap_compare(app, terminal_size=size, run_before=ready)


async def test_a_question_can_be_answered_on_a_very_small_terminal(stage):
    session = ScriptedSession(lambda _: (), (ModelLoaded(DEMO), *STATES["edit"]))
    app = stage.app(session, "glimmer-dark")
    async with app.run_test(size=(40, 12)) as pilot:
        while not session.drained():
            await pilot.pause(0.02)
        await at_rest(pilot)
        rows = ["".join(part.text for part in strip) for strip in app.screen._compositor.render_strips()]
    text = "\n".join(rows)
    for words in ("Change cart.py", "y yes", "n no", "Esc stop", "Say what you want", "waiting for you"):
        assert words in text
    assert all(len(row) <= 40 for row in rows)
