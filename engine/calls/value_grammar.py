"""Grammar rules for the values of a call's parameters, from their JSON schema.

A rule lets through what `arguments` reads as a fitting value. What GBNF cannot say (bounds of sizes and
numbers, references, several demands at once) is left out: the rule is then wider, never narrower. The
limits there are keep a model that repeats itself from writing on for ever: numbers have at most 100
digits, a list of anything is nested at most 32 deep, and blanks in JSON are a space or one line break.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, cast

from engine.calls.arguments import read_value
from engine.calls.atem import to_json
from engine.calls.schema import Schema, fault_of, types_of
from engine.calls.text_grammar import (
    JSON_REST_AFTER_TAG,
    Rules,
    add_json_rest,
    add_json_string,
    add_text,
    fits,
    literal,
)

_GENERIC_DEPTH = 32
_SCHEMA_DEPTH = 16
_MOST_RULES = 4000
_MOST_CHOICES = 500
_MOST_KEYS = 6
_COMBINED = ("anyOf", "oneOf", "allOf")
_SHAPING = ("type", "enum", "const", "properties", "required", "items", "additionalProperties")
_ANYTHING: Schema = {}
_SCALARS: Mapping[str, str] = {
    "digits": "[0-9]{0,99}",
    "integer": '"-"? ("0" | [1-9] digits)',
    "fraction": '"." [0-9] digits',
    "number": (
        'integer fraction? ([eE] ("-" [0-9] digits | "+"? [0-9] [0-9]?))?'
        ' | "-"? [0-9] fraction? [eE] "+"? ([12] [0-9] [0-9] | "30" [0-7])'
    ),
    "boolean": '"true" | "false"',
    "null": '"null"',
    "ws": '"" | " " | "\\n" [ \\t]{0,40}',
}


class ValueGrammar:
    """Adds to the rules of one tool's grammar what the values of its parameters need."""

    def __init__(self, root: Schema, rules: Rules) -> None:
        self._root = root
        self._rules = rules
        self._count = 0

    def parameter(self, schema: Any, *, more_due: bool) -> str:
        """The rule of a raw parameter value; `more_due` as in `add_text`."""
        types = types_of(schema, self._root)
        plain = self._alternatives(schema)
        if plain is None:
            return self._raw_of_types(types, more_due)
        ways: list[str] = []
        for part in plain:
            choices = _choices(part)
            if choices is not None:
                ways += _either_of(self._words(choices, schema))
                continue
            named = types_of(part, self._root)
            if not named or "string" in named:
                return add_text(self._rules, more_due=more_due)
            readable = [name for name in named if name not in ("array", "object") or "string" not in types]
            ways += [self._of_type(name, part, 0) for name in readable]
        return self._either(ways) if ways else add_text(self._rules, more_due=more_due)

    def _raw_of_types(self, types: Sequence[str], more_due: bool) -> str:
        if not types or "string" in types:
            return add_text(self._rules, more_due=more_due)
        return self._either([self._of_type(name, _ANYTHING, _SCHEMA_DEPTH) for name in types])

    def _words(self, choices: Sequence[Any], schema: Any) -> Iterator[str]:
        """The spelling of each choice that is read back as itself."""
        for choice in choices:
            text = choice if isinstance(choice, str) else _spelt(choice)
            if text is None or not fits(text):
                continue
            try:
                read_value(text, schema, self._root)
            except ValueError:
                continue
            yield text

    def _json(self, schema: Any, depth: int) -> str:
        """The rule of a value inside JSON."""
        plain = self._alternatives(schema) if depth < _SCHEMA_DEPTH else None
        if plain is None or len(self._rules) > _MOST_RULES:
            types = types_of(schema, self._root)
            generic = [self._of_type(name, _ANYTHING, _SCHEMA_DEPTH) for name in types]
            return self._either(generic or [self._any()])
        ways: list[str] = []
        for part in plain:
            choices = _choices(part)
            if choices is not None:
                ways += _either_of(self._json_words(choices, schema))
                continue
            named = types_of(part, self._root)
            if not named:
                return self._any()
            ways += [self._of_type(name, part, depth) for name in named]
        return self._either(ways or [self._any()])

    def _json_words(self, choices: Sequence[Any], schema: Any) -> Iterator[str]:
        for choice in choices:
            text = _spelt(choice)
            if text is not None and fits(text) and fault_of(choice, schema, self._root) is None:
                yield text

    def _of_type(self, name: str, schema: Schema, depth: int) -> str:
        match name:
            case "string":
                return add_json_string(self._rules)
            case "array" if depth >= _SCHEMA_DEPTH or "items" not in schema:
                return self._generic_array(_GENERIC_DEPTH)
            case "array":
                return self._array(schema["items"], depth)
            case "object" if depth >= _SCHEMA_DEPTH:
                return self._generic_object(_GENERIC_DEPTH)
            case "object":
                return self._object(schema, depth)
            case _:
                return self._scalar(name)

    def _scalar(self, name: str) -> str:
        if name in ("integer", "number"):
            self._rules.update({key: _SCALARS[key] for key in ("digits", "integer", "fraction", "number")})
        self._rules[name] = _SCALARS[name]
        return name

    def _array(self, items: Any, depth: int) -> str:
        return self._new("array", self._listed("[", self._json(items, depth + 1), "]"))

    def _object(self, schema: Schema, depth: int) -> str:
        """A rule for each state of the keys already given.

        Of few keys each comes at most once, in any order. Of many only those required are tracked, and if
        those are many too, they come in the schema's order.
        """
        members = self._members(schema, depth)
        if members is None:
            return self._generic_object(_GENERIC_DEPTH)
        keys, due, other = members
        few = len(keys) <= _MOST_KEYS
        tracked = [key for key in keys if few or key in due]
        in_order = len(tracked) > _MOST_KEYS
        base = self._fresh("object")
        for given in range(len(tracked) + 1 if in_order else 1 << len(tracked)):
            ways: list[str] = []
            missing = set(tracked[given:]) if in_order else _unset(tracked, given)
            for key, member in keys.items():
                if key not in tracked:
                    ways.append(f"{member} {base}-{given}")
                elif in_order and key == tracked[min(given, len(tracked) - 1)] and key in missing:
                    ways.append(f"{member} {base}-{given + 1}")
                elif not in_order and (key in missing or not few):
                    ways.append(f"{member} {base}-{given | 1 << tracked.index(key)}")
            if other is not None:
                ways.append(f"{other} {base}-{given}")
            ends = [] if missing & due else ['"}"']
            more = [f'"," ws {base}-{given}-more'] if ways else []
            self._rules[f"{base}-{given}-more"] = " | ".join(ways or ends)
            self._rules[f"{base}-{given}"] = f"ws ({' | '.join(more + ends)})"
        empty = ' | "}"' if not due and (keys or other) else ""
        self._rules[base] = f'"{{" ws ({base}-0-more{empty})'
        return base

    def _members(self, schema: Schema, depth: int) -> tuple[dict[str, str], set[str], str | None] | None:
        """The known members by their keys, the keys required, and the rule of any other member."""
        properties, required = schema.get("properties", {}), schema.get("required", ())
        if not isinstance(properties, Mapping) or not isinstance(required, list | tuple):
            return None
        extra = schema.get("additionalProperties", True)
        known = dict(cast("Mapping[str, Any]", properties))
        due = {str(key) for key in cast("Sequence[Any]", required)}
        for key in due - known.keys():
            if extra is False:
                return None
            known[key] = extra
        if not all(map(_is_plain, known)):
            return None
        self._scalar("ws")
        rules = {
            key: f"{literal(json.dumps(key, ensure_ascii=False) + ':')} ws {self._json(inner, depth + 1)}"
            for key, inner in known.items()
        }
        other = None if extra is False else f'{self._other_key(known)} ":" ws {self._json(extra, depth + 1)}'
        return rules, due, other

    def _other_key(self, known: Mapping[str, Any]) -> str:
        """The rule of a JSON string that is none of the known keys, however it is spelt.

        As long as it begins like one, only those escapes may come that stand for no letter of a key.
        """
        rest = add_json_rest(self._rules)
        base = self._fresh("key")
        beginnings = {key[:end] for key in known for end in range(len(key) + 1)} | {""}
        names = {beginning: f"{base}-{index}" for index, beginning in enumerate(sorted(beginnings))}
        for beginning, name in names.items():
            nexts = {key[len(beginning)] for key in known if key.startswith(beginning) and key != beginning}
            taken = "".join(rf"\U{ord(letter):08X}" for letter in sorted(nexts))
            ways = [f"{literal(letter)} {names[beginning + letter]}" for letter in sorted(nexts)]
            ways.append(rf"[^{taken}<\x00-\x1F\x22\x5C] {rest}")
            ways.append(rf'"\\" ([\x22\x5Cbfnrt] | "u00" [01] hex) {rest}')
            ways.append(f'"<" {JSON_REST_AFTER_TAG}')
            if beginning not in known:
                ways.append(r'"\""')
            self._rules[name] = " | ".join(ways)
        self._rules[base] = rf'"\"" {names[""]}'
        return base

    def _any(self, levels: int = _GENERIC_DEPTH) -> str:
        """The rule of any JSON value with so many levels of lists and objects."""
        name = f"any-{levels}"
        if name not in self._rules:
            ways = [add_json_string(self._rules), *map(self._scalar, ("number", "boolean", "null"))]
            if levels:
                ways += [self._generic_array(levels), self._generic_object(levels)]
            self._rules[name] = " | ".join(ways)
        return name

    def _generic_array(self, levels: int) -> str:
        name = f"any-array-{levels}"
        if name not in self._rules:
            self._rules[name] = self._listed("[", self._any(levels - 1), "]")
        return name

    def _generic_object(self, levels: int) -> str:
        name = f"any-object-{levels}"
        if name not in self._rules:
            member = f'{add_json_string(self._rules)} ":" ws {self._any(levels - 1)}'
            self._rules[name] = self._listed("{", member, "}")
        return name

    def _listed(self, opening: str, item: str, closing: str) -> str:
        """What a rule stands for that holds any number of items between two brackets."""
        self._scalar("ws")
        rest = self._fresh("rest")
        self._rules[rest] = f'ws ("," ws {item} {rest} | "{closing}")'
        return f'"{opening}" ws ({item} {rest} | "{closing}")'

    def _either(self, ways: Sequence[str]) -> str:
        ways = list(dict.fromkeys(ways))
        return ways[0] if len(ways) == 1 else self._new("either", " | ".join(ways))

    def _new(self, kind: str, body: str) -> str:
        name = self._fresh(kind)
        self._rules[name] = body
        return name

    def _fresh(self, kind: str) -> str:
        self._count += 1
        return f"{kind}-v{self._count}"

    def _alternatives(self, schema: Any) -> list[Schema] | None:
        """The plain schemas one of which a value must fit; None where the schema says more than that."""
        if not isinstance(schema, Mapping):
            return [_ANYTHING]
        schema = cast("Schema", schema)
        if "$ref" in schema:
            return None
        if not any(schema.get(key) for key in _COMBINED):
            choices = _choices(schema)
            return None if choices is not None and len(choices) > _MOST_CHOICES else [schema]
        found: list[Schema] = []
        for option in _options(schema):
            inner = self._alternatives(option)
            if inner is None:
                return None
            found += inner
        return found or None


