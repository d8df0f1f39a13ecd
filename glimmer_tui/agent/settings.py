"""What a session is told once: how to sample, how far a turn may go, what the project says."""

from dataclasses import dataclass

from engine.messages import Strength
from engine.protocol import Sampling
from glimmer_tui.agent.prompt import Instructions

MAX_STEPS = 50
"""Model steps of one turn, unless the settings say otherwise."""


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """`sampling` and `max_tokens` None leave the choice to the engine. `notices` are shown once at start."""

    strength: Strength = "high"
    sampling: Sampling | None = None
    max_tokens: int | None = None
    max_steps: int = MAX_STEPS
    instructions: Instructions | None = None
    notices: tuple[str, ...] = ()
