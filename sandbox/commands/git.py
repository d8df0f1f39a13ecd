"""Which calls of git only read: a short list of subcommands with the options that neither write nor run."""

import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from sandbox.commands.options import Call, Reader, options
from sandbox.commands.places import Places
from sandbox.commands.words import Doubt, Word
from sandbox.sensitive import looks_secret

_GLOBAL = frozenset(
    {"--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs", "--no-replace-objects"}
)

_DIFF = (
    "p u s R w b a z M? C? B? D U? S: G: l: --patch --no-patch --stat? --numstat --shortstat --dirstat?"
    " --summary --name-only --name-status --cached --staged --color? --no-color --color-words?"
    " --word-diff? --raw --minimal --word-diff-regex= --patience --histogram --diff-algorithm="
    " --unified? --find-renames? --find-copies? --no-renames --diff-filter= --pickaxe-regex"
    " --pickaxe-all --check --full-index --abbrev? --no-abbrev --exit-code --quiet --merge-base"
    " --no-ext-diff --no-textconv --ignore-all-space --ignore-space-change --ignore-space-at-eol"
    " --ignore-blank-lines --ignore-cr-at-eol --inter-hunk-context= --function-context W --text --binary"
    " --compact-summary --relative? --no-prefix --src-prefix= --dst-prefix= --submodule?"
    " --ignore-submodules? --indent-heuristic --no-indent-heuristic --patch-with-stat --color-moved?"
)
_LOG = _DIFF + (
    "  0123456789 n: L: i E F P g m c --max-count= --skip= --oneline --graph --decorate? --no-decorate"
    " --all --branches? --tags? --remotes? --follow --format= --pretty? --date= --since= --until="
    " --after= --before= --author= --committer= --grep= --all-match --invert-grep --regexp-ignore-case"
    " --merges --no-merges --first-parent --reverse --topo-order --date-order --author-date-order"
    " --abbrev-commit --no-abbrev-commit --name-only --full-history --simplify-by-decoration"
    " --left-right --cherry-pick --cherry-mark --cherry --no-notes --walk-reflogs --relative-date"
    " --ancestry-path --boundary --no-walk --parents --children --source --diff-merges="
    " --simplify-merges --extended-regexp --fixed-strings --perl-regexp --min-parents= --max-parents="
    " --not"
)
_TABLE = {
    "status": (
        "s b u? v z --short --branch --porcelain? --long --verbose --ignored? --untracked-files? --column?"
        " --no-column --show-stash --ahead-behind --no-ahead-behind --renames --no-renames"
        " --ignore-submodules?"
    ),
    "diff": _DIFF,
    "log": _LOG,
    "show": _LOG,
    "shortlog": "s n e c --summary --numbered --email --group= --since= --until= --all --no-merges",
    "branch": (
        "a r v --all --remotes --list --verbose --show-current --contains= --no-contains= --points-at="
        " --merged? --no-merged? --sort= --format= --column? --no-column --color? --no-color --ignore-case"
        " --abbrev?"
    ),
    "tag": "l n? i --list --contains= --no-contains= --points-at= --merged? --no-merged? --sort= --format="
    " --column? --color? --ignore-case",
    "rev-parse": (
        "q --verify --quiet --short? --abbrev-ref? --symbolic-full-name --symbolic --all --branches?"
        " --tags? --remotes? --show-toplevel --show-prefix --show-cdup --git-dir --absolute-git-dir"
        " --git-common-dir --is-inside-work-tree --is-inside-git-dir --is-bare-repository"
        " --is-shallow-repository --show-object-format? --show-superproject-working-tree --sq --not"
        " --revs-only --no-revs --flags --no-flags --default="
    ),
    "rev-list": (
        "0123456789 n: --max-count= --count --all --branches? --tags? --since= --until= --author= --merges"
        " --no-merges --first-parent --reverse --left-right --objects --parents --topo-order --date-order"
        " --grep= --format= --oneline --abbrev-commit --no-walk? --not"
    ),
    "ls-files": (
        "c d m o i s u k z t v f --cached --deleted --modified --others --ignored --stage --unmerged"
        " --killed --exclude-standard --directory --no-empty-directory --full-name --error-unmatch --abbrev?"
        " --deduplicate x: --exclude= --eol --recurse-submodules --format="
    ),
    "ls-tree": (
        "d r t l z --long --name-only --name-status --object-only --full-name --full-tree --abbrev? --format="
    ),
    "blame": (
        "L: w M? C? e f n s l t p c --porcelain --line-porcelain --incremental --show-email --show-name"
        " --show-number --date= --since= --abbrev? --root --no-progress --color-lines --color-by-age"
        " --first-parent"
    ),
    "annotate": "L: w e l t --porcelain --date=",
    "grep": (
        "n i l L c w v o E F P G h H I a p W q z 0123456789 A: B: C: e: --line-number --column"
        " --ignore-case --files-with-matches --name-only --files-without-match --count --word-regexp"
        " --invert-match --only-matching --extended-regexp --fixed-strings --perl-regexp --basic-regexp"
        " --heading --break --show-function --function-context --context= --after-context= --before-context="
        " --max-count= m: --max-depth= --and --or --not --all-match --cached --color? --no-color --full-name"
        " --quiet --no-textconv --text"
    ),
    "describe": (
        "--all --tags --long --always --abbrev? --match= --exclude= --exact-match --contains --candidates="
        " --first-parent"
    ),
    "name-rev": "--name-only --tags --all --always --refs=",
    "merge-base": "a --all --is-ancestor --octopus --independent --fork-point",
    "cherry": "v --abbrev?",
    "show-ref": "q s d --head --tags --heads --branches --verify --quiet --hash? --abbrev? --dereference",
    "for-each-ref": (
        "--count= --sort= --format= --points-at= --merged? --no-merged? --contains= --ignore-case"
    ),
    "cat-file": "e p s t",
    "count-objects": "v H --verbose --human-readable",
    "diff-tree": _DIFF + " r t m c --root --no-commit-id --pretty? --always",
    "check-ignore": "q v n --quiet --verbose --non-matching --no-index",
    "symbolic-ref": "q --quiet --short",
    "version": "--build-options",
}
_NO_OPERANDS = frozenset({"branch", "tag", "count-objects", "version"})
_CONTENT = frozenset({"diff", "log", "show", "grep", "blame", "annotate", "diff-tree"})
_SOURCES = re.compile(r".*[*?\]][^*?\[\]/]*\.(?:py|pyi|js|ts|tsx|go|rs|java|c|h|cpp|md|rst)")
_LISTING = frozenset({"list", "merged", "no-merged", "contains", "no-contains", "points-at"})
_FIXED = (
    ("--version",),
    ("remote",),
    ("remote", "-v"),
    ("remote", "--verbose"),
    ("stash", "list"),
    ("worktree", "list"),
    ("reflog",),
)


