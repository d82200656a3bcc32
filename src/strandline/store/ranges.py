"""In which ranges the values of stored rows lie: found in their files, without Spark.

Keys that come and keys that go are often far apart, and each close together; so a column is told as a few ranges, cut
where the gaps are widest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from strandline.algebra.near import Ranges
from strandline.algebra.scalar import Lit, Text
from strandline.algebra.schema import Column
from strandline.engine.files import read_column
from strandline.sql.names import quoted
from strandline.sql.render import scalar_sql
from strandline.store.matching import BOUNDED, constant

MOST = 8
"""Into so many ranges a column is cut."""

CUT_ROWS = 1_000_000
"""Of more rows than these only the ends are told."""


def stored_ranges(path: str, column: Column, options: Mapping[str, str] | None = None) -> Ranges | None:
    """The ranges of a column of the rows stored at *path*; None if its type has no literals, or it has no values."""
    if column.type not in BOUNDED:
        return None
    values = read_column(path, column.name, options)
    if values is None or values.null_count == len(values):
        return None
    pairs = _ends(values) if column.type == "string" or len(values) > CUT_ROWS else _cut(values)
    return _ranges(column, pairs, nulls=values.null_count > 0)


def ranges_between(column: Column, ends: Iterable[tuple[Any, Any]], *, nulls: bool) -> Ranges | None:
    """The ranges of a column whose values lie between pairs of *ends*; None if its type has no literals.

    Pairs that overlap become one. If there are many, the ends of all are told.
    """
    if column.type not in BOUNDED:
        return None
    merged: list[tuple[Any, Any]] = []
    for low, high in sorted(ends):
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    if len(merged) > MOST:
        merged = [(merged[0][0], merged[-1][1])]
    return _ranges(column, [(str(low), str(high)) for low, high in merged], nulls=nulls) if merged else None


def bounds(stored: str, column: Column, target: str, options: Mapping[str, str] | None = None) -> str:
    """A condition on *target* that rows which match one stored at *stored* meet, so that Delta skips files; or none.

    Values match NULL with NULL, so there is none if one is NULL.
    """
    found = stored_ranges(stored, column, options)
    if found is None or found.nulls:
        return ""
    place = f"{target}.{quoted(column.name)}"
    return f" AND ({scalar_sql(found.condition(column.name), {column.name: place})})"


def _ranges(column: Column, pairs: Iterable[tuple[str, str]], *, nulls: bool) -> Ranges:
    literals = tuple((_literal(low, column), _literal(high, column)) for low, high in pairs)
    return Ranges(column.type, literals, nulls)


def _literal(value: str, column: Column) -> Text:
    meant = Lit(value if column.type in ("string", "date") else int(value))
    return Text((constant(value, column),), meant)


def _ends(values: pa.ChunkedArray) -> list[tuple[str, str]]:
    found = pc.min_max(values)
    return [(_text(found["min"]), _text(found["max"]))]


def _cut(values: pa.ChunkedArray) -> list[tuple[str, str]]:
    """Ranges between the widest gaps; numbers that follow on each other are not torn apart."""
    kind = values.type
    numbers = np.unique(pc.drop_null(values).cast(_number_type(kind)).to_numpy())
    gaps = np.diff(numbers)
    widest = np.argpartition(gaps, -MOST)[-(MOST - 1) :] if len(gaps) > MOST else np.arange(len(gaps))
    cuts = np.sort(widest[gaps[widest] > 1])
    lows, highs = numbers[np.concatenate(([0], cuts + 1))], numbers[np.concatenate((cuts, [len(numbers) - 1]))]
    return [(_text_of(low, kind), _text_of(high, kind)) for low, high in zip(lows, highs, strict=True)]


def _text_of(number: np.integer[Any], kind: pa.DataType) -> str:
    return _text(pa.scalar(int(number), _number_type(kind)).cast(kind))


def _number_type(kind: pa.DataType) -> pa.DataType:
    return pa.int32() if pa.types.is_date32(kind) else pa.int64()


def _text(value: pa.Scalar) -> str:
    return str(value.cast(pa.string()).as_py())
