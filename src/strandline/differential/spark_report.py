"""From joined rows to the report, for every algorithm that runs on Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from strandline.differential.columns import Columns
from strandline.differential.report import AFTER, BEFORE, CHANGE_TYPE, DELETE, INSERT
from strandline.sql.names import quoted

if TYPE_CHECKING:
    from strandline.engine.session import DataFrame

OLD, NEW = "o", "n"
"""Marks of the two sides of a full outer join; their columns are o0, o1, ... and n0, n1, ..."""


def marked(frame: DataFrame, side: str) -> DataFrame:
    """*frame* with its columns c0, ... (and b0, ..., p_...) under the names of a side, and its mark."""
    return frame.selectExpr(*(f"{name} AS {named(side, name)}" for name in frame.columns), f"1 AS {side}")


def named(side: str, column: str) -> str:
    """The name of a column on a side: c3 is o3 of the old one; b0 is ob0."""
    return side + (column[1:] if column.startswith("c") else column)


def keys(columns: Columns) -> list[str]:
    """The key columns by their places."""
    return [f"c{columns.schema.names.index(name)}" for name in columns.key]


def on_key(columns: Columns, null_free: bool) -> str:
    """The condition that keys are equal."""
    equals = "=" if null_free else "<=>"
    return " AND ".join(f"{named(OLD, key)} {equals} {named(NEW, key)}" for key in keys(columns))


def rows_of_both(found: DataFrame, columns: Columns) -> DataFrame:
    """The report of joined rows that have changed and of which both sides are known."""
    count = len(columns.schema)

    def row(kind: str, side: str) -> str:
        values = ", ".join(f"{side}{place} AS c{place}" for place in range(count))
        return f"struct({values}, '{kind}' AS {CHANGE_TYPE})"

    return named_as_before(
        found.selectExpr(
            f"inline(CASE WHEN {NEW} IS NULL THEN array({row(DELETE, OLD)}) "
            f"WHEN {OLD} IS NULL THEN array({row(INSERT, NEW)}) "
            f"ELSE array({row(BEFORE, OLD)}, {row(AFTER, NEW)}) END)"
        ),
        columns,
    )


def rows_of_new(found: DataFrame, columns: Columns) -> DataFrame:
    """Inserts and updates of rows found with columns n0, ...; *found* has the marks of both sides."""
    values = [f"n{place} AS c{place}" for place in range(len(columns.schema))]
    kind = f"if({OLD} IS NULL, '{INSERT}', '{AFTER}') AS {CHANGE_TYPE}"
    return named_as_before(found.where(f"{NEW} = 1").selectExpr(*values, kind), columns)


def deleted_keys(found: DataFrame, columns: Columns, kinds: Sequence[str]) -> DataFrame:
    """Deletes of rows of which nothing but the key is known; the rest is NULL."""
    held = {key: named(OLD, key) for key in keys(columns)}
    places = [f"c{place}" for place in range(len(columns.schema))]
    values = [
        f"{held[place]} AS {place}" if place in held else f"CAST(NULL AS {kind}) AS {place}"
        for place, kind in zip(places, kinds, strict=True)
    ]
    return named_as_before(found.where(f"{NEW} IS NULL").selectExpr(*values, f"'{DELETE}' AS {CHANGE_TYPE}"), columns)


def fetched(
    rows: DataFrame, wanted: DataFrame, by: Sequence[tuple[str, str]], side: str, columns: Columns
) -> DataFrame:
    """The rows of a snapshot that *wanted* names, as reports: *by* pairs their columns with those of *wanted*."""
    here, other = (NEW, OLD) if side == NEW else (OLD, NEW)
    alone, both = (INSERT, AFTER) if side == NEW else (DELETE, BEFORE)
    names = [f"w{place}" for place in range(len(by))]
    chosen = [f"{theirs} AS {name}" for name, (_, theirs) in zip(names, by, strict=True)]
    looked_up = wanted.where(f"{here} = 1").selectExpr(*chosen, f"{other} IS NULL AS alone")
    condition = " AND ".join(f"{ours} <=> {name}" for name, (ours, _) in zip(names, by, strict=True))
    from pyspark.sql.functions import expr

    values = [f"c{place}" for place in range(len(columns.schema))]
    joined = rows.join(looked_up, expr(condition), "inner")
    return named_as_before(joined.selectExpr(*values, f"if(alone, '{alone}', '{both}') AS {CHANGE_TYPE}"), columns)


def named_as_before(frame: DataFrame, columns: Columns) -> DataFrame:
    """c0, c1, ... under the names that the snapshots have."""
    named_columns = [f"c{place} AS {quoted(name)}" for place, name in enumerate(columns.schema.names)]
    return frame.selectExpr(*named_columns, CHANGE_TYPE)
