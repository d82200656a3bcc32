"""Functions of a DataFrame's plan as text. Operators are written as operators; every other function as it is called."""

from __future__ import annotations

import re
from collections.abc import Sequence

from strandline.sql.frames.printed import AND, ATOM, COMPARISON, NOT, OR, PRODUCT, SUM, UNARY, Printed, infix
from strandline.sql.frames.refusals import refused
from strandline.sql.functions import GENERATORS, NON_DETERMINISTIC

_INFIX = {
    "and": ("AND", AND),
    "or": ("OR", OR),
    "==": ("=", COMPARISON),
    **{name: (name, COMPARISON) for name in ("=", "<=>", "<", "<=", ">", ">=")},
    **{name: (name.upper(), COMPARISON) for name in ("like", "rlike", "ilike")},
    **{name: (name, SUM) for name in ("+", "-")},
    **{name: (name, PRODUCT) for name in ("*", "/", "%")},
}
_BITS = ("&", "|", "^")
_POSTFIX = {"isnull": "IS NULL", "isnotnull": "IS NOT NULL"}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def seals(name: str) -> bool:
    """Whether a function makes other rows of a row, or another value each time."""
    return name.lower() in GENERATORS | NON_DETERMINISTIC


def called(name: str, arguments: Sequence[Printed], *, distinct: bool = False) -> Printed:
    """A function of the plan applied to its arguments."""
    folded = name.lower()
    if folded in _INFIX and len(arguments) == 2:
        return infix(*_INFIX[folded], *arguments)
    if folded in _BITS and len(arguments) == 2:
        # Parsers differ in how strongly these hold, so both sides are always set apart.
        return Printed(f"{arguments[0].within(UNARY)} {name} {arguments[1].within(UNARY)}", COMPARISON)
    if folded in _POSTFIX and len(arguments) == 1:
        return Printed(f"{arguments[0].within(COMPARISON)} {_POSTFIX[folded]}", COMPARISON)
    if folded in ("not", "!"):
        return Printed(f"NOT {arguments[0].within(NOT)}", NOT)
    if folded == "~":
        return Printed(f"~{arguments[0].within(UNARY)}", UNARY)
    if folded == "in":
        return _membership(arguments)
    if folded == "when":
        return Printed(_case(arguments))
    if not _NAME.fullmatch(name):
        raise refused(f"the function {name}")
    words = ", ".join(argument.sql for argument in arguments)
    return Printed(f"{name}({'DISTINCT ' if distinct else ''}{words})", ATOM)


def _membership(arguments: Sequence[Printed]) -> Printed:
    value, *choices = arguments
    if not choices:
        # Spark gives false for an empty list, and NULL for no value in it.
        raise refused("isin() without a value", "give it at least one")
    return Printed(f"{value.within(COMPARISON)} IN ({', '.join(choice.sql for choice in choices)})", COMPARISON)


def _case(arguments: Sequence[Printed]) -> str:
    pairs = zip(arguments[::2], arguments[1::2], strict=False)
    branches = " ".join(f"WHEN {condition.sql} THEN {value.sql}" for condition, value in pairs)
    rest = f" ELSE {arguments[-1].sql}" if len(arguments) % 2 else ""
    return f"CASE {branches}{rest} END"
