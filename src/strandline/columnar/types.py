"""Spark's types as Arrow's, and what is left to Spark."""

from __future__ import annotations

import re

import pyarrow as pa

MOST_DIGITS = 38
"""Decimals of more digits lose some in Spark, by rules of its own."""

_TYPES = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")

_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}
"""The digits of the decimals that whole numbers become beside decimals."""


class NotHere(Exception):
    """What is asked for has to be computed by Spark: why."""


def arrow_type(kind: str) -> pa.DataType:
    """The type of Arrow for one of Spark's, which may be of single values only."""
    if kind in _TYPES:
        return _TYPES[kind]
    found = _DECIMAL.fullmatch(kind)
    if found is None:
        raise NotHere(f"values of type {kind}")
    return pa.decimal128(int(found[1]), int(found[2]))


def decimal(digits: int, scale: int) -> pa.DataType:
    """A decimal that no digits are lost in."""
    if digits > MOST_DIGITS:
        raise NotHere(f"decimals of {digits} digits")
    return pa.decimal128(digits, scale)


def result(digits: int, scale: int) -> pa.DataType:
    """The decimal that a result of so many digits has in Spark: one of more than there can be loses none behind 6."""
    if digits <= MOST_DIGITS:
        return pa.decimal128(digits, scale)
    whole = digits - scale
    return pa.decimal128(MOST_DIGITS, max(MOST_DIGITS - whole, min(scale, 6)))


def as_decimal(kind: pa.DataType) -> pa.DataType:
    """The decimal that a number is taken for beside decimals."""
    if pa.types.is_decimal(kind):
        return kind
    if kind in _DIGITS:
        return pa.decimal128(_DIGITS[kind], 0)
    raise NotHere(f"{kind} beside decimals")


def common(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """The type in which values of two types are compared, or chosen from."""
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    if pa.types.is_signed_integer(one) and pa.types.is_signed_integer(other):
        return max(one, other, key=lambda kind: kind.bit_width)
    a, b = as_decimal(one), as_decimal(other)
    scale = max(a.scale, b.scale)
    return decimal(max(a.precision - a.scale, b.precision - b.scale) + scale, scale)


def told_apart(kind: pa.DataType) -> bool:
    """Whether values of a type are equal to Arrow just if they are to Spark; of floating numbers some are not."""
    return not pa.types.is_floating(kind) and not pa.types.is_nested(kind) and not pa.types.is_null(kind)
