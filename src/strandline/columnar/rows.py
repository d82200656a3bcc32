"""Unit rows as tables: with a column for the sign, last, where they are signed."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from strandline.algebra.plan import Output
from strandline.algebra.scalar import Scalar, Text
from strandline.algebra.schema import Schema, names
from strandline.columnar.scalars import chosen, column
from strandline.columnar.types import NotHere, arrow_type
from strandline.sql.render import SIGN


def signed(rows: pa.Table) -> bool:
    """Whether rows have a sign."""
    return SIGN in rows.schema.names


def with_sign(rows: pa.Table, sign: int) -> pa.Table:
    """Rows that had none, all with one *sign*."""
    return rows.append_column(SIGN, pa.repeat(pa.scalar(sign, pa.int32()), rows.num_rows))


def negated(rows: pa.Table) -> pa.Table:
    """The rows with the other sign."""
    if not signed(rows):
        return with_sign(rows, -1)
    return rows.set_column(rows.schema.get_field_index(SIGN), SIGN, pc.negate(rows.column(SIGN)))


def in_order(rows: pa.Table, columns: Schema) -> pa.Table:
    """*rows* with *columns* in their order, and the sign last."""
    return rows.select([*names(columns), *([SIGN] if signed(rows) else [])])


def all_chosen(rows: pa.Table, conditions: Collection[Scalar]) -> pa.Table:
    """The rows for which all conditions hold. Those that look into texts are asked last."""
    for condition in sorted(conditions, key=lambda condition: isinstance(condition, Text)):
        if rows.num_rows:
            rows = chosen(rows, condition)
    return rows


def projected(rows: pa.Table, outputs: Sequence[Output]) -> pa.Table:
    """Computed columns of the rows, and their signs."""
    columns = [column(output.value, rows, output.column.type) for output in outputs]
    named = [output.name for output in outputs]
    if signed(rows):
        columns, named = [*columns, rows.column(SIGN)], [*named, SIGN]
    return pa.table(columns, names=named)


def united(parts: Sequence[pa.Table], columns: Schema) -> pa.Table:
    """All rows of all parts; columns go by place."""
    any_signed = any(map(signed, parts))
    parts = [with_sign(part, 1) if any_signed and not signed(part) else part for part in parts]
    named = [*names(columns), *([SIGN] if any_signed else [])]
    kinds = [*(arrow_type(each.type) if each.type else parts[0].schema.field(place).type
               for place, each in enumerate(columns)), *([pa.int32()] if any_signed else [])]  # fmt: skip
    for part in parts:
        if [field.type for field in part.schema][: len(columns)] != kinds[: len(columns)]:
            raise NotHere("a union of different types")
    schema = pa.schema(list(zip(named, kinds, strict=True)))
    return pa.concat_tables([part.rename_columns(named).cast(schema) for part in parts])


def beside(left: pa.Table, right: pa.Table, ours: np.ndarray, theirs: np.ndarray) -> pa.Table:
    """The rows at some places of two inputs side by side; their signs are multiplied."""
    one, other = left.take(pa.array(ours)), right.take(pa.array(theirs))
    signs = [rows.column(SIGN) for rows in (one, other) if signed(rows)]
    columns = {name: rows.column(name) for rows in (one, other) for name in rows.schema.names if name != SIGN}
    if signs:
        columns[SIGN] = signs[0] if len(signs) == 1 else pc.multiply(*signs)
    return pa.table(columns)
