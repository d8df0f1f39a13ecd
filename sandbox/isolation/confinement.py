"""How the commands of one shell are confined: the words that start bash confined, and its environment."""

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from sandbox.isolation import enter, probe
from sandbox.isolation.bubblewrap import FILTER_DESCRIPTOR, bubblewrap
from sandbox.isolation.call_filter import INET, INET6, NETLINK, UNIX, call_filter
from sandbox.isolation.identity import identity, with_identity
from sandbox.isolation.landlock import Ruleset, landlock, scopes_alone
from sandbox.isolation.limits import limits
from sandbox.isolation.private_folder import clear_the_way
from sandbox.isolation.seatbelt import PROGRAM, seatbelt
from sandbox.isolation.status import Facts, IsolationStatus
from sandbox.isolation.tool_folders import CACHES
from sandbox.isolation.view import NoView, filled, home_folders, look

_LEFT_OUT = frozenset(
    ["XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"]
)
_TEMPORARY = ("TMPDIR", "TEMP", "TMP")
_MOVED = (("RUSTUP_HOME", ".rustup"), ("CARGO_HOME", ".cargo"), ("GOPATH", "go"))
"""Where tools look below HOME, told to them when HOME is another folder."""
_FAMILIES = {
    ("bubblewrap", False): (UNIX, INET, INET6, NETLINK),
    ("bubblewrap", True): (UNIX, INET, INET6, NETLINK),
    # Without a view of its own a command would reach every service on the machine that listens on a path.
    ("landlock", False): (),
    ("landlock", True): (INET, INET6, NETLINK),
}


@dataclass(frozen=True, slots=True)
class Confinement:
    """How commands in `workspace`, a resolved folder, are confined by what `facts` say there is.

    `env` is the environment of commands before isolation changes it.
    """

    workspace: Path
    env: Mapping[str, str]
    status: IsolationStatus
    facts: Facts

    def start(self, program: list[str], private: Path, channel: Path, *, network: bool) -> list[str]:
        """The words that run `program` confined, with the files they need written to `channel`.

        `private` is a folder of this shell's with `home` and `tmp` in it, `channel` it or a folder in it.
        Raises NoView when the folders of this machine changed so that none can be had.
        """
        if not self.status.isolated:
            return program
        view = look(self.workspace, self.env, network=network, own=private / "home")
        clear_the_way(view, private / "home")
        if self.status.kind == "seatbelt":
            return self._entered(channel, [PROGRAM, "-p", seatbelt(view, private, network=network), *program])
        families = _FAMILIES[self.status.kind, network]
        steps = call_filter(self.facts.machine, families).hex()
        if self.status.kind == "landlock":
            rules = landlock(self.facts.landlock, view, private, channel)
            return self._entered(channel, program, rules, steps)
        words = bubblewrap(self.facts.bubblewrap, view, private, network=network)
        scopes = scopes_alone(self.facts.landlock) if network else None
        return self._entered(channel, [*words, *program], scopes, steps, FILTER_DESCRIPTOR)

    def downloaded(self, private: Path) -> frozenset[str]:
        """The caches of package managers that hold something in the commands' own home."""
        return frozenset(name for name in CACHES if filled(private / "home" / name))

    def environment(self, private: Path) -> dict[str, str]:
        """The environment of commands: their own home and temporary folder, the person's name for git."""
        if not self.status.isolated:
            return dict(self.env)
        kept = {name: value for name, value in self.env.items() if name not in _LEFT_OUT}
        home, temporary = home_folders(self.env)[0], private / "tmp"
        if self.status.kind == "bubblewrap":
            kept |= dict.fromkeys(_TEMPORARY, "/tmp") | {"HOME": str(home)}
        else:
            moved = {name: str(home / folder) for name, folder in _MOVED if (home / folder).is_dir()}
            kept = moved | kept
            kept |= dict.fromkeys(_TEMPORARY, str(temporary)) | {"HOME": str(private / "home")}
        return with_identity(kept, identity(self.workspace, self.env))

    def _entered(
        self,
        channel: Path,
        program: list[str],
        rules: Ruleset | None = None,
        steps: str = "",
        descriptor: int | None = None,
    ) -> list[str]:
        settings = {
            "limits": limits(),
            "landlock": None if rules is None else asdict(rules),
            "filter": steps,
            "descriptor": descriptor,
        }
        file = channel / "confinement"
        file.write_text(json.dumps(settings), encoding="utf-8")
        return [sys.executable, "-I", "-S", str(enter.__file__), str(file), *program]


def confinement(workspace: Path, env: Mapping[str, str]) -> Confinement:
    """The best confinement this machine offers for commands in `workspace`, a resolved folder."""
    found = probe.status()
    if found.isolated:
        try:
            look(workspace, env, network=False)
        except NoView as problem:
            found = IsolationStatus("none", str(problem))
        except OSError as problem:
            found = IsolationStatus("none", f"Commands are not isolated: {problem}.")
    return Confinement(workspace, env, found, probe.facts())
