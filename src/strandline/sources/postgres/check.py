"""What a PostgreSQL server, a role and its tables must be for us to read them, and the SQL that makes them so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from psycopg import Connection

from strandline.sources.postgres.slot import publication_sql, slot_state
from strandline.sources.postgres.tables import PgTable, identity_problem
from strandline.sources.protocol import Finding

OLDEST = 140000
"""PostgreSQL 14 was the first to read a table by ranges of its pages, which is how first copies are parted."""


def findings(
    connection: Connection[Any],
    tables: Mapping[str, PgTable],
    slot: str,
    publication: str,
    *,
    named: bool,
    whole: bool = False,
) -> list[Finding]:
    """All that matters, in the order in which a DBA would see to it; *named* tables must all be usable.

    With *whole* the log has to say what was in rows that are updated or deleted.
    """
    usable = [table for table in tables.values() if identity_problem(table, whole=whole) is None]
    return [
        *_server(connection),
        *_role(connection),
        *(finding for table in tables.values() for finding in _table(connection, table, named=named, whole=whole)),
        *_publication(connection, usable, publication),
        *_slot(connection, slot),
    ]


def _server(connection: Connection[Any]) -> Iterator[Finding]:
    version = connection.info.server_version
    yield Finding(
        f"PostgreSQL {version // 10000}.{version % 10000}",
        version >= OLDEST,
        "SOURCE_VERSION",
        f"-- upgrade to PostgreSQL {OLDEST // 10000} or later",
    )
    level = _one(connection, "SHOW wal_level")
    yield Finding(
        f"wal_level is {level}",
        level == "logical",
        "WAL_LEVEL",
        "ALTER SYSTEM SET wal_level = 'logical'; -- then restart the server",
    )


def _role(connection: Connection[Any]) -> Iterator[Finding]:
    role = connection.info.user
    may = _one(
        connection,
        "SELECT rolsuper OR rolreplication OR coalesce((SELECT bool_or(pg_has_role(r.oid, 'MEMBER')) FROM pg_roles r "
        "WHERE r.rolname IN ('rds_replication', 'cloudsqlsuperuser', 'azure_pg_admin')), false) "
        "FROM pg_roles WHERE rolname = current_user",
    )
    yield Finding(
        f"role {role} {'may' if may else 'may not'} use replication slots",
        bool(may),
        "SOURCE_PRIVILEGE",
        f'ALTER ROLE "{role}" REPLICATION;',
    )


def _table(connection: Connection[Any], table: PgTable, *, named: bool, whole: bool) -> Iterator[Finding]:
    role = connection.info.user
    enters = bool(_one(connection, "SELECT has_schema_privilege(%s, 'USAGE')", table.schema))
    reads = enters and bool(_one(connection, "SELECT has_table_privilege(%s::oid, 'SELECT')", table.oid))
    grant = "" if enters else f'GRANT USAGE ON SCHEMA "{table.schema}" TO "{role}"; '
    yield Finding(
        f"role {role} {'may' if reads else 'may not'} read {table.quoted}",
        reads,
        "SOURCE_PRIVILEGE",
        f'{grant}GRANT SELECT ON {table.quoted} TO "{role}";',
    )
    problem = identity_problem(table, whole=whole)
    if problem is None:
        yield Finding(f"rows of {table.quoted} can be told apart", True)
    elif named:
        yield Finding(problem.split(";")[0], False, "NO_REPLICA_IDENTITY", f"-- {problem}")


def _publication(connection: Connection[Any], usable: list[PgTable], publication: str) -> Iterator[Finding]:
    """Whether all tables that can be used are published, or we may publish them when a view first reads them."""
    exists = bool(_one(connection, "SELECT count(*) FROM pg_publication WHERE pubname = %s", publication))
    missing = usable
    if exists:
        rows = connection.execute(
            "SELECT schemaname, tablename FROM pg_publication_tables WHERE pubname = %s", (publication,)
        ).fetchall()
        missing = [table for table in usable if (table.schema, table.name) not in {(row[0], row[1]) for row in rows}]
    if not missing:
        yield Finding(f"publication {publication} has the tables", True)
        return
    owned = bool(
        _one(
            connection,
            "SELECT coalesce(bool_and(pg_has_role(relowner, 'USAGE')), true) FROM pg_class WHERE oid = ANY(%s::oid[])",
            [table.oid for table in missing],
        )
    )
    if exists:
        may = owned and bool(
            _one(
                connection,
                "SELECT pg_has_role(pubowner, 'USAGE') FROM pg_publication WHERE pubname = %s",
                publication,
            )
        )
        listed = ", ".join(table.quoted for table in missing)
        fix = f'ALTER PUBLICATION "{publication}" ADD TABLE {listed};'
    else:
        may = owned and bool(_one(connection, "SELECT has_database_privilege(current_database(), 'CREATE')"))
        fix = f"{publication_sql(publication, missing, connection.info.server_version)};"
    yield Finding(
        f"publication {publication} {'lacks' if exists else 'does not exist yet for'} "
        f"{', '.join(table.quoted for table in missing)}, and we {'may' if may else 'may not'} see to it ourselves",
        may,
        "SOURCE_PRIVILEGE",
        f"{fix} -- as the owner of the tables",
    )


def _slot(connection: Connection[Any], slot: str) -> Iterator[Finding]:
    if slot_state(connection, slot) is not None:
        yield Finding(f"slot {slot} is there", True)
        return
    used = _one(connection, "SELECT count(*) FROM pg_replication_slots")
    most = _one(connection, "SELECT current_setting('max_replication_slots')::int")
    yield Finding(
        f"{used} of {most} replication slots are in use",
        int(used) < int(most),
        "NO_FREE_SLOT",
        "-- drop a slot that nobody needs, SELECT pg_drop_replication_slot('...'), "
        f"or ALTER SYSTEM SET max_replication_slots = {int(most) + 5}; and restart the server",
    )


def _one(connection: Connection[Any], query: str, *values: object) -> Any:
    row = connection.execute(query.encode(), values or None).fetchone()
    assert row is not None
    return row[0]
