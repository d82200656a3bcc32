"""Rows in groups: partial aggregates, and what is left when signs are added up."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from strandline.algebra.plan import GroupBy, Partial
from strandline.algebra.scalar import Col, Lit, Text
from strandline.columnar.matching import Flags
from strandline.columnar.scalars import column, holds
from strandline.columnar.types import NotHere, arrow_type, told_apart
from strandline.columnar.values import Array
from strandline.sql.render import SIGN

_LARGEST = Decimal(10) ** 37
"""What no sum of decimals may reach, without their points: there is room for one more digit."""


def grouped(plan: GroupBy, rows: pa.Table) -> pa.Table:
    """Partial aggregates of *rows*, signed or not, per key; without keys, one row."""
    keys = [f"key {n}" for n in range(len(plan.keys))]
    table = {name: column(key.value, rows, key.column.type) for name, key in zip(keys, plan.keys, strict=True)}
    _require_groups(table.values())
    asked: list[tuple[str, str]] = []
    for number, partial in enumerate(plan.partials):
        for name, values, function in _arguments(partial, f"value {number}", rows):
            table[name] = values
            asked.append((name, function))
    found = pa.table(table).group_by(keys).aggregate(asked)
    columns = [found.column(key) for key in keys]
    columns += [_partial(partial, f"value {number}", found) for number, partial in enumerate(plan.partials)]
    return pa.table(columns, names=[column.name for column in plan.columns])


def netted(rows: pa.Table) -> pa.Table:
    """Unit rows: equal ones added up, as many of each as are left."""
    columns = [name for name in rows.schema.names if name != SIGN]
    _require_groups(rows.column(name) for name in columns)
    alone = _plainly_different(rows, columns)
    sums = rows.filter(~alone).group_by(columns).aggregate([(SIGN, "sum")])
    net = sums.column(f"{SIGN}_sum").to_numpy()
    places = pa.array(np.repeat(np.arange(sums.num_rows), np.abs(net)))
    signs = pa.array(np.repeat(np.sign(net), np.abs(net)), pa.int32())
    left = sums.select(columns).take(places).append_column(SIGN, signs)
    return pa.concat_tables([rows.filter(alone).select(left.schema.names), left])


def _plainly_different(rows: pa.Table, columns: Sequence[str]) -> Flags:
    """Whether each row differs from all others in its whole numbers and dates alone: soon found out."""
    mixed = np.zeros(rows.num_rows, np.uint64)
    for name in columns:
        values = rows.column(name)
        if pa.types.is_date32(values.type):
            values = values.cast(pa.int32())
        if pa.types.is_signed_integer(values.type):
            numbers = pc.fill_null(values.cast(pa.int64()), -1).to_numpy().astype(np.uint64)
            mixed = (mixed ^ numbers) * _MIXING
            mixed ^= mixed >> np.uint64(29)
    order = np.argsort(mixed)
    ordered = mixed[order]
    same = ordered[1:] == ordered[:-1]
    alone: Flags = np.ones(rows.num_rows, np.bool_)
    alone[order[1:][same]] = False
    alone[order[:-1][same]] = False
    return alone


_MIXING = np.uint64(0x9E3779B97F4A7C15)
"""An odd number whose multiples spread over all 64 bits (Knuth, TAOCP 3, 6.4)."""


def distinct(rows: pa.Table) -> pa.Table:
    """Each row once, whatever its sign."""
    columns = [name for name in rows.schema.names if name != SIGN]
    return rows.group_by(columns).aggregate([]) if columns else rows.slice(0, 1)


def _require_groups(columns: Any) -> None:
    for values in columns:
        if not told_apart(values.type):
            raise NotHere(f"groups of {values.type}")


def _arguments(partial: Partial, name: str, rows: pa.Table) -> list[tuple[str, Array, str]]:
    """What a partial aggregate is computed of: columns, and what becomes of them."""
    if partial.kind == "opaque":
        return [(name, _counted_once(partial, rows), "count_distinct")]
    signs = rows.column(SIGN) if SIGN in rows.schema.names else None
    values = column(partial.argument if partial.argument is not None else Lit(1), rows)
    if partial.where is not None:
        values = pc.if_else(pc.fill_null(holds(partial.where, rows), False), values, pa.scalar(None, values.type))
    if pa.types.is_null(values.type):
        raise NotHere("an aggregate of NULL")
    if partial.kind == "count":
        ones = pa.repeat(pa.scalar(1, pa.int64()), rows.num_rows) if signs is None else signs.cast(pa.int64())
        return [(name, pc.if_else(pc.is_valid(values), ones, pa.scalar(None, pa.int64())), "sum")]
    if partial.kind in ("min", "max"):
        if not told_apart(values.type):
            raise NotHere(f"the {partial.kind} of {values.type}")
        return [(name, values if signs is None else _of_sign(values, signs, 1), partial.kind)]
    _require_sum(values)
    if signs is None:
        return [(name, values, "sum")]
    return [(name, _of_sign(values, signs, 1), "sum"), (f"{name} gone", _of_sign(values, signs, -1), "sum")]


def _counted_once(partial: Partial, rows: pa.Table) -> Array:
    """The values of which different ones are counted: of calls that are kept as text, Spark alone knows the others."""
    match partial:
        case Partial(argument=Text(fragments=(str(begin), Col() as counted, str(end))), where=None) if (
            _DISTINCT.fullmatch(f"{begin}{end}") and SIGN not in rows.schema.names
        ):
            values = column(counted, rows)
        case _:
            raise NotHere("an aggregate that only Spark knows")
    if not told_apart(values.type):
        raise NotHere(f"different values of {values.type}")
    return values


_DISTINCT = re.compile(r"count\s*\(\s*distinct\s+\)", re.IGNORECASE)
"""What stands around one column."""


def _of_sign(values: Array, signs: Array, sign: int) -> Array:
    """The values of rows with a sign, NULL for others."""
    return pc.if_else(pc.equal(signs, sign), values, pa.scalar(None, values.type))


def _require_sum(values: Array) -> None:
    """See that no sum of *values* can be too large for its type: Arrow would not tell."""
    kind = values.type
    if pa.types.is_floating(kind):
        return
    if not pa.types.is_decimal(kind) and not pa.types.is_signed_integer(kind):
        raise NotHere(f"a sum of {kind}")
    most = max(abs(end or 0) for end in pc.min_max(values).as_py().values()) * max(len(values), 1)
    if most >= (_LARGEST.scaleb(-kind.scale) if pa.types.is_decimal(kind) else 2**63):
        raise NotHere(f"a sum of {len(values)} numbers as large as these")


def _partial(partial: Partial, name: str, found: pa.Table) -> Array:
    """A partial aggregate of its type; a count or sum of nothing is 0."""
    kind = arrow_type(partial.column.type)
    function = {"count": "sum", "opaque": "count_distinct"}.get(partial.kind, partial.kind)
    values = found.column(f"{name}_{function}")
    if function != "sum":
        if values.type != kind:
            raise NotHere(f"{values.type} for {partial.column.type}")
        return values
    values = _or_zero(values)
    if f"{name} gone_sum" in found.schema.names:
        values = _less(values, _or_zero(found.column(f"{name} gone_sum")))
    return values.cast(kind)


def _or_zero(values: Array) -> Array:
    return pc.fill_null(values, pa.scalar(0, pa.int64()).cast(values.type))


def _less(one: Array, other: Array) -> Array:
    """The difference of two sums; those of decimals have room for a digit more than they are told to."""
    if not pa.types.is_decimal(one.type):
        return pc.subtract_checked(one, other)
    narrow = pa.decimal128(one.type.precision - 1, one.type.scale)
    return pc.subtract_checked(one.cast(narrow), other.cast(narrow))
