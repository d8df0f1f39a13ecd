"""The readers whose arguments are a small language of their own: find, sed, printf, test and their like."""

import re
from collections.abc import Iterable

from sandbox.commands.options import Call
from sandbox.commands.places import Places
from sandbox.commands.searched import Search, searched_doubt
from sandbox.commands.words import Doubt, Word, names
from sandbox.sensitive import ends_like_source

_FIND_PLAIN = names(
    "-print -print0 -depth -empty -true -false -prune -not ! ( ) -a -and -o -or , -daystart -mount -xdev "
    "-noleaf -readable -writable -executable -nouser -nogroup -ls -quit -warn -nowarn -H -P"
)
_FIND_TEXT = names(
    "-name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -type -xtype -maxdepth "
    "-mindepth -size -mtime -mmin -atime -amin -ctime -cmin -perm -user -group -uid -gid -links -lname "
    "-ilname -inum -used -fstype -printf"
)
_FIND_FILE = frozenset({"-newer", "-anewer", "-cnewer", "-samefile"})
_TEST_OPERATORS = names(
    "-e -f -d -r -w -x -s -z -n -L -h -p -S -b -c -g -u -k -O -G -N -t -a -o -eq -ne -lt -le -gt -ge -nt "
    "-ot -ef"
)
_SOURCE_TYPES = frozenset({"py", "python", "go", "rust"})
_REGEX = r"(?:[^/\\\n\[]|\\[^\n]|\[(?:\^[^\]/\\\n\[]+|[^\^\]/\\\n\[][^\]/\\\n\[]*)\])*"
_ADDRESS = rf"(?:\d+(?:~\d+)?|\$|/{_REGEX}/I?)"
_SUBSTITUTE = "|".join(
    (
        rf"s/{_REGEX}/(?:[^/\\\n]|\\[^\n])*/[gpiI0-9]*",
        *(rf"s{d}[^{d}\\\n\[]*{d}[^{d}\\\n]*{d}[gpiI0-9]*" for d in ("\\|", "#", ",", ":", "@")),
    )
)
_RANGE = rf"(?:{_ADDRESS}(?:,[ \t]*(?:{_ADDRESS}|\+\d+))?)?"
_SED_COMMAND = rf"[ \t]*{_RANGE}[ \t]*!?[ \t]*(?:[pdqlnNPDxhHgG=]|{_SUBSTITUTE})[ \t]*"
_SED_SCRIPT = re.compile(rf"{_SED_COMMAND}(?:[;\n]{_SED_COMMAND})*;?\s*")
_PRINTS_INTO_VARIABLE = re.compile(r"%[^A-Za-z%(]*[hlLjzt]*n")


def find_doubt(words: list[Word], places: Places) -> Doubt | None:
    """Why a `find` asks: an action that writes or runs, a place outside, or a wildcard that becomes one."""
    if (doubt := _first(_plain_word(word, places) for word in words[1:])) is not None:
        return doubt
    rest = words[1:]
    starts = True
    while rest and doubt is None:
        word = rest.pop(0)
        if starts and not word.text.startswith("-") and word.text not in {"(", ")", "!", ","}:
            doubt = places.doubt(word)
            continue
        starts = starts and word.text in {"-H", "-P"}
        if word.text not in _FIND_PLAIN:
            doubt = _find_value(word, rest, places)
    return doubt


def _find_value(word: Word, rest: list[Word], places: Places) -> Doubt | None:
    if word.text not in _FIND_TEXT | _FIND_FILE:
        return Doubt(f"find's {word.text} is not known to only read", word.span)
    if not rest:
        return Doubt(f"find's {word.text} lacks its value", word.span)
    value = rest.pop(0)
    if re.match(r"-[^0-9]", value.text):
        return Doubt("an option's value looks like an option", value.span)
    return places.doubt(value) if word.text in _FIND_FILE else None


def _first(doubts: Iterable[Doubt | None]) -> Doubt | None:
    return next((doubt for doubt in doubts if doubt is not None), None)


def _plain_word(word: Word, places: Places) -> Doubt | None:
    if word.doubt:
        return Doubt(word.doubt, word.span)
    if not word.glob:
        return None
    matches = places.matches(word)
    risky = word.text[0] in "*?[-" if matches is None else any(match.startswith("-") for match in matches)
    return Doubt("a file it matches may be taken for an option", word.span) if risky else None


def sed_check(call: Call) -> Doubt | None:
    """Only scripts of printing, deleting from the output and substituting; `w`, `e`, `r` and labels ask."""
    if call.late:
        return Doubt("gives an option where it may be taken for a script or a file", call.late[0].span)
    scripts = call.given("e", "expression") or call.operands[:1]
    if len(scripts) < max(1, sum(name in {"e", "expression"} for name in call.options)):
        return Doubt("sed's script could not be told from its options", call.words[0].span)
    for script in scripts:
        if script.glob or not _SED_SCRIPT.fullmatch(script.text):
            return Doubt("sed's script is not known to only print", script.span)
    return None


