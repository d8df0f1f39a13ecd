"""One row that says what is going on. It has a timer only while something is."""

from dataclasses import dataclass, replace
from typing import Any

from textual.app import RenderResult
from textual.content import Content
from textual.geometry import Region
from textual.timer import Timer
from textual.widget import Widget

from glimmer_tui.widgets.safe_text import one_line

FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
STILL = "●"


@dataclass(frozen=True, slots=True)
class Status:
    """What the row shows. Empty strings and zeros are left out."""

    activity: str = ""
    hint: str = ""
    model: str = ""
    demo: bool = False
    mode: str = ""
    reasoning: str = ""
    context_used: int = 0
    context_size: int = 0
    pictures: int = 0
    rate: float = 0.0
    branch: str = ""


class StatusLine(Widget):
    """The status row. `busy` follows from `activity`."""

    def __init__(self) -> None:
        super().__init__()
        self._status = Status()
        self._frame = 0
        self._timer: Timer | None = None

    @property
    def status(self) -> Status:
        return self._status

    @property
    def ticks(self) -> bool:
        """Whether a timer runs."""
        return self._timer is not None

    def show(self, **changes: Any) -> None:
        """Change some of what is shown; the names are those of `Status`."""
        status = replace(self._status, **changes)
        if status == self._status:
            return
        self._status = status
        self._keep_time()
        self.refresh()

    def render(self) -> RenderResult:
        width = self.size.width
        left = self._left()
        room = width - left.cell_length - 2
        right = _fitting(_facts(self._status), room)
        if right is None:
            return left
        return Content.assemble(left, " " * (width - left.cell_length - right.cell_length), right)

    def _left(self) -> Content:
        if self._status.hint:
            return Content.styled(self._status.hint, "bold $accent")
        if not self._status.activity:
            return Content.styled("ready", "$muted")
        moving = self._timer is not None
        return Content.assemble(
            (FRAMES[self._frame] if moving else STILL, "$accent"),
            " ",
            (one_line(self._status.activity, 60), "$foreground"),
        )

    def _keep_time(self) -> None:
        waits = self._status.activity in ("", WAITING)
        if waits or self.app.animation_level == "none":
            if self._timer is not None:
                self._timer.stop()
                self._timer = None
        elif self._timer is None:
            self._timer = self.set_interval(0.1, self._tick)

    def _tick(self) -> None:
        self._frame = (self._frame + 1) % len(FRAMES)
        self.refresh(Region(0, 0, 1, 1))


WAITING = "waiting for you"


def _facts(status: Status) -> list[Content]:
    """What stands on the right, the most important first."""
    facts: list[Content] = []
    if status.mode:
        color = "$accent" if status.mode == "auto" else "$foreground"
        facts.append(Content.styled(status.mode, color))
    if status.context_size:
        used, size = short(status.context_used), short(status.context_size)
        full = status.context_used > status.context_size * 0.85
        facts.append(Content.styled(f"{used}/{size}", "$error" if full else "$muted"))
    if status.pictures:
        facts.append(Content.styled(f"{short(status.pictures)} in pictures", "$muted"))
    if status.model:
        name = Content.styled(one_line(status.model, 28), "$muted")
        facts.append(Content.assemble(("demo ", "bold $accent"), name) if status.demo else name)
    if status.branch:
        facts.append(Content.styled(f"⎇ {one_line(status.branch, 24)}", "$muted"))
    if status.rate > 0:
        facts.append(Content.styled(f"{status.rate:.0f} tok/s", "$muted"))
    if status.reasoning:
        facts.append(Content.styled(f"{status.reasoning} reasoning", "$muted"))
    return facts


def _fitting(facts: list[Content], room: int) -> Content | None:
    """As many facts as there is room for, joined; None when not even one fits."""
    separator = Content.styled(" · ", "$rule")
    for count in range(len(facts), 0, -1):
        joined = separator.join(facts[:count])
        if joined.cell_length <= room:
            return joined
    return None


def short(count: int) -> str:
    """A number of tokens in few characters, as in `840`, `2.1k`, `128k`; a k is 1024."""
    if count < 1024:
        return str(count)
    if count < 10 * 1024 and count % 1024:
        return f"{count / 1024:.1f}k".replace(".0k", "k")
    return f"{round(count / 1024)}k"
