"""Conditions in PostgreSQL's dialect, where they are certain to have the result there that they have in Spark.

What PostgreSQL compares is not always what Spark would: text follows a collation there, ``char(n)`` ignores blanks, a
``numeric`` can be NaN and a date infinite. So a column comes with what is known of it (:class:`Comparand`), and a
condition outside of what is certain is not translated: whoever asks evaluates it on the rows that come.

A value that Spark's type cannot hold has no counterpart in Spark. An equation with an ordinary value never holds for
it, neither here nor there. Any other condition may hold for it here. Where such a value is an error, the column is
*checked*: it is to be read of the rows that come, so that the error shows. Where it is taken for NULL, the condition is
not translated.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Literal

from strandline.algebra.scalar import COMPARISONS, Call, Col, Lit, Scalar, Text
from strandline.algebra.scalar import columns as columns_of

Family = Literal["number", "float", "double", "boolean", "text", "date", "timestamp", "timestamp_ntz", "binary"]

DEFAULT_COLLATION = 100
"""The number of the collation that gives way to any other one."""

BYTES = 'COLLATE "C"'
"""Text compared byte by byte, as Spark does it."""

_MOST_DIGITS = 38
"""Of a decimal in Spark: numbers that need more to be compared are not compared exactly."""

_BIGGEST = 2**63
"""Of a whole number in Spark."""

_UUID = "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"
_DATE = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")
_INTEGERS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
_FAMILIES: dict[str, Family] = {
    "float": "float",
    "double": "double",
    "boolean": "boolean",
    "string": "text",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_ntz": "timestamp_ntz",
    "binary": "binary",
}


@dataclass(frozen=True)
class Comparand:
    """An expression of PostgreSQL's SQL, and what is known of its values.

    Without a *family* it can only be asked whether it is NULL. *digits* are those of a number before and behind the
    point. *collation* is None for text that has to be told to be compared by bytes. *special* says what becomes of
    values that Spark's type cannot hold, ``never`` if there are none. *indexed* is a column of another type whose text
    form the expression is, and its type: PostgreSQL finds rows by it.
    """

    sql: str
    family: Family | None
    digits: tuple[int, int] = (0, 0)
    collation: int | None = DEFAULT_COLLATION
    special: Literal["never", "fail", "null"] = "never"
    indexed: tuple[str, Literal["uuid", "bpchar"]] | None = None


@dataclass(frozen=True)
class Translated:
    """A condition, the columns that it reads, and those that are to be read of the rows for which it holds."""

    sql: str
    read: frozenset[str]
    checked: frozenset[str]


def comparand(sql: str, type_: str) -> Comparand:
    """An expression whose values are exactly those of a type of Spark."""
    if type_ in _INTEGERS:
        return Comparand(sql, "number", (_INTEGERS[type_], 0))
    decimal = re.fullmatch(r"decimal\((\d+),(\d+)\)", type_)
    if decimal is not None:
        precision, scale = int(decimal[1]), int(decimal[2])
        return Comparand(sql, "number", (precision - scale, scale))
    return Comparand(sql, _FAMILIES.get(type_))


def translated(condition: Scalar, columns: Mapping[str, Comparand]) -> tuple[list[Translated], bool]:
    """What of *condition* can be evaluated in PostgreSQL, and whether that is all of it.

    Of a conjunction some parts may be; a column that is not among *columns* cannot be read there.
    """
    try:
        tree = _meaning(condition)
        if isinstance(tree, Call) and tree.op == "and":
            parts = [translated(arg, columns) for arg in tree.args]
            return [each for found, _ in parts for each in found], all(whole for _, whole in parts)
        return [_whole(tree, columns)], True
    except _Untranslatable:
        return [], False


class _Untranslatable(Exception):
    """The condition may have another result in PostgreSQL."""


def _meaning(scalar: Scalar) -> Scalar:
    """The tree of a user's text. One with a cast in it has the values of its tree, and not their types."""
    while isinstance(scalar, Text):
        if scalar.meaning is None or any(isinstance(f, str) and "cast" in f.lower() for f in scalar.fragments):
            raise _Untranslatable
        scalar = scalar.meaning
    return scalar


def _whole(condition: Scalar, columns: Mapping[str, Comparand]) -> Translated:
    """A condition that stands for itself: it makes no difference whether it is false or NULL."""
    if not columns_of(condition):
        raise _Untranslatable
    match condition:
        case Call("=", args):
            left, right = _sides(args, columns)
            ordinary = "never" in (left.special, right.special)
            checked = frozenset[str]() if ordinary else _checked(condition, columns)
            return Translated(_equation(left, right), columns_of(condition), checked)
    checked = _checked(condition, columns)
    return Translated(_predicate(condition, columns), columns_of(condition), checked)


def _checked(scalar: Scalar, columns: Mapping[str, Comparand]) -> frozenset[str]:
    match _meaning(scalar):
        case Col(name) as column:
            special = _column(column, columns).special
            if special == "null":
                raise _Untranslatable
            return frozenset({name} if special == "fail" else ())
        case Call(args=args):
            return frozenset[str]().union(*(_checked(arg, columns) for arg in args))
    return frozenset()


