"""What a summary delta does to stored groups."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from strandline.algebra.plan import COUNT, MergeSummary
from strandline.algebra.scalar import Col
from strandline.algebra.schema import names
from strandline.columnar.matching import all_alike, keys_of, pairs
from strandline.columnar.rows import signed, with_sign
from strandline.columnar.types import MOST_DIGITS, NotHere, arrow_type
from strandline.columnar.values import Array
from strandline.sql.render import SIGN


def merged(plan: MergeSummary, old: pa.Table, summary: pa.Table) -> pa.Table:
    """The old rows of changed groups, which go, and those that come; what stays as it was is neither."""
    if signed(old) or signed(summary):
        raise NotHere("a summary of signed groups")
    by = [Col(name) for name in plan.keys]
    found = keys_of(summary, by, old, by, nulls_match=True) if by else all_alike(summary, old)
    ours, theirs = pairs(found)
    if len(np.unique(ours)) != len(ours):
        raise NotHere("a group that is stored twice")
    place = np.zeros(summary.num_rows, np.int64)
    missing = np.ones(summary.num_rows, np.bool_)
    place[ours], missing[ours] = theirs, False
    before = old.take(pa.array(place, mask=missing)) if old.num_rows else _nothing(old, summary.num_rows)
    gone = {name: summary.column(name) for name in plan.keys}
    came = dict(gone)
    changed: Array = pa.repeat(pa.scalar(False), summary.num_rows)
    for partial in plan.partials:
        kind = arrow_type(partial.column.type)
        was, change = before.column(partial.name), summary.column(partial.name)
        if pa.types.is_floating(kind) and not _are_numbers(was, change, sums=partial.invertible):
            raise NotHere(f"stored {partial.kind}s that may be no numbers")
        if partial.invertible:
            zero = pa.scalar(0, pa.int64()).cast(kind)
            new = _sum(pc.fill_null(was, zero), change).cast(kind)
        else:
            extreme = pc.min_element_wise if partial.kind == "min" else pc.max_element_wise
            new = extreme(was, change)
        gone[partial.name], came[partial.name] = was, new
        same = pc.or_(pc.fill_null(pc.equal(was, new), False), pc.and_(pc.is_null(was), pc.is_null(new)))
        changed = pc.or_(changed, pc.invert(same))
    count = came[COUNT]
    if summary.num_rows and (pc.min(count).as_py() or 0) < 0:
        raise NotHere("a group of fewer rows than none")
    goes = pc.and_(changed, pa.array(~missing))
    comes = pc.and_(changed, pc.greater(count, 0)) if plan.keys else changed
    return pa.concat_tables(
        [with_sign(pa.table(gone).filter(goes), -1), with_sign(pa.table(came).filter(comes), 1)]
    ).select([*names(plan.columns), SIGN])


def _are_numbers(*columns: Array, sums: bool) -> bool:
    """Whether floating numbers are such that Arrow adds and compares them as Spark does."""
    return sums and not any(pc.any(pc.is_nan(column)).as_py() for column in columns)


def _nothing(rows: pa.Table, count: int) -> pa.Table:
    return pa.table([pa.nulls(count, field.type) for field in rows.schema], names=rows.schema.names)


def _sum(one: Array, other: Array) -> Array:
    """The sum of two columns of one type."""
    if pa.types.is_floating(one.type):
        return pc.add(one, other)
    if pa.types.is_decimal(one.type) and one.type.precision == MOST_DIGITS:
        room = pa.decimal128(MOST_DIGITS - 1, one.type.scale)
        one, other = one.cast(room), other.cast(room)
    return pc.add_checked(one, other)
