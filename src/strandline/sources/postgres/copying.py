"""A whole table read by several tasks of Spark, in the snapshot that a transaction of ours holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from psycopg import Connection

from strandline.sources.postgres.pages import CTID, heaps, page_ranges
from strandline.sources.postgres.tables import PgTable, identifier
from strandline.sources.postgres.types import ColumnType
from strandline.sources.protocol import Rows

FETCHED_AT_ONCE = "10000"
"""Rows that a task holds."""


def rows_in_snapshot(
    connection: Connection[Any],
    table: PgTable,
    types: Mapping[str, ColumnType],
    columns: Sequence[str],
    options: Mapping[str, str],
) -> tuple[Rows, ...]:
    """How Spark reads *columns* of *table* in the snapshot of *connection*; *options* are those of its ``jdbc`` format.

    The transaction of *connection* has to last until all is read.
    """
    row = connection.execute("SELECT pg_export_snapshot()").fetchone()
    assert row is not None
    shown = [f"{types[name].read(identifier(name))} AS {identifier(name)}" for name in columns]
    first = f"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY; SET TRANSACTION SNAPSHOT '{row[0]}'; "
    shared = {
        **options,
        "fetchsize": FETCHED_AT_ONCE,
        "sessionInitStatement": first + options["sessionInitStatement"],
    }
    return tuple(
        Rows(
            {**shared, "dbtable": f"(SELECT {', '.join([*shown, f'ctid AS {CTID}'])} FROM {place}) AS t"},
            page_ranges(pages),
        )
        for place, pages in heaps(connection, table)
    )
