"""Grammar rules for free text inside a call block, raw and as a JSON string.

A raw value holds anything, also the block's own tags, and ends where its closing tag is followed by what
comes next. So the rules are a small automaton: it follows the tags that a text spells and stops only what
would be read as the value's end. A text may not hold a closing tag of a parameter that is followed by an
opening tag, nor one that ends an invoke and is followed by an opening tag: the reader takes both for the
block going on. Whatever is not ASCII counts as a blank between two tags; there it is at most too careful.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from engine.calls.atem import BLOCK_CLOSE, INVOKE_CLOSE, PARAMETER_CLOSE

Rules = dict[str, str]
"""The rules of a grammar: a name, and what it stands for in GBNF."""

JSON_REST_AFTER_TAG = "chars-tag"
"""The rule, beside the one of `add_json_rest`, of what follows a `<` that begins a JSON string's text."""

_BLANKS = r"\x09\x0B-\x0D\x1C-\x20\x80-\U0010FFFF"
_JSON_BLANKS = r"\x20\x80-\U0010FFFF"
_JSON_SPECIAL = r"\x00-\x1F\x22\x5C"

_CLOSED_TAGS = {PARAMETER_CLOSE: "closed", INVOKE_CLOSE: "invoked"}
_TAGS: Mapping[str, Mapping[str, str]] = {
    "plain": {PARAMETER_CLOSE: "closed"},
    "closed": _CLOSED_TAGS,
    "line": _CLOSED_TAGS,
    "spaced": _CLOSED_TAGS,
    "invoked": {PARAMETER_CLOSE: "closed", BLOCK_CLOSE: "blocked"},
    "blocked": {PARAMETER_CLOSE: "closed"},
}
"""For each place in a text, the tags that matter there and the place after each of them."""

_AFTER_BLANK = {"closed": "spaced", "line": "spaced"}
_OPENING = "<a"
_CLOSING = "</"


@dataclass(frozen=True, slots=True)
class _State:
    """A place in a text, and how much of a tag was written since."""

    place: str
    begun: str = ""


@dataclass(frozen=True, slots=True)
class _Steps:
    """Where single characters lead (None: nowhere), where blanks do, and where all others do."""

    named: Mapping[str, _State | None]
    blank: _State | None
    other: _State


_PLAIN = _State("plain")
_LINE = _State("line")
"""Where a closed parameter ended its line and more is due; no text may end there."""


def literal(text: str) -> str:
    """A text as GBNF spells it, whatever it holds."""
    return '"' + "".join(map(_character, text)) + '"'


def add_text(rules: Rules, *, more_due: bool) -> str:
    """Add the rules of a raw text value and return the name of the first.

    With `more_due` a required parameter must still follow, and the text cannot hold a parameter's closing
    tag with another closing tag at the beginning of the next line: that is a call about to end too early.
    """
    name = "text-due" if more_due else "text"
    if name in rules:
        return name
    states = _states(more_due)
    names = {state: f"{name}-{index}" if index else name for index, state in enumerate(states)}
    for state in states:
        steps = _steps(state, more_due)
        named = "".join(map(_character, steps.named))
        ways = [*_named_ways(steps, names)] if state == _LINE else ['""', *_named_ways(steps, names)]
        if steps.blank is not None:
            blanks = _BLANKS if "\n" in steps.named else _BLANKS + r"\x0A"
            ways.append(f"[{blanks}] {names[steps.blank]}")
            named += blanks
        ways.append(f"[^{named}] {names[steps.other]}")
        rules[names[state]] = " | ".join(ways)
    return name


def add_json_string(rules: Rules) -> str:
    """Add the rules of a JSON string, quotes and all, and return the name of the first."""
    if "string" not in rules:
        rules["string"] = f'"\\"" {add_json_rest(rules)}'
    return "string"


def add_json_rest(rules: Rules) -> str:
    """Add the rules of what follows a JSON string's opening quote and return the name of the first."""
    if "chars" in rules:
        return "chars"
    states = _states(False)
    names = {state: f"chars-{index}" if index else "chars" for index, state in enumerate(states)}
    for state in states:
        steps = _steps(state, False)
        named = "".join(_character(name) for name in steps.named) + _JSON_SPECIAL
        ways = [r'"\""', rf'"\\" escaped {names[_PLAIN]}', *_named_ways(steps, names)]
        if steps.blank is not None:
            ways.append(f"[{_JSON_BLANKS}] {names[steps.blank]}")
            named += _JSON_BLANKS
        ways.append(f"[^{named}] {names[steps.other]}")
        rules[names[state]] = " | ".join(ways)
    rules[JSON_REST_AFTER_TAG] = names[_State("plain", "<")]
    rules["hex"] = "[0-9a-fA-F]"
    rules["escaped"] = (
        r'[\x22\x5C/bfnrt] | "u" [0-9abcefABCEF] hex hex hex | "u" [dD] [0-7] hex hex'
        r' | "u" [dD] [89abAB] hex hex "\\u" [dD] [c-fC-F] hex hex'
    )
    return "chars"


def fits(text: str) -> bool:
    """Whether the rules of a text value let this one through, more due or not."""
    if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        return False
    state: _State | None = _PLAIN
    for letter in text:
        steps = _steps(state, True)
        if letter in steps.named:
            state = steps.named[letter]
        elif steps.blank is not None and (letter >= "\x80" or letter.isspace()):
            state = steps.blank
        else:
            state = steps.other
        if state is None:
            return False
    return state != _LINE


def _character(letter: str) -> str:
    code = ord(letter)
    if letter.isascii():
        return letter if letter.isalnum() else f"\\x{code:02X}"
    return f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"


def _named_ways(steps: _Steps, names: Mapping[_State, str]) -> Iterator[str]:
    for letter, target in steps.named.items():
        if target is not None:
            yield f"{literal(letter)} {names[target]}"


@cache
def _states(more_due: bool) -> tuple[_State, ...]:
    """All states that a text can come to, the first one first."""
    states = [_PLAIN]
    for state in states:
        steps = _steps(state, more_due)
        for target in (*steps.named.values(), steps.blank):
            if target is not None and target not in states:
                states.append(target)
    return tuple(states)


@cache
def _steps(state: _State, more_due: bool) -> _Steps:
    tags, begun = _TAGS[state.place], state.begun
    named: dict[str, _State | None] = {}
    for tag, place in tags.items():
        if tag.startswith(begun):
            reached = tag[: len(begun) + 1]
            named[reached[-1]] = _State(place) if reached == tag else _begun(state.place, reached, more_due)
    for banned in _banned(state.place, more_due):
        if banned[:-1] == begun:
            named[banned[-1]] = None
    if begun:
        named.setdefault("<", _State("plain", "<"))
        return _Steps(named, None, _PLAIN)
    if more_due and state.place == "closed":
        named["\n"] = _State("line")
    blank = None if state == _PLAIN else _State(_AFTER_BLANK.get(state.place, state.place))
    return _Steps(named, blank, _PLAIN)


def _banned(place: str, more_due: bool) -> tuple[str, ...]:
    if place == "plain":
        return ()
    return (_OPENING, _CLOSING) if more_due and place == "line" else (_OPENING,)


def _begun(place: str, begun: str, more_due: bool) -> _State:
    """The state after the beginning of a tag, at the simplest place where the same may follow."""
    if begun != "<" and all(tag in _TAGS["plain"] for tag in _TAGS[place] if tag.startswith(begun)):
        return _State("plain", begun)
    if place in _AFTER_BLANK.values() or (place == "line" and not more_due):
        return _State("closed", begun)
    return _State(place, begun)