def _equation(left: Comparand, right: Comparand) -> str:
    """``left = right`` in a form for which PostgreSQL can use an index where there may be one."""
    exact = _comparison("=", left, right)
    for ours, theirs in ((left, right), (right, left)):
        match ours.indexed, theirs.indexed:
            case (own, "uuid"), (other, "uuid"):
                return f"{own} = {other}"
            case (own, "uuid"), None:
                return f"{own} = CASE WHEN {theirs.sql} {BYTES} ~ '{_UUID}' THEN ({theirs.sql})::uuid END"
            case (own, "bpchar"), None if theirs.collation == DEFAULT_COLLATION:
                return f"{own} = ({theirs.sql})::bpchar AND {exact}"
    return exact


def _predicate(scalar: Scalar, columns: Mapping[str, Comparand]) -> str:
    scalar = _meaning(scalar)
    match scalar:
        case Call("and" | "or" as op, args):
            return "(" + f" {op.upper()} ".join(_predicate(arg, columns) for arg in args) + ")"
        case Call("not", (arg,)):
            return f"(NOT {_predicate(arg, columns)})"
        case Call("is null" | "is not null" as op, (arg,)):
            return f"({_column(arg, columns).sql} {op.upper()})"
        case Call(op, args) if op in COMPARISONS or op == "<=>":
            return f"({_comparison(op, *_sides(args, columns))})"
        case Col() if _column(scalar, columns).family == "boolean":
            return _column(scalar, columns).sql
        case Lit(bool() as value):
            return str(value)
    raise _Untranslatable


def _sides(args: tuple[Scalar, ...], columns: Mapping[str, Comparand]) -> tuple[Comparand, Comparand]:
    left, right = map(_meaning, args)
    match left, right:
        case Col(), Col():
            return _column(left, columns), _column(right, columns)
        case Col(), Lit(value):
            return _column(left, columns), _literal(value, _column(left, columns))
        case Lit(value), Col():
            return _literal(value, _column(right, columns)), _column(right, columns)
    raise _Untranslatable


def _column(scalar: Scalar, columns: Mapping[str, Comparand]) -> Comparand:
    scalar = _meaning(scalar)
    if not isinstance(scalar, Col) or scalar.name not in columns:
        raise _Untranslatable
    return columns[scalar.name]


def _comparison(op: str, left: Comparand, right: Comparand) -> str:
    if not _compared_alike(left, right):
        raise _Untranslatable
    written = "IS NOT DISTINCT FROM" if op == "<=>" else op
    if left.family == "text" and not _same_as_bytes(op, left, right):
        return f"{left.sql} {BYTES} {written} {right.sql} {BYTES}"
    return f"{left.sql} {written} {right.sql}"


def _compared_alike(left: Comparand, right: Comparand) -> bool:
    match left.family, right.family:
        case (None, _) | (_, None):
            return False
        case "number", "number":
            widest = [max(pair) for pair in zip(left.digits, right.digits, strict=True)]
            return sum(widest) <= _MOST_DIGITS
        case (("float" | "double"), ("float" | "double")):
            # NaN equals itself and is above all numbers, there as here.
            return True
        case one, other:
            return one == other


def _same_as_bytes(op: str, left: Comparand, right: Comparand) -> bool:
    """Whether text is equal if its bytes are, and PostgreSQL knows by which collation it is to find that out."""
    if op not in ("=", "<>", "<=>") or None in (left.collation, right.collation):
        return False
    return left.collation == right.collation or DEFAULT_COLLATION in (left.collation, right.collation)


def _literal(value: object, beside: Comparand) -> Comparand:
    """A constant as Spark takes it beside a column."""
    match beside.family, value:
        case "boolean", bool():
            return Comparand(str(value), "boolean")
        case _, bool():
            raise _Untranslatable
        case "number", int() | Decimal() if not -_BIGGEST <= value < _BIGGEST:
            # Spark takes whole numbers to be below or above such a constant, even where they are NULL.
            raise _Untranslatable
        case "number", int():
            return Comparand(f"({value})", "number", (10 if -(2**31) <= value < 2**31 else 20, 0))
        case "number", Decimal():
            return Comparand(f"({value:f})", "number", _digits(value))
        case "double", int() | Decimal() | float():
            return Comparand(f"'{float(value)!r}'::float8", "double")
        case "text", str() if "\0" not in value:
            return Comparand(f"{text_literal(value)}::text", "text")
        case "date", str() if _is_day(value):
            return Comparand(f"'{value}'::date", "date")
    raise _Untranslatable


def _digits(value: Decimal) -> tuple[int, int]:
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    return max(len(digits) + exponent, 0), max(-exponent, 0)


def _is_day(text: str) -> bool:
    """Whether Spark takes *text* for a day, as PostgreSQL does."""
    if _DATE.fullmatch(text) is None:
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def text_literal(text: str) -> str:
    """*text* as a literal of PostgreSQL, whatever its setting for backslashes is."""
    quoted = "'" + text.replace("'", "''") + "'"
    return " E" + quoted.replace("\\", "\\\\") if "\\" in text else quoted
