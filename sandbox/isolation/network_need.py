"""Whether a command is one that needs the network: told by the programs it names, and never for sure.

Who is not recognised runs without and fails; a command that is wrongly recognised only asks.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from tree_sitter import Node

from sandbox.commands.words import Source, Word, names, parse, read_word
from sandbox.commands.wrappers import SHELLS, commands_in, program

_ALWAYS = names(
    "curl wget wget2 aria2c http https xh ssh scp sftp rsync ftp lftp telnet nc ncat netcat socat ping ping6 "
    "dig nslookup host whois traceroute gh glab hub npx bunx uvx pipx apt apt-get aptitude dnf yum zypper "
    "apk brew snap flatpak docker podman kubectl helm terraform aws gcloud az vagrant twine mvn gradle "
    "mvnw gradlew"
)
_BY_SUBCOMMAND = {
    "git": "clone fetch pull push ls-remote submodule+update submodule+add remote+update remote+show lfs",
    "pip": "install download wheel search index",
    "uv": "add sync lock pip+install pip+sync pip+compile tool run python+install publish",
    "poetry": "install add update lock publish self",
    "pdm": "install add update lock sync publish",
    "pipenv": "install update lock sync",
    "hatch": "env+create publish",
    "conda": "install create update search",
    "npm": "install i ci add update up upgrade audit publish view info outdated exec x init create search",
    "pnpm": "install i add update up dlx publish audit outdated create fetch",
    "yarn": "install add upgrade up dlx publish audit outdated create",
    "bun": "install i add update x create publish outdated",
    "deno": "install add cache publish upgrade outdated",
    "cargo": "add fetch install update search publish vendor login owner yank generate-lockfile",
    "rustup": "install update toolchain+install target+add component+add self+update",
    "go": "get install mod+download mod+tidy mod+vendor",
    "gem": "install update fetch push outdated search",
    "bundle": "install update add outdated",
    "composer": "install update require create-project outdated",
    "dotnet": "restore add tool+install tool+restore nuget workload",
    "nuget": "install restore push",
    "mix": "deps.get deps.update hex.publish local.hex archive.install",
    "stack": "setup update upgrade",
    "cabal": "update install fetch upload",
    "opam": "install update upgrade init",
    "nix": "build develop shell run flake profile",
    "flutter": "pub upgrade",
    "dart": "pub",
    "pod": "install update",
    "swift": "package+resolve package+update",
    "luarocks": "install download search",
}
_ALONE = frozenset({"yarn"})
"""Programs that install when they are given no word."""
_WITH_VALUE = names(
    "-C -c --git-dir --work-tree --prefix --dir --cwd --directory --project --manifest-path --filter -F"
)
_OF_PYTHON = ("python", "pypy")
_DEEPEST = 3


def needs_network(command: str) -> str:
    """The name of the first program in a command that is known to use the network, "" when there is none."""
    return next(_needing(command, 0), "")


def _needing(command: str, depth: int) -> Iterator[str]:
    for words in _commands(parse(command)):
        for at in sorted(commands_in(words)):
            if found := _program_needing([word.text for word in words[at:]]):
                yield found
        if depth < _DEEPEST and program(words) in SHELLS | {"eval", "xargs"}:
            for word in words[1:]:
                yield from _needing(word.text, depth + 1)


def _commands(source: Source) -> Iterator[list[Word]]:
    """The words of every simple command, those inside others too. No recursion: nesting may be deep."""
    stack: list[Node] = [source.tree.root_node]
    while stack:
        node = stack.pop()
        if node.type == "command":
            parts = [child for child in node.named_children if child.type != "variable_assignment"]
            words = [read_word(source, part) for part in parts]
            if words:
                yield words
        stack.extend(reversed(node.children))


def _program_needing(words: Sequence[str]) -> str:
    name = words[0].rpartition("/")[2].lower()
    if name.rstrip("0123456789.") in _OF_PYTHON and "-m" in words[1:-1]:
        words = words[words.index("-m") + 1 :]
        name = words[0]
    if name.rstrip("0123456789.") == "pip":
        name = "pip"
    if name in _ALWAYS:
        return name
    if name not in _BY_SUBCOMMAND:
        return ""
    plain = _plain(words[1:])
    if name in _ALONE and not plain:
        return name
    asked = {*plain[:1], "+".join(plain[:2])}
    return name if asked & set(_BY_SUBCOMMAND[name].split()) else ""


def _plain(words: Sequence[str]) -> list[str]:
    """The words that are neither options nor the values of those that come before a subcommand."""
    return [
        word
        for before, word in pairwise(("", *words))
        if not word.startswith(("-", "+")) and before not in _WITH_VALUE
    ]
