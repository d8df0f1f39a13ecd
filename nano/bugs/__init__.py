"""Kinds of small Python bugs: each kind draws a function that is right in one form and wrong in another."""

from nano.bugs import collections, conditions, faults, numbers, text
from nano.bugs.function import Function, Kind, draw, draw_twin

KINDS: tuple[Kind, ...] = (
    *numbers.KINDS,
    *conditions.KINDS,
    *collections.KINDS,
    *text.KINDS,
    *faults.KINDS,
)
# Kinds with few names, where two functions of a file may well share a line.
TWIN_KINDS: tuple[Kind, ...] = (
    collections.position,
    collections.ordered,
    collections.summary,
    collections.sides,
    conditions.empty,
    text.letter_case,
    text.trimmed,
    text.initial,
)

__all__ = ["KINDS", "TWIN_KINDS", "Function", "Kind", "draw", "draw_twin"]
