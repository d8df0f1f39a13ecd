"""The session the picture shows: a wish, a look around, a diff that waits for its approval."""

from collections.abc import Iterator
from pathlib import Path

from engine.protocol import Capabilities, Timings, Usage
from glimmer_tui.agent import events
from glimmer_tui.agent.events import Event
from tools.base import CommandLine, Display, FileChange

BEFORE = '''"""A shopping cart."""

from dataclasses import dataclass


@dataclass
class Item:
    name: str
    price: float
    count: int = 1


class Cart:
    def __init__(self) -> None:
        self.items: list[Item] = []

    def total(self) -> float:
        """What the cart costs."""
        return sum(item.price for item in self.items)

    def is_empty(self) -> bool:
        return not self.items
'''
AFTER = BEFORE.replace("sum(item.price for", "sum(item.price * item.count for")
FAILED = """FF..                                                        [100%]
=========================== FAILURES ===========================
_______________________ test_total_counts ______________________

    def test_total_counts():
        cart = Cart()
        cart.items.append(Item("tea", 4.5, count=2))
>       assert cart.total() == 9.0
E       assert 4.5 == 9.0

test_cart.py:12: AssertionError
1 failed, 2 passed in 0.03s
"""
DIFF = """--- a/cart.py
+++ b/cart.py
@@ -16,7 +16,7 @@
 
     def total(self) -> float:
         \"\"\"What the cart costs.\"\"\"
-        return sum(item.price for item in self.items)
+        return sum(item.price * item.count for item in self.items)
 
     def is_empty(self) -> bool:
         return not self.items
"""
ANSWER = """`Cart.total` ignored how many of an item are in the cart. It now multiplies:

```python
return sum(item.price * item.count for item in self.items)
```

- **checked**: all 3 tests pass
- nothing else was touched
"""
WISH = "The cart's total is wrong when I put two of something in it. Find out why and fix it."
MODEL = Capabilities("Muse Glimmer 30B Q4_K_M", Path("Muse-Glimmer-30B.gguf"), 32768)
DEMO = Capabilities("glimmer-nano", None, 8192, is_demo=True)


def pieces(text: str, size: int = 6) -> Iterator[str]:
    """The text cut into pieces, as a model would stream it."""
    for start in range(0, len(text), size):
        yield text[start : start + size]


def play(_wish: str, pause: float = 0.02) -> Iterator[Event | float]:
    """The whole turn."""
    yield events.TurnStarted(1)
    yield events.Prefilling(512, 1280)
    yield pause * 20
    yield events.Prefilling(1280, 1280)
    for piece in pieces("The total is computed in cart.py. Let me read it and its tests first."):
        yield events.ReasoningDelta(piece)
        yield pause
    for piece in pieces("I will look at the cart and run its tests."):
        yield events.TextDelta(piece)
        yield pause
    yield events.StepFinished(Usage(1280, 0, 1280, 0, 96, 1376, 32768), Timings(1.1, 2.4))
    yield events.ToolStarted("c1", "read", "read cart.py")
    yield pause * 5
    yield events.ToolFinished("c1", "read", Display("cart.py (22 lines)", BEFORE, "code", "cart.py"), "")
    yield events.ToolStarted("c2", "test", "test")
    for line in FAILED.splitlines(keepends=True):
        yield events.ToolOutput("c2", line)
        yield pause
    yield events.ToolFinished("c2", "test", Display("1 failed, 2 passed", FAILED, "terminal"), "")
    for piece in pieces("`total` adds up prices but never looks at `count`. I change that one line."):
        yield events.TextDelta(piece)
        yield pause
    yield events.StepFinished(Usage(1900, 1376, 524, 0, 88, 2140, 32768), Timings(0.4, 2.1))
    yield events.ToolStarted("c3", "edit", "edit cart.py")
    yield events.ApprovalRequested(
        "a1",
        "c3",
        "edit",
        FileChange("cart.py", BEFORE, AFTER),
        "It changes a file.",
        "edits to files in this project",
    )
    yield events.SnapshotTaken("s1", ("cart.py",))
    yield events.ToolFinished(
        "c3", "edit", Display("Replaced 1 place in cart.py", DIFF, "diff", "cart.py"), "", ("cart.py",)
    )
    yield events.ToolStarted("c4", "run", "run pytest -q")
    yield events.ApprovalRequested(
        "a2",
        "c4",
        "run",
        CommandLine("pytest -q test_cart.py", ".", 120.0),
        "It runs a command.",
        "`pytest` in this project",
    )
    yield events.ToolOutput("c4", "...                [100%]\n3 passed in 0.02s\n")
    yield pause * 20
    yield events.ToolFinished(
        "c4", "run", Display("pytest -q test_cart.py: exit 0", "3 passed in 0.02s", "terminal"), ""
    )
    for piece in pieces(ANSWER):
        yield events.TextDelta(piece)
        yield pause
    yield events.StepFinished(Usage(2400, 2140, 260, 0, 120, 2620, 32768), Timings(0.3, 3.0))
    yield events.TurnFinished("end", ANSWER, ("cart.py",))
