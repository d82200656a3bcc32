"""Comparisons, three-valued logic, and values that are chosen by it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from strandline.columnar.conversions import cast
from strandline.columnar.types import NotHere, common, told_apart
from strandline.columnar.values import Value


def compared_as(one: Value, other: Value) -> tuple[Value, Value]:
    """Two values in the one type that they are compared in."""
    if one.type != other.type:
        one, other = _dated(one, other.type), _dated(other, one.type)
    kind = common(one.type, other.type)
    if not told_apart(kind) and not pa.types.is_null(kind):
        raise NotHere(f"comparing {kind}")
    return one.cast(kind), other.cast(kind)


def _dated(value: Value, kind: pa.DataType) -> Value:
    """A text that stands beside a date is one."""
    if value.constant and pa.types.is_string(value.type) and pa.types.is_date(kind):
        return cast(value, "date")
    return value


def comparison(name: str) -> Callable[[Sequence[Value]], Value]:
    """What compares two values by a function of Arrow, NULL being equal to nothing."""

    def compare(args: Sequence[Value]) -> Value:
        one, other = compared_as(*args)
        if pa.types.is_null(one.type):
            return Value(pa.scalar(None, pa.bool_()))
        return Value(pc.call_function(name, [one.data, other.data]))

    return compare


def same(args: Sequence[Value]) -> Value:
    """Whether two values are equal, NULL being equal to NULL."""
    one, other = compared_as(*args)
    if pa.types.is_null(one.type):
        return Value(pa.scalar(True))
    equal = pc.fill_null(pc.equal(one.data, other.data), False)
    return Value(pc.or_(equal, pc.and_(pc.is_null(one.data), pc.is_null(other.data))))


def logic(name: str) -> Callable[[Sequence[Value]], Value]:
    """What connects conditions by a function of Arrow."""

    def decide(args: Sequence[Value]) -> Value:
        return reduce(lambda a, b: Value(pc.call_function(name, [a.data, b.data])), map(truth, args))

    return decide


def truth(value: Value) -> Value:
    """A condition; NULL may stand for one."""
    if not pa.types.is_boolean(value.type) and not pa.types.is_null(value.type):
        raise NotHere(f"{value.type} for a condition")
    return value.cast(pa.bool_())


def is_null(args: Sequence[Value]) -> Value:
    """Whether a value is NULL."""
    return Value(pc.is_null(args[0].data))


def coalesce(args: Sequence[Value]) -> Value:
    """The first value that is not NULL."""
    kind = reduce(common, (arg.type for arg in args))
    return Value(pc.coalesce(*(arg.cast(kind).data for arg in args)))


def case(args: Sequence[Value]) -> Value:
    """The value after the first condition that is true; they take turns, and a last value is for all else."""
    pairs = [(args[place], args[place + 1]) for place in range(0, len(args) - 1, 2)]
    default = args[-1] if len(args) % 2 else Value(pa.scalar(None))
    kind = reduce(common, (*(value.type for _, value in pairs), default.type))
    found = default.cast(kind).data
    for test, value in reversed(pairs):
        found = pc.if_else(pc.fill_null(truth(test).data, False), value.cast(kind).data, found)
    return Value(found)
