"""What a session is told once: how to sample, how far a turn may go, what the project says."""

from collections.abc import Mapping
from dataclasses import dataclass

from engine.messages import Strength
from engine.protocol import SamplingWish
from glimmer_tui.agent.prompt import Instructions
from glimmer_tui.agent.sight import PICTURES_KEPT

MAX_STEPS = 50
"""Model steps of one turn, unless the settings say otherwise."""


REASONING_LIMITS: Mapping[Strength, int] = {"low": 2048, "medium": 6144, "high": 16384, "xhigh": 49152}
"""Tokens of reasoning in one reply. A decision is said to take about 256, 752 and 1,811 at the first three:
the limits are eight times that, so that only a model that goes round in circles meets them."""


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """`sampling` and `max_tokens` None leave the choice to the engine. `notices` are shown once at start."""

    strength: Strength = "high"
    sampling: SamplingWish | None = None
    max_tokens: int | None = None
    max_steps: int = MAX_STEPS
    pictures_kept: int = PICTURES_KEPT
    instructions: Instructions | None = None
    notices: tuple[str, ...] = ()

    @property
    def reasoning_limit(self) -> int:
        """Tokens after which reasoning is ended."""
        return REASONING_LIMITS[self.strength]
