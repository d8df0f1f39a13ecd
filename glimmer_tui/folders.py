"""Where Glimmer keeps its settings and its state."""

import os
from pathlib import Path

from platformdirs import user_config_path, user_state_path

CONFIG_VARIABLE = "GLIMMER_CONFIG_DIR"
STATE_VARIABLE = "GLIMMER_STATE_DIR"


def config_folder() -> Path:
    """The folder of `config.toml`; GLIMMER_CONFIG_DIR names another."""
    named = os.environ.get(CONFIG_VARIABLE)
    return Path(named) if named else user_config_path("glimmer")


def state_folder() -> Path:
    """The folder of conversations, snapshots, the audit log and the log; GLIMMER_STATE_DIR names another."""
    named = os.environ.get(STATE_VARIABLE)
    return Path(named) if named else user_state_path("glimmer")
