"""Parting a table by its pages, so that several tasks read it at once."""

from __future__ import annotations

from typing import Any

from psycopg import Connection

from strandline.sources.postgres.tables import PgTable

PAGES_AT_ONCE = 16_384
"""Pages of 8 kB that one task of a first copy reads."""

CTID = "__ctid"
"""What a row's place in its table is called where it is read."""


def heaps(connection: Connection[Any], table: PgTable) -> list[tuple[str, int]]:
    """The tables that hold the rows, each with its size in pages."""
    oids = [(part.quoted, part.oid) for part in table.partitions] if table.kind == "p" else [(table.quoted, table.oid)]
    heaps = []
    for quoted, oid in oids:
        row = connection.execute(
            "SELECT pg_relation_size(%s::oid) / current_setting('block_size')::bigint", (oid,)
        ).fetchone()
        assert row is not None
        heaps.append((f"ONLY {quoted}", int(row[0] or 0)))
    return heaps


def page_ranges(pages: int) -> tuple[str, ...]:
    """Conditions that part a table by where its rows lie; the last has no end, for the table may have grown."""
    starts = list(range(0, max(pages, 1), PAGES_AT_ONCE))
    ranges = []
    for number, start in enumerate(starts):
        until = f" AND {CTID} < '({starts[number + 1]},0)'" if number + 1 < len(starts) else ""
        ranges.append(f"{CTID} >= '({start},0)'{until}")
    return tuple(ranges)