def git_doubt(words: list[Word], places: Places) -> Doubt | None:
    """Why a call of git asks, or None when it only reads."""
    rest = words[1:]
    while rest and rest[0].text in _GLOBAL and not rest[0].doubt:
        rest = rest[1:]
    if not rest:
        return Doubt("git is given nothing to do", words[0].span)
    if (word := next((word for word in rest if word.doubt), None)) is not None:
        return Doubt(word.doubt, word.span)
    if _foreign(places):
        return Doubt("runs git in another repository, whose settings it would obey", words[0].span)
    return _subcommand_doubt(rest, places)


def _subcommand_doubt(words: list[Word], places: Places) -> Doubt | None:
    if tuple(word.text for word in words) in _FIXED:
        return None
    reader = subcommands().get(words[0].text)
    if reader is None:
        return Doubt(f"git {words[0].text} is not known to only read", words[0].span)
    return _secret(words) or reader.doubt(words, places)


def _foreign(places: Places) -> bool:
    """Whether a folder it may run in could belong to another repository than the project's own."""
    if places.root is None:
        return bool(places.folders - {""})
    top = Path(os.path.realpath(places.root))
    for folder in places.folders:
        # Links are followed first: git looks for its repository from the real folder upwards.
        real = Path(os.path.realpath(top / folder))
        above = [path for path in (real, *real.parents) if path != top and path.is_relative_to(top)]
        if not real.is_relative_to(top) or any(_marks_repository(path) for path in above):
            return True
    return False


def _marks_repository(folder: Path) -> bool:
    return any(os.path.lexists(folder / name) for name in (".git", "HEAD"))


@cache
def subcommands() -> Mapping[str, Reader]:
    """The subcommands that only read, by name."""
    return {
        name: Reader(
            options(text),
            "pattern" if name == "grep" else "paths",
            most=1 if name == "symbolic-ref" else 100_000,
            fragile=True,
            check=_check,
        )
        for name, text in _TABLE.items()
    }


def _secret(words: list[Word]) -> Doubt | None:
    """A file of an older commit is named after a colon."""
    for word in words:
        path = word.text.rpartition(":")[2]
        if looks_secret(path):
            return Doubt("looks like a secret", word.span, True)
    return None


def _pathspec_doubt(call: Call) -> Doubt | None:
    """git matches wildcards by rules of its own, at any depth and dot files too: only source files pass."""
    first = 1 if call.words[0].text == "grep" and not call.given("e") else 0
    for word in call.operands[first:]:
        wild = re.search(r"[*?\[]", word.text) and not _SOURCES.fullmatch(word.text)
        if wild or word.text.startswith(":("):
            return Doubt("git may match what looks like a secret", word.span)
    return None


def _check(call: Call) -> Doubt | None:
    name = call.words[0].text
    listing = bool(_LISTING & set(call.options)) or (name == "tag" and "l" in call.options)
    if name in _NO_OPERANDS and call.operands and not listing:
        return Doubt(f"git {name} with a name changes something", call.operands[0].span)
    if name in _CONTENT and (doubt := _pathspec_doubt(call)) is not None:
        return doubt
    for word in call.words[1:]:
        if re.search(r"%G|%\(\*?signature", word.text):
            return Doubt("the format runs a program to check signatures", word.span)
    return None
