"""Makes sure that Glimmer runs its own code and not code that lies in the folder it works on.

`engine`, `tools`, `sandbox` and `themes` are common names. Started inside a project that has folders of these
names, Python could load them instead. At import, this file needs only `os` and `sys`, which Python has loaded
before any search path matters.
"""

import os
import sys

SIBLINGS = ("engine", "tools", "sandbox", "themes")


class ForeignCode(Exception):
    """A package of Glimmer's would be loaded from somewhere else. The message is for the person."""


def home() -> str:
    """The folder that holds `glimmer_tui` and its siblings."""
    return os.path.dirname(os.path.dirname(os.path.realpath(__file__)))


def leave_working_directory() -> None:
    """Take the working directory off the module search path, unless Glimmer itself lies there."""
    try:
        here = os.path.realpath(os.getcwd())
    except OSError:
        here = ""
    sys.path[:] = [entry for entry in sys.path if entry and os.path.realpath(entry) != here]
    if here == home():
        sys.path.insert(0, here)  # before an installed copy, which may be of another version


def check_siblings() -> None:
    """Raise ForeignCode unless every sibling would be loaded from beside `glimmer_tui`. Loads none of them.

    Call it after `leave_working_directory`: what it needs itself must not come from there either.
    """
    from importlib.util import find_spec

    for name in SIBLINGS:
        spec = find_spec(name)
        if spec is None or spec.origin is None:
            raise ForeignCode(
                f"Glimmer's package {name} is missing. Install Glimmer again, in an environment of its own."
            )
        found = os.path.dirname(os.path.dirname(os.path.realpath(spec.origin)))
        if found != home():
            raise ForeignCode(
                f"Glimmer would load {name} from {found} and not its own from {home()}, so it did not start. "
                "Install it in an environment of its own (uv tool install, or pipx), and unset PYTHONPATH."
            )
