"""What can go wrong in the engine, in words a person can act on.

EngineError
├── ModelError       the model file is missing, damaged, foreign or does not fit
├── ContextFull      the conversation no longer fits the context window
└── EngineBusy       a second generation was asked for while one runs
"""


class EngineError(Exception):
    """An engine failure: `what` happened, `why`, and what the person can `todo` about it."""

    def __init__(self, what: str, why: str = "", todo: str = "") -> None:
        self.what = what
        self.why = why
        self.todo = todo
        super().__init__(" ".join(part for part in (what, why, todo) if part))


class ModelError(EngineError):
    """A model file cannot be used."""


class ContextFull(EngineError):
    """The conversation is longer than the context window."""


class EngineBusy(EngineError):
    """The engine runs one generation at a time."""