def _options(schema: Schema) -> list[Any]:
    """The options of a schema that says nothing else than to fit one of them; empty for another."""
    combined = [key for key in _COMBINED if schema.get(key)]
    options = schema[combined[0]]
    if len(combined) > 1 or not isinstance(options, list) or any(key in schema for key in _SHAPING):
        return []
    options = cast("list[Any]", options)
    return options if len(options) <= (1 if combined[0] == "allOf" else _MOST_CHOICES) else []


def _unset(keys: Sequence[str], given: int) -> set[str]:
    """The keys whose bits are not set in `given`."""
    return {key for place, key in enumerate(keys) if not given >> place & 1}


def _choices(schema: Schema) -> Sequence[Any] | None:
    if "const" in schema:
        return [schema["const"]]
    choices = schema.get("enum")
    return cast("list[Any]", choices) if isinstance(choices, list) else None


def _either_of(words: Iterable[str]) -> Iterator[str]:
    """The ways to write one of some words, with each beginning that they share written once."""
    groups: dict[str, list[str]] = {}
    for word in dict.fromkeys(words):
        groups.setdefault(word[:1], []).append(word)
    for group in groups.values():
        shared = _shared_beginning(group)
        rest = [word.removeprefix(shared) for word in group]
        yield literal(shared) if len(group) == 1 else f"{literal(shared)} ({' | '.join(_either_of(rest))})"


def _shared_beginning(words: Sequence[str]) -> str:
    columns = takewhile(lambda column: len(set(column)) == 1, zip(*words, strict=False))
    return "".join(column[0] for column in columns)


def _spelt(value: Any) -> str | None:
    """A value as JSON, or None for one that JSON or UTF-8 cannot spell."""
    try:
        text = to_json(value)
        json.loads(text, parse_constant=_refuse)
        text.encode()
    except (TypeError, ValueError, RecursionError):
        return None
    return text


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _is_plain(key: object) -> bool:
    """Whether a key's JSON is the key between quotes, and spells no tag."""
    if not isinstance(key, str) or "<" in key or not fits(key):
        return False
    return json.dumps(key, ensure_ascii=False) == f'"{key}"'
