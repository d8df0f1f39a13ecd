"""The entry of the console script and of `python -m glimmer_tui`.

The console script is the safe way in: with `-m`, Python puts the working directory first on its search path,
and a `glimmer_tui` folder lying there is loaded before any line of this file can run.
"""

import sys

from glimmer_tui import isolation_check


def main() -> int:
    """Make sure that only Glimmer's own code is loaded, then hand over to the command line."""
    isolation_check.leave_working_directory()
    try:
        isolation_check.check_siblings()
    except isolation_check.ForeignCode as problem:
        sys.stderr.write(f"glimmer: {problem}\n")
        return 2
    from glimmer_tui.cli import run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
