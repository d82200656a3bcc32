"""Looking up tables in PostgreSQL's catalogs: one statement, which needs no privileges on the tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from psycopg import Connection

from strandline.errors import SourceError
from strandline.sources.postgres.tables import Partition, PgColumn, PgTable, PgType
from strandline.sql.names import choices

_NAMED = """
    SELECT DISTINCT c.oid FROM unnest(%(schemas)s::name[], %(names)s::name[]) AS w (schema, name)
    JOIN pg_namespace n ON n.nspname = w.schema JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = w.name
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
"""
_ALL = """
    SELECT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = %(schema)s AND c.relkind IN ('r', 'p') AND c.relpersistence = 'p' AND NOT c.relispartition
"""
_FACTS = """
tree (root, oid) AS (
    SELECT oid, oid FROM wanted
    UNION ALL
    SELECT t.root, i.inhrelid FROM tree t JOIN pg_inherits i ON i.inhparent = t.oid
    JOIN pg_class c ON c.oid = t.oid AND c.relkind = 'p'
),
relations AS (
    SELECT t.root::bigint, c.oid::bigint, n.nspname AS schema, c.relname AS name,
        quote_ident(n.nspname) || '.' || quote_ident(c.relname) AS quoted,
        c.relkind AS kind, c.relpersistence AS persistence, c.relreplident AS identity, c.reltuples AS rows,
        -- Asking for the size of the files waits for whoever is altering the table; so only if nothing else is known.
        CASE WHEN c.relpages > 0 OR c.relkind <> 'r'
            THEN (c.relpages + coalesce(o.relpages, 0)) * current_setting('block_size')::bigint
            ELSE pg_relation_size(c.oid) + coalesce(pg_relation_size(c.reltoastrelid), 0) END AS bytes,
        CASE WHEN c.relispartition THEN pg_partition_root(c.oid)::regclass::text END AS partition_of,
        CASE WHEN c.relkind = 'r' THEN ARRAY(
            SELECT i.inhrelid::regclass::text FROM pg_inherits i WHERE i.inhparent = c.oid ORDER BY 1) END AS heirs,
        row_security_active(c.oid) AS row_security, quote_ident(current_user) AS role,
        ARRAY(
            SELECT json_build_object('primary', x.indisprimary, 'replica', x.indisreplident,
                'immediate', x.indimmediate, 'columns', ARRAY(
                    SELECT a.attname FROM unnest(x.indkey) WITH ORDINALITY AS k (attnum, n)
                    JOIN pg_attribute a ON a.attrelid = x.indrelid AND a.attnum = k.attnum
                    WHERE k.n <= x.indnkeyatts ORDER BY k.n))
            FROM pg_index x WHERE x.indrelid = c.oid AND x.indisvalid AND (x.indisprimary OR x.indisreplident)
        ) AS indexes,
        ARRAY(
            SELECT json_build_object('name', a.attname, 'type', format_type(a.atttypid, a.atttypmod),
                'type_oid', a.atttypid::bigint, 'typmod', a.atttypmod, 'not_null', a.attnotnull,
                'generated', a.attgenerated, 'identity', a.attidentity,
                'collation', a.attcollation::bigint, 'deterministic', coalesce(l.collisdeterministic, true))
            FROM pg_attribute a LEFT JOIN pg_collation l ON l.oid = a.attcollation
            WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
        ) AS columns
    FROM tree t JOIN pg_class c ON c.oid = t.oid JOIN pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN pg_class o ON o.oid = c.reltoastrelid
    WHERE c.oid = t.root OR c.relkind <> 'p'
),
used (oid) AS (
    SELECT DISTINCT a.atttypid FROM pg_attribute a JOIN wanted w ON w.oid = a.attrelid WHERE a.attnum > 0
    UNION
    SELECT CASE t.typtype WHEN 'd' THEN t.typbasetype ELSE e.oid END
    FROM used u JOIN pg_type t ON t.oid = u.oid LEFT JOIN pg_type e ON e.oid = t.typelem AND e.typarray = t.oid
    WHERE t.typtype = 'd' OR e.oid IS NOT NULL
),
types AS (
    SELECT t.oid::bigint, CASE n.nspname WHEN 'pg_catalog' THEN '' ELSE n.nspname || '.' END || t.typname AS name,
        t.typtype AS kind, t.typbasetype::bigint AS base, t.typtypmod AS typmod, e.oid::bigint AS element
    FROM used u JOIN pg_type t ON t.oid = u.oid JOIN pg_namespace n ON n.oid = t.typnamespace
    LEFT JOIN pg_type e ON e.oid = t.typelem AND e.typarray = t.oid
)
SELECT current_setting('server_version_num')::int,
    (SELECT coalesce(json_agg(r ORDER BY r.quoted), '[]') FROM relations r),
    (SELECT coalesce(json_agg(t), '[]') FROM types t)
