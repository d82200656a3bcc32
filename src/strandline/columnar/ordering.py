"""The first rows in an order."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from strandline.algebra.plan import Limit
from strandline.algebra.scalar import Col, Text
from strandline.columnar.rows import signed
from strandline.columnar.types import NotHere

_DIRECTIONS = {
    "ASC NULLS FIRST": ("ascending", "at_start"),
    "ASC NULLS LAST": ("ascending", "at_end"),
    "DESC NULLS FIRST": ("descending", "at_start"),
    "DESC NULLS LAST": ("descending", "at_end"),
}


def limited(plan: Limit, rows: pa.Table) -> pa.Table:
    """The first rows in an order of columns, from the last column to the first; those that tie as they come."""
    if signed(rows):
        raise NotHere("the first rows of a delta")
    for item in reversed(plan.order):
        match item:
            case Text((Col(name), direction)) if isinstance(direction, str) and direction.strip() in _DIRECTIONS:
                values = rows.column(name)
                if pa.types.is_floating(values.type):
                    raise NotHere("an order of floating numbers")
                way, nulls = _DIRECTIONS[direction.strip()]
                rows = rows.take(pc.array_sort_indices(values, order=way, null_placement=nulls))
            case _:
                raise NotHere("an order by more than a column")
    count = rows.num_rows if plan.count is None else plan.count
    return rows.slice(plan.offset, count)
