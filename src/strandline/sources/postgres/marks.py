"""What the log does not tell: marks by which a table, its files and its columns are known to be the same as before.

``ALTER COLUMN ... TYPE ... USING`` writes all rows anew without a word in the log; it leaves a new file and a new
description of the column. Dropping a column and adding another of its name leaves another number. Rows come and go with
partitions, and are not told of while a table is not published.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from psycopg import Connection

from strandline.catalog import Json
from strandline.reasons import Reason
from strandline.sources.postgres.tables import PgTable
from strandline.sources.protocol import Wanted


def marks(connection: Connection[Any], table: PgTable, publication: str) -> dict[str, Json]:
    """What tells whether a table, its files, its columns or its place in the publication are others than before."""
    row = connection.execute(
        "SELECT c.oid::bigint, c.relfilenode::bigint, (SELECT json_object_agg(a.attname, json_build_array(a.attnum, "
        "a.atttypid::bigint, a.xmin::text::bigint)) FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 "
        "AND NOT a.attisdropped), (SELECT coalesce(json_object_agg(p.oid, p.relfilenode::bigint), '{}') "
        "FROM pg_class p WHERE p.oid = ANY(%s::oid[])), (SELECT json_build_array(p.oid::bigint, p.xmin::text::bigint, "
        "r.oid::bigint, r.xmin::text::bigint) FROM pg_publication p LEFT JOIN pg_publication_rel r "
        "ON r.prpubid = p.oid AND r.prrelid = c.oid WHERE p.pubname = %s) FROM pg_class c WHERE c.oid = %s",
        (list(table.partition_oids), publication, table.oid),
    ).fetchone()
    oid, filenode, columns, partitions, published = row or (0, 0, {}, {}, None)
    return {
        "oid": oid,
        "filenode": filenode,
        "columns": columns,
        "partitions": partitions,
        "published": published,
    }


def difference(label: str, publication: str, noted: Wanted, now: Mapping[str, Json]) -> Reason | None:
    """Why the table called *label* has to be read anew, if the marks that were noted of it are others *now*."""
    if now["oid"] != noted.details["oid"]:
        return Reason("SOURCE_TABLE_REPLACED", f"{label} was dropped and made anew")
    if now["published"] != noted.details["published"]:
        text = f"publication {publication} was altered, or did not have {label} for a while"
        return Reason("SOURCE_TABLE_REWRITTEN", text)
    then_columns, now_columns = _by_name(noted.details), _by_name(now)
    for name in noted.columns:
        if _number(now_columns, name) != _number(then_columns, name):
            return Reason("SOURCE_TABLE_REWRITTEN", f"another column of {label} is called {name} now")
    if now["partitions"] != noted.details["partitions"]:
        # The log tells of rows that come and go through the root, not of those that come and go with a partition.
        return Reason("SOURCE_TABLE_REWRITTEN", f"a partition of {label} was added, removed, emptied or rewritten")
    rewritten = now["filenode"] != noted.details["filenode"]
    altered = [name for name in noted.columns if now_columns.get(name) != then_columns.get(name)]
    if rewritten and altered:
        return Reason("SOURCE_TABLE_REWRITTEN", f"{label} was rewritten when {', '.join(altered)} was altered")
    return None


def _by_name(details: Mapping[str, Json]) -> dict[str, Any]:
    columns = details["columns"]
    assert isinstance(columns, dict)
    return columns


def _number(columns: Mapping[str, Any], name: str) -> Any:
    """Which column of its table has the name; a number that is never used again."""
    return columns.get(name, [None])[0]
