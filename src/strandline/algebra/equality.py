"""What it means for values of one type or of two to be equal, as far as keys rest on it.

Spark compares values of two types in a common one. There, or by a collation, values may be equal that are not the same.
"""

from __future__ import annotations

import re

WHOLE_NUMBERS = ("tinyint", "smallint", "int", "bigint")

_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_WITHOUT_LOSS = {
    "tinyint": ("float", "double"),
    "smallint": ("float", "double"),
    "int": ("double",),
    "float": ("double",),
    "date": ("timestamp", "timestamp_ntz"),
}
"""What values of a type become where they are compared with one of these others, each one another."""

_MOST_DIGITS = 38
"""Of a decimal number; where the common type would need more, Spark leaves out places behind the point."""


def equal_is_same(kind: str) -> bool:
    """Whether values of a type are equal only if they are the same: unlike 0.0 and -0.0, or texts by a collation."""
    return not any(word in kind for word in ("float", "double", "collate"))


def alike_types(one: str, other: str) -> bool:
    """Whether values of two types that are equal have the same order in both."""
    return one == other or (one in WHOLE_NUMBERS and other in WHOLE_NUMBERS)


def kept_apart(kind: str, other: str) -> bool:
    """Whether of values of type *kind* that differ, at most one equals any value of type *other*.

    Not so of texts, where both '1' and '01' are equal to 1, nor of whole numbers beside floating ones.
    """
    if kind == other or other in _WITHOUT_LOSS.get(kind, ()):
        return True
    ours, theirs = _exact(kind), _exact(other)
    if ours is None or theirs is None:
        return False
    before = max(digits - scale for digits, scale in (ours, theirs))
    return before + max(ours[1], theirs[1]) <= _MOST_DIGITS


def _exact(kind: str) -> tuple[int, int] | None:
    """How many digits an exact number has in all, and behind the point."""
    if kind in _DIGITS:
        return _DIGITS[kind], 0
    found = _DECIMAL.fullmatch(kind)
    return (int(found[1]), int(found[2])) if found else None