def grep_check(call: Call) -> Doubt | None:
    """A search through folders asks when one of them holds a secret."""
    if not {"r", "recursive"} & set(call.options):
        return None
    skipped = frozenset(word.text for word in call.given("exclude-dir") if not word.glob)
    return _searched(call, _searched_paths(call), Search(hidden=True, skipped=skipped))


def rg_check(call: Call) -> Doubt | None:
    """As for grep. Dot files are left out by rg itself, until a glob or a type may ask for them.

    A list of files reads none of them.
    """
    if "files" in call.options:
        return None
    globs = [word.text for word in call.given("g", "glob", "iglob")]
    types = {word.text for word in call.given("t", "type")}
    lifted = any(not (glob.startswith("!") or ends_like_source(glob)) for glob in globs)
    return _searched(call, _searched_paths(call), Search(hidden=lifted or not types <= _SOURCE_TYPES))


def diff_check(call: Call) -> Doubt | None:
    """Comparing folders reads everything in them, and what their links lead to."""
    return _searched(call, call.operands, Search(hidden=True, follows=True)) if call.operands else None


def _searched_paths(call: Call) -> list[Word]:
    given = {"e", "f", "regexp", "file"} & set(call.options)
    return call.operands if given else call.operands[1:]


def _searched(call: Call, paths: list[Word], search: Search) -> Doubt | None:
    """What is wrong with a path itself is told first, elsewhere."""
    if any(call.places.doubt(word) for word in paths):
        return None
    return searched_doubt(call.places, paths, call.words[0].span, search)


def printf_check(call: Call) -> Doubt | None:
    """printf sets a variable with `-v` and with `%n`, and a variable can choose which program runs next."""
    first = call.operands[0] if call.operands else None
    if first is None or first.doubt or first.glob:
        return Doubt("printf's format is not literal", (first or call.words[0]).span)
    if _PRINTS_INTO_VARIABLE.search(first.text.replace("%%", "")):
        return Doubt("printf's %n sets a variable", first.span)
    return None


def test_doubt(words: list[Word], places: Places) -> Doubt | None:
    """`test` and `[`: the plain tests only; -v and -R look up variables, whose subscripts run commands."""
    for word in words[1:]:
        if word.doubt:
            return Doubt(word.doubt, word.span)
        if (
            word.text.startswith("-")
            and not re.fullmatch(r"-\d+", word.text)
            and word.text not in _TEST_OPERATORS
        ):
            return Doubt(f"the test {word.text} is not known to only read", word.span)
        if word.glob and word.text[0] in "*?[-" and (places.root is None or places.matches(word)):
            return Doubt("a file it matches may be taken for an operator", word.span)
        if not word.text.startswith("-") and (doubt := places.doubt(word)) is not None:
            return doubt
    return None


def date_check(call: Call) -> Doubt | None:
    """date sets the clock when it is given a time rather than a format."""
    bad = next((word for word in call.operands if word.glob or not word.text.startswith("+")), None)
    return Doubt("date may set the clock", bad.span) if bad else None


def sleep_check(call: Call) -> Doubt | None:
    """A short wait only."""
    for word in call.operands:
        if not re.fullmatch(r"\d{1,2}(\.\d{1,3})?s?|\.\d{1,3}", word.text):
            return Doubt("waits long", word.span)
    return None


def tree_check(call: Call) -> Doubt | None:
    """tree reads an option's value from the next word: what looks attached to it is more options."""
    for word in call.words[1:]:
        if re.match(r"-[^-]*[LIP].", word.text) or re.match(r"-[^-]+[LIP]", word.text):
            return Doubt(f"the option {word.text} is not known to only read", word.span)
    return None


def jq_check(call: Call) -> Doubt | None:
    """jq's filter reads no other file and no environment variable."""
    for word in call.operands[:1]:
        if word.glob or re.search(r"import|include|env|ENV|get_search_list|modulemeta", word.text):
            return Doubt("jq's filter reads more than its input", word.span)
    return None


def strings_check(call: Call) -> Doubt | None:
    """The binutils read options from a file named after an at sign."""
    bad = next((word for word in call.words[1:] if word.text.startswith("@") or word.glob), None)
    return Doubt("names a file that holds options", bad.span) if bad else None


def xxd_check(call: Call) -> Doubt | None:
    """xxd looks at an option's first letters only: what looks like several options in one is one option."""
    words = list(call.words[1:])
    while words and words[0].text.startswith("-") and words[0].text not in {"-", "--"}:
        word = words.pop(0)
        if re.fullmatch(r"-[lscg]", word.text) and words:
            word = words.pop(0)
            if re.fullmatch(r"0x[0-9a-fA-F]+|[+-]?\d+", word.text):
                continue
        if not re.fullmatch(r"-[pubEi]|-[lscg]\d+", word.text):
            return Doubt(f"the option {word.text} is not known to only read", word.span)
    return None


def hostname_check(call: Call) -> Doubt | None:
    """hostname sets the name when it is given one."""
    return Doubt("sets the host's name", call.operands[0].span) if call.operands else None
