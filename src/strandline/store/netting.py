"""What is left of a stored delta in some of its columns, and by key: rows that differ only in others cancel out.

Found in its files, without Spark; so it costs little, and often saves all: a view does not change with columns that it
does not read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from strandline.engine import files, places
from strandline.sql.render import SIGN
from strandline.store.deltas import Delta

MOST_ROWS = 2_000_000
"""A larger delta is left as it is."""

LOOKED_AT_ROWS = 500_000
"""Of a larger delta it is not asked, before it is used, what is left in some columns."""

WORTH_WRITING = 0.5
"""What is left is stored apart if it is no more than this share."""


def in_columns(delta: Delta, columns: Sequence[str], path: str, options: Mapping[str, str] | None = None) -> Delta:
    """*delta* in *columns*: a smaller one at *path*, one without rows, or itself where little cancels out."""
    if not (delta.inserted and delta.deleted) or delta.form != "explicit" or delta.rows > MOST_ROWS:
        return delta
    schema = files.columns(delta.path, options)
    if schema is None or not _narrower(schema, columns):
        return delta
    left = _netted(files.read_rows(delta.path, options, [*columns, SIGN]), columns)
    if left.num_rows > WORTH_WRITING * delta.rows:
        return delta
    return _stored(left, path, options) if left.num_rows else Delta("", 0, 0)


def write_net(rows: pa.Table, path: str, options: Mapping[str, str] | None = None) -> Delta:
    """Store what is left of unit rows, whose last column is the sign, at *path*."""
    places.remove(path, options)
    left = _netted(rows, rows.schema.names[:-1])
    return _stored(left, path, options) if left.num_rows else Delta(path, 0, 0)


def anything_left(delta: Delta, columns: Sequence[str], options: Mapping[str, str] | None = None) -> bool:
    """Whether *delta* has rows in *columns*; it is taken to have some where that is not looked at."""
    if not (delta.inserted and delta.deleted) or delta.rows > LOOKED_AT_ROWS:
        return delta.rows > 0
    schema = files.columns(delta.path, options)
    if schema is None or not _narrower(schema, columns):
        return True
    rows = files.read_rows(delta.path, options, [*columns, SIGN])
    return _plainly_left(rows, columns) or _netted(rows, columns).num_rows > 0


def by_key(delta: Delta, key: Sequence[str], options: Mapping[str, str] | None = None) -> tuple[bool, bool, bool]:
    """Whether a delta has keys with more rows than before, with fewer, and with as many."""
    rows = files.read_rows(delta.path, options, [*key, SIGN])
    numbers = rows.group_by(list(key)).aggregate([(SIGN, "sum")]).column(f"{SIGN}_sum").to_numpy()
    return bool((numbers > 0).any()), bool((numbers < 0).any()), bool((numbers == 0).any())


def _narrower(schema: pa.Schema, columns: Sequence[str]) -> bool:
    """Whether the files have other columns too, and these ones can be compared."""
    there = set(schema.names) - {SIGN}
    return set(columns) < there and not any(pa.types.is_nested(schema.field(name).type) for name in columns)


def _plainly_left(rows: pa.Table, columns: Sequence[str]) -> bool:
    """Whether rows that come and rows that go differ in their number or in the ends of a column: soon found out."""
    come, gone = (rows.filter(test(rows.column(SIGN), 0)) for test in (pc.greater, pc.less))
    if come.num_rows != gone.num_rows:
        return True
    return any(pc.min_max(come.column(name)) != pc.min_max(gone.column(name)) for name in columns)


def _stored(rows: pa.Table, path: str, options: Mapping[str, str] | None) -> Delta:
    files.write_rows(rows, path, options)
    inserted = pc.sum(pc.greater(rows.column(SIGN), 0)).as_py()
    return Delta(path, inserted, rows.num_rows - inserted)


def _netted(rows: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Unit rows: equal ones of opposite signs are taken out, pair by pair."""
    sums = rows.group_by(list(columns)).aggregate([(SIGN, "sum")])
    net = sums.column(f"{SIGN}_sum")
    places = pa.array(np.repeat(np.arange(sums.num_rows), np.abs(net.to_numpy())))
    signs = pc.sign(net).take(places).cast(rows.schema.field(SIGN).type)
    return sums.select(list(columns)).take(places).append_column(rows.schema.field(SIGN), signs)