"""

_STORED_GENERATED_SINCE = 180000
_BYTES_PER_ROW = 100
"""A guess, for a table that PostgreSQL has not counted yet."""

_Facts = Mapping[str, Any]


def all_tables(connection: Connection[Any], schema: str) -> dict[str, PgTable]:
    """The tables of a schema that can be used, by name."""
    found = _looked_up(connection, _ALL, {"schema": schema})
    return {name: table for (_, name), table in found.items() if isinstance(table, PgTable)}


def named_tables(connection: Connection[Any], names: Iterable[str], *, schema: str, source: str) -> dict[str, PgTable]:
    """The tables called ``orders``, which is one of *schema*, or ``sales.orders``; *source* is for error messages."""
    places = {name: _place(name, schema) for name in names}
    schemas, tables = [place[0] for place in places.values()], [place[1] for place in places.values()]
    found = _looked_up(connection, _NAMED, {"schemas": schemas, "names": tables})
    usable = {}
    for name, place in places.items():
        table = found.get(place)
        if table is None:
            raise _unknown(connection, source, name, place)
        if isinstance(table, str):
            raise SourceError("SOURCE_TABLE_UNUSABLE", f"source {source}: {table}")
        usable[name] = table
    return usable


def _looked_up(
    connection: Connection[Any], wanted: str, values: Mapping[str, Any]
) -> dict[tuple[str, str], PgTable | str]:
    """By schema and name: a table, or why it cannot be used."""
    row = connection.execute(f"WITH RECURSIVE wanted AS ({wanted}),{_FACTS}".encode(), values).fetchone()
    assert row is not None
    version, relations, types = row
    types_by_oid = {facts["oid"]: facts for facts in types}
    trees: dict[int, list[_Facts]] = {}
    for facts in relations:
        trees.setdefault(facts["root"], []).append(facts)
    found: dict[tuple[str, str], PgTable | str] = {}
    for root, members in trees.items():
        top = next(facts for facts in members if facts["oid"] == root)
        leaves = [facts for facts in members if facts["oid"] != root]
        refused = next(filter(None, map(_refusal, (top, *leaves))), None)
        found[top["schema"], top["name"]] = refused or _table(top, leaves, types_by_oid, version)
    return found


def _place(name: str, schema: str) -> tuple[str, str]:
    before, dot, after = name.partition(".")
    return (before, after) if dot else (schema, name)


def _unknown(connection: Connection[Any], source: str, name: str, place: tuple[str, str]) -> SourceError:
    rows = connection.execute(
        "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE n.nspname = %s AND c.relkind IN ('r', 'p') AND NOT c.relispartition",
        (place[0],),
    ).fetchall()
    there = choices((row[0] for row in rows), place[1])
    return SourceError(
        "UNKNOWN_TABLE",
        f"source {source} has no table {name}; schema {place[0]} has {there}; "
        "write the name as PostgreSQL has it, with its schema if that is another one.",
    )


def _refusal(facts: _Facts) -> str | None:
    """Why the log does not have all that happens to a table, and what to do."""
    table, partition_of, is_leaf = facts["quoted"], facts["partition_of"], facts["oid"] != facts["root"]
    match facts["kind"], facts["persistence"]:
        case ("v" | "m") as kind, _:
            what = "view" if kind == "v" else "materialized view"
            return f"{table} is a {what}; the log has changes of tables; name the tables that it reads."
        case "f", _:
            return f"{table} is a foreign table; its changes are in the log of another server; make that one a source."
        case _, "u":
            return f"{table} is unlogged; only logged tables are in the log; ALTER TABLE {table} SET LOGGED."
        case _, "t":
            return f"{table} is temporary; only its session sees it; make it an ordinary table."
    if partition_of is not None and not is_leaf:
        return (
            f"{table} is a partition of {partition_of}; the log has its changes as that table's; name {partition_of}."
        )
    if facts["heirs"]:
        return (
            f"{table} shows the rows of tables that inherit from it ({', '.join(facts['heirs'])}), and the log has "
            "them apart; name those tables instead, or make it a partitioned table."
        )
    if facts["row_security"]:
        return (
            f"row security hides rows of {table} from {facts['role']}, while the log has all rows; "
            f"ALTER ROLE {facts['role']} BYPASSRLS, or connect as another role."
        )
    return None


def _table(top: _Facts, leaves: list[_Facts], types: Mapping[int, _Facts], version: int) -> PgTable:
    columns = tuple(_column(facts, types, version) for facts in top["columns"])
    published = tuple(column.name for column in columns if column.published)
    partitions = tuple(
        Partition(leaf["oid"], leaf["quoted"], leaf["identity"], _carried(leaf, published)) for leaf in leaves
    )
    carried = _carried(top, published)
    if partitions:
        everywhere = set(published).intersection(*(part.identity_columns for part in partitions))
        carried = tuple(name for name in published if name in everywhere)
    primary = next((index for index in top["indexes"] if index["primary"]), None)
    members = leaves if top["kind"] == "p" else [top]
    return PgTable(
        oid=top["oid"],
        schema=top["schema"],
        name=top["name"],
        quoted=top["quoted"],
        kind=top["kind"],
        columns=columns,
        primary_key=tuple(primary["columns"]) if primary else (),
        deferrable=bool(primary and not primary["immediate"]),
        identity=top["identity"],
        identity_columns=carried,
        identity_index=_identity_index(top) if top["identity"] == "i" else (),
        partitions=partitions,
        estimated_rows=sum(_rows(member) for member in members),
        bytes=sum(member["bytes"] for member in members),
    )


def _carried(facts: _Facts, published: tuple[str, ...]) -> tuple[str, ...]:
    """What the log has of an old row of one table."""
    if facts["identity"] == "f":
        return published
    return tuple(name for name in _identity_index(facts) if name in published)


def _identity_index(facts: _Facts) -> tuple[str, ...]:
    """The columns of the index that identifies rows in the log; none if it was dropped."""
    for index in facts["indexes"]:
        primary, immediate, replica = index["primary"], index["immediate"], index["replica"]
        if (facts["identity"] == "d" and primary and immediate) or (facts["identity"] == "i" and replica):
            return tuple(index["columns"])
    return ()


def _rows(facts: _Facts) -> int:
    rows: float = facts["rows"]
    return int(rows) if rows >= 0 else int(facts["bytes"]) // _BYTES_PER_ROW


def _column(facts: _Facts, types: Mapping[int, _Facts], version: int) -> PgColumn:
    generated = facts["generated"].strip()
    return PgColumn(
        name=facts["name"],
        type=facts["type"],
        type_oid=facts["type_oid"],
        typmod=facts["typmod"],
        resolved=_resolved(facts["type_oid"], facts["typmod"], types),
        not_null=facts["not_null"],
        generated=generated,
        identity=facts["identity"].strip(),
        published=not generated or (generated == "s" and version >= _STORED_GENERATED_SINCE),
        collation=facts["collation"],
        deterministic=facts["deterministic"],
    )


def _resolved(oid: int, typmod: int, types: Mapping[int, _Facts]) -> PgType:
    """The type behind all domains; a domain has the typmod, and a column of it has none."""
    facts = types[oid]
    if facts["kind"] == "d":
        return _resolved(facts["base"], facts["typmod"], types)
    if facts["element"] is not None:
        return PgType(facts["name"], facts["kind"], -1, _resolved(facts["element"], typmod, types))
    return PgType(facts["name"], facts["kind"], typmod)
