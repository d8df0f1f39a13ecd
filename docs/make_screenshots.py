"""Write docs/images/screen.svg: the screen in the middle of a scripted session. No model is needed.

Run from the repository: `python -m docs.make_screenshots`.
"""

import asyncio
from functools import partial
from pathlib import Path

from docs.demo_script import MODEL, WISH, play
from glimmer_tui.agent.events import ModelLoaded
from glimmer_tui.app import GlimmerApp
from glimmer_tui.screens.scripted import ScriptedSession

IMAGES = Path(__file__).parent / "images"
SIZE = (100, 34)


async def picture(theme: str) -> str:
    """The screen as it waits for the approval of a change, as SVG."""
    session = ScriptedSession(partial(play, pause=0.0), [ModelLoaded(MODEL)])
    app = GlimmerApp(session, theme)
    app.animation_level = "none"
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause(0.5)
        session.submit(WISH)
        while app.main.prompt is None or not session.drained():
            await pilot.pause(0.05)
        await pilot.pause(1.0)
        return steady(app.export_screenshot(title="Glimmer"))


def steady(svg: str) -> str:
    """The picture with ids that do not change from run to run."""
    start = svg.index("terminal-") + len("terminal-")
    number = svg[start : svg.index("-", start)]
    return svg.replace(f"terminal-{number}-", "terminal-")


def main() -> None:
    """Make the pictures."""
    IMAGES.mkdir(exist_ok=True)
    for name, theme in (("screen.svg", "glimmer-dark"), ("screen-light.svg", "glimmer-light")):
        (IMAGES / name).write_text(asyncio.run(picture(theme)), "utf-8")


if __name__ == "__main__":
    main()
