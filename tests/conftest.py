"""What every test starts from: an environment in which programs print what they print for a person.

Build machines and shells set these variables, and pytest, git, ripgrep and Textual heed them.
"""

import os

_CHANGES_OUTPUT = (
    "BUILD_NUMBER",
    "CI",
    "CLICOLOR_FORCE",
    "COLORTERM",
    "COLUMNS",
    "FORCE_COLOR",
    "GIT_CONFIG_COUNT",
    "GIT_DIR",
    "GIT_INDEX_FILE",
    "GIT_WORK_TREE",
    "LINES",
    "NO_COLOR",
    "PY_COLORS",
    "PYTEST_ADDOPTS",
    "PYTEST_PLUGINS",
    "PYTHONOPTIMIZE",
    "PYTHONPATH",
    "PYTHONWARNINGS",
    "RIPGREP_CONFIG_PATH",
)


# Before any test module is imported: Textual reads some of them then.
for _name in _CHANGES_OUTPUT:
    os.environ.pop(_name, None)
