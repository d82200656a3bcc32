"""Numbers computed by Spark's rules: what they become, and when that is an error, which is left to Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal, localcontext

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from strandline.columnar.types import MOST_DIGITS, NotHere, as_decimal, common, decimal, result
from strandline.columnar.values import Value, written_type

MOST_QUOTIENTS = 500_000
"""Decimals are divided one by one: of more rows that is left to Spark."""

_DIGITS_BEHIND = 39
"""The digits behind the point with which Spark divides decimals, before it rounds to those that the result has."""

_EXACT = Context(prec=MOST_DIGITS)


def arithmetic(op: str, name: str) -> Callable[[Sequence[Value]], Value]:
    """What computes *op* of two numbers; *name* is the function of Arrow that does."""

    def compute(args: Sequence[Value]) -> Value:
        one, other = args
        kinds = (one.type, other.type)
        if any(map(pa.types.is_null, kinds)):
            raise NotHere("arithmetic with NULL")
        if any(map(pa.types.is_floating, kinds)):
            return _floating(name, one, other)
        if any(map(pa.types.is_decimal, kinds)):
            return _of_decimals(op, name, one, other)
        if op == "/" or not all(map(pa.types.is_signed_integer, kinds)):
            raise NotHere(f"{kinds[0]} {op} {kinds[1]}")
        kind = common(*kinds)
        return Value(pc.call_function(name, [one.cast(kind).data, other.cast(kind).data]))

    return compute


def _floating(name: str, one: Value, other: Value) -> Value:
    if one.type != other.type or name == "divide_checked":
        raise NotHere("floating numbers beside others")
    return Value(pc.call_function(name.removesuffix("_checked"), [one.data, other.data]))


def _of_decimals(op: str, name: str, one: Value, other: Value) -> Value:
    a, b = _decimal_value(one), _decimal_value(other)
    if op == "/":
        return _quotient(a, b)
    x, y = a.type, b.type
    if op == "*":
        digits, scale = x.precision + y.precision + 1, x.scale + y.scale
    else:
        scale = max(x.scale, y.scale)
        digits = max(x.precision - x.scale, y.precision - y.scale) + scale + 1
    kind = result(digits, scale)
    if kind.scale < scale:
        raise NotHere(f"a result of {digits} digits, which is rounded")
    if digits > MOST_DIGITS:
        a, b = narrow(a), narrow(b)
    return Value(pc.call_function(name, [a.data, b.data])).cast(kind)


def narrow(value: Value) -> Value:
    """Decimals of no more digits than the largest of them has: a result of theirs may fit then."""
    ends = [value.data.as_py()] if value.constant else pc.min_max(value.data).as_py().values()
    most = max((abs(end) for end in ends if end is not None), default=Decimal(0))
    digits = len(str(int(most.scaleb(value.type.scale, _EXACT))))
    return value.cast(decimal(max(digits, value.type.scale, 1), value.type.scale))


def _quotient(one: Value, other: Value) -> Value:
    a, b = one.type, other.type
    behind = max(6, a.scale + b.precision + 1)
    kind = result(a.precision - a.scale + b.scale + behind, behind)
    scale = kind.scale
    if one.constant and other.constant:
        found = _divided(one.data.as_py(), other.data.as_py(), scale)
        return Value(pa.scalar(found, kind))
    length = len(other.data) if one.constant else len(one.data)
    both = pa.table({
        name: pa.repeat(each.data, length) if each.constant else each.data
        for name, each in (("one", one), ("other", other))
    }).append_column("place", pa.array(np.arange(length)))  # fmt: skip
    # Often one of them is the same for all rows, or for all of a group.
    pairs = both.group_by(["one", "other"]).aggregate([("place", "list")])
    if pairs.num_rows > MOST_QUOTIENTS:
        raise NotHere(f"{pairs.num_rows} quotients of decimals")
    sides = zip(pairs["one"].to_pylist(), pairs["other"].to_pylist(), strict=True)
    divided = [_divided(x, y, scale) for x, y in sides]
    places = pairs["place_list"].combine_chunks()
    quotients = pa.array(divided, kind).take(pc.list_parent_indices(places))
    return Value(quotients.take(pc.sort_indices(places.flatten())))


def _divided(one: Decimal | None, other: Decimal | None, scale: int) -> Decimal | None:
    if one is None or other is None:
        return None
    if not other:
        raise NotHere("a division by 0")
    with localcontext(prec=120, rounding=ROUND_HALF_UP):
        exact = (one / other).quantize(Decimal(1).scaleb(-_DIGITS_BEHIND))
        return exact.quantize(Decimal(1).scaleb(-scale))


def _decimal_value(value: Value) -> Value:
    """A number beside decimals; one that stands in the text has no more digits than are written."""
    if value.suffixed and pa.types.is_integer(value.type):
        raise NotHere("a number that may have a suffix, beside decimals")
    if value.written and pa.types.is_integer(value.type):
        exact = Decimal(value.data.as_py())
        return Value(pa.scalar(exact, written_type(exact)))
    return value.cast(as_decimal(value.type))


def negative(value: Value) -> Value:
    """The number with the other sign."""
    if not _is_number(value.type) or _rounded(value.type):
        raise NotHere(f"- {value.type}")
    found = pc.negate(value.data) if pa.types.is_floating(value.type) else pc.negate_checked(value.data)
    return Value(found, suffixed=value.suffixed)


def _rounded(kind: pa.DataType) -> bool:
    """Whether Spark, which takes the sign from decimals with 34 digits, may round them."""
    return bool(pa.types.is_decimal(kind) and kind.precision > 34)


def absolute(value: Value) -> Value:
    """The number without its sign."""
    if not _is_number(value.type) or _rounded(value.type):
        raise NotHere(f"abs of {value.type}")
    return Value(pc.abs(value.data) if pa.types.is_floating(value.type) else pc.abs_checked(value.data))


def remainder(args: Sequence[Value]) -> Value:
    """With the sign of what is divided; dividing by 0 fails."""
    if not all(pa.types.is_signed_integer(arg.type) for arg in args):
        raise NotHere("% of what are not whole numbers")
    kind = common(args[0].type, args[1].type)
    one, other = (arg.cast(kind).data for arg in args)
    return Value(pc.subtract_checked(one, pc.multiply_checked(pc.divide_checked(one, other), other)))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_signed_integer(kind) or pa.types.is_decimal(kind) or pa.types.is_floating(kind))
