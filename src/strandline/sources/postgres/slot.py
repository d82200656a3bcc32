"""The replication slot and the publication of a warehouse: made, looked at, advanced and dropped.

The slot makes the server keep its write-ahead log for us; the publication says of which tables we want to hear.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import Connection, errors, sql

from strandline.errors import SourceError
from strandline.sources.postgres.lsn import format_lsn, parse_lsn
from strandline.sources.postgres.tables import PgTable

PLUGIN = "pgoutput"


@dataclass(frozen=True)
class SlotState:
    """A slot as the server describes it."""

    plugin: str
    database: str
    active_pid: int | None
    confirmed: int | None
    lost: bool
    retained_bytes: int | None


@dataclass(frozen=True)
class ServerState:
    """What decides whether a log goes on: which server this is, and how far its log reaches."""

    system: str
    timeline: int
    flushed: int


def server_state(connection: Connection[Any]) -> ServerState:
    """The server now; a standby is refused, for it has no log of its own."""
    if _one(connection, "SELECT pg_is_in_recovery()"):
        raise SourceError(
            "SOURCE_STANDBY",
            f"{_where(connection)} is a standby, and changes are captured from the primary; "
            "name the primary, or several hosts with target_session_attrs=read-write.",
        )
    row = connection.execute(
        "SELECT (SELECT system_identifier FROM pg_control_system())::text, "
        "('x' || left(pg_walfile_name(pg_current_wal_flush_lsn()), 8))::bit(32)::bigint, "
        "pg_current_wal_flush_lsn()::text"
    ).fetchone()
    assert row is not None
    return ServerState(row[0], row[1], parse_lsn(row[2]))


FLUSHED_BY_ITSELF = 0.5
"""Seconds within which a server flushes what was committed, by its usual settings."""


def flushed(connection: Connection[Any]) -> int:
    """The end of what is safe on the server's disk, and so of what a slot can give."""
    return parse_lsn(str(_one(connection, "SELECT pg_current_wal_flush_lsn()::text")))


def wait_until_flushed(connection: Connection[Any], patience: float) -> int:
    """Wait until all that is committed now is flushed; where that ends.

    A transaction may be visible before its commit record is on disk (``synchronous_commit = off``). What a transaction
    that is not committed yet has written may stay in memory for as long as nobody commits: then we do.
    """
    written = parse_lsn(str(_one(connection, "SELECT pg_current_wal_insert_lsn()::text")))
    began, pushed = time.monotonic(), False
    while (found := flushed(connection)) < written:
        waited = time.monotonic() - began
        if waited > FLUSHED_BY_ITSELF and not pushed:
            _push(connection)
            pushed = True
        if waited > patience:
            raise SourceError(
                "SOURCE_BUSY",
                f"{_where(connection)} did not flush its log up to {format_lsn(written)} within {patience:.0f} s; "
                "refresh again later.",
            )
        time.sleep(0.02)
    return found


def _push(connection: Connection[Any]) -> None:
    """Commit something that no table shows, and wait for the disk: all that was written before is on it then."""
    with connection.transaction():
        connection.execute("SET LOCAL synchronous_commit = local")
        connection.execute("SELECT pg_logical_emit_message(true, 'strandline', '')")


def slot_state(connection: Connection[Any], slot: str) -> SlotState | None:
    """The slot, if it is there."""
    row = connection.execute(
        "SELECT plugin, database, active_pid, confirmed_flush_lsn::text, wal_status = 'lost', "
        "pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::bigint FROM pg_replication_slots WHERE slot_name = %s",
        (slot,),
    ).fetchone()
    if row is None:
        return None
    return SlotState(row[0], row[1], row[2], None if row[3] is None else parse_lsn(row[3]), bool(row[4]), row[5])


def create_slot(connection: Connection[Any], slot: str, patience: float) -> int:
    """Make the slot; the place from which it holds every change.

    The server waits for the transactions that are running; *patience* bounds that.
    """
    try:
        with connection.transaction():
            connection.execute(sql.SQL("SET LOCAL statement_timeout = {}").format(int(patience * 1000)))
            row = connection.execute(
                "SELECT lsn::text FROM pg_create_logical_replication_slot(%s, %s)", (slot, PLUGIN)
            ).fetchone()
    except errors.QueryCanceled as error:
        raise SourceError(
            "SOURCE_BUSY",
            f"slot {slot} could not begin within {patience:.0f} s, because a slot waits for all transactions that are "
            f"running, and these are: {_running(connection)}; end them, or raise `patience`.",
        ) from error
    except errors.DuplicateObject as error:
        raise taken(slot, connection) from error
    except errors.ConfigurationLimitExceeded as error:
        raise SourceError(
            "NO_FREE_SLOT",
            f"all replication slots of {_where(connection)} are in use: {_slots(connection)}; drop one that nobody "
            "needs (SELECT pg_drop_replication_slot('...')), or raise max_replication_slots and restart the server.",
        ) from error
    assert row is not None
    return parse_lsn(row[0])


def taken(slot: str, connection: Connection[Any]) -> SourceError:
    """The error for a slot that is there and not ours."""
    return SourceError(
        "SLOT_TAKEN",
        f"{_where(connection)} has a slot {slot} that this warehouse did not make; another warehouse may be using it. "
        "Give this source another `slot`, or drop that one if nobody needs it "
        f"(SELECT pg_drop_replication_slot('{slot}')).",
    )


def drop_slot(connection: Connection[Any], slot: str) -> None:
    """Drop the slot if it is there."""
    connection.execute(
        "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s", (slot,)
    )


def advance(connection: Connection[Any], slot: str, place: int) -> None:
    """The server may forget what was committed before *place*."""
    connection.execute(
        "SELECT pg_replication_slot_advance(slot_name, %(place)s::pg_lsn) FROM pg_replication_slots "
        "WHERE slot_name = %(slot)s AND confirmed_flush_lsn < %(place)s::pg_lsn",
        {"slot": slot, "place": format_lsn(place)},
    )


def publication_sql(publication: str, tables: Sequence[PgTable], version: int) -> str:
    """The statement that makes the publication, as a DBA would type it."""
    options = ["publish_via_partition_root = true"]
    if version >= 180000:
        options.append("publish_generated_columns = stored")
    listed = f" FOR TABLE {', '.join(table.quoted for table in tables)}" if tables else ""
    return f'CREATE PUBLICATION "{publication}"{listed} WITH ({", ".join(options)})'


def publish(connection: Connection[Any], publication: str, tables: Sequence[PgTable]) -> bool:
    """See to it that the publication is there and has *tables*; whether it had to be made."""
    version = connection.info.server_version
    row = connection.execute(
        "SELECT puballtables, pubinsert AND pubupdate AND pubdelete AND pubtruncate, pubviaroot "
        "FROM pg_publication WHERE pubname = %s",
        (publication,),
    ).fetchone()
    if row is None:
        _as_owner(connection, publication_sql(publication, tables, version))
        return True
    everything, all_events, via_root = row
    if not all_events or (not via_root and any(table.kind == "p" for table in tables)):
        raise SourceError(
            "PUBLICATION_PARTIAL",
            f"publication {publication} does not publish all changes; "
            f"ALTER PUBLICATION \"{publication}\" SET (publish = 'insert, update, delete, truncate', "
            "publish_via_partition_root = true).",
        )
    # Before PostgreSQL 15 a publication had whole tables.
    parts = "rowfilter, attnames" if version >= 150000 else "NULL, NULL"
    listed = {
        (schema, name): (filtered, columns)
        for schema, name, filtered, columns in connection.execute(
            f"SELECT schemaname, tablename, {parts} FROM pg_publication_tables WHERE pubname = %s".encode(),
            (publication,),
        ).fetchall()
    }
    missing = []
    for table in tables:
        found = listed.get((table.schema, table.name))
        if found is None:
            missing.append(table)
        elif found[0] is not None:
            raise SourceError(
                "PUBLICATION_PARTIAL",
                f"publication {publication} publishes only some rows of {table.quoted} ({found[0]}); "
                "publish the table without a row filter.",
            )
        elif found[1] is not None:
            lacking = [column for column in table.columns if column.published and column.name not in found[1]]
            if lacking:
                generated = f'ALTER PUBLICATION "{publication}" SET (publish_generated_columns = stored)'
                whole = "publish the table without a list of columns"
                raise SourceError(
                    "PUBLICATION_PARTIAL",
                    f"publication {publication} leaves out columns of {table.quoted} "
                    f"({', '.join(column.name for column in lacking)}); "
                    f"{generated if all(column.generated for column in lacking) else whole}.",
                )
    if missing and not everything:
        names = ", ".join(table.quoted for table in missing)
        _as_owner(connection, f'ALTER PUBLICATION "{publication}" ADD TABLE {names}')
    return False


def drop_publication(connection: Connection[Any], publication: str) -> None:
    """Drop the publication if it is there and ours to drop; one that a DBA made for us stays."""
    owned = _one(
        connection,
        "SELECT count(*) FROM pg_publication WHERE pubname = %s AND pg_has_role(pubowner, 'USAGE')",
        publication,
    )
    if owned:
        connection.execute(sql.SQL("DROP PUBLICATION IF EXISTS {}").format(sql.Identifier(publication)))


def wait_for_writers(
    connection: Connection[Any],
    tables: Sequence[PgTable],
    patience: float,
    waiting: Callable[[str], None] = lambda what: None,
) -> None:
    """Wait until the transactions that have *tables* locked for writing now have ended.

    What they wrote before the tables were published does not come through the slot, and a snapshot taken while they
    run does not show it. Writers that come later need not be waited for.
    """
    oids = [oid for table in tables for oid in (table.oid, *table.partition_oids)]
    writers = _writers(connection, oids)
    deadline = time.monotonic() + patience
    while left := writers & _writers(connection, oids):
        waiting(f"waiting for {len(left)} transactions that write to {', '.join(t.quoted for t in tables)}")
        if time.monotonic() > deadline:
            raise SourceError(
                "SOURCE_BUSY",
                f"transactions that were writing to {', '.join(t.quoted for t in tables)} did not end within "
                f"{patience:.0f} s: {_running(connection)}; end them, or raise `patience`.",
            )
        time.sleep(0.05)


def _writers(connection: Connection[Any], oids: Sequence[int]) -> set[str]:
    """Transactions that hold a lock which writing takes."""
    rows = connection.execute(
        "SELECT DISTINCT virtualtransaction FROM pg_locks WHERE locktype = 'relation' AND granted "
        "AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) "
        "AND relation = ANY(%s::oid[]) AND pid IS DISTINCT FROM pg_backend_pid() AND mode IN "
        "('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')",
        (list(oids),),
    ).fetchall()
    return {row[0] for row in rows}


def _as_owner(connection: Connection[Any], statement: str) -> None:
    try:
        connection.execute(statement.encode())
    except errors.InsufficientPrivilege as error:
        raise SourceError(
            "SOURCE_PRIVILEGE",
            f"{connection.info.user} may not publish the tables ({error.diag.message_primary}); "
            f"let their owner run: {statement};",
        ) from error


def _running(connection: Connection[Any]) -> str:
    rows = connection.execute(
        "SELECT 'process ' || pid, coalesce(usename, '?'), to_char(xact_start, 'HH24:MI:SS'), xact_start "
        "FROM pg_stat_activity WHERE xact_start IS NOT NULL AND pid <> pg_backend_pid() AND datname IS NOT NULL "
        "UNION ALL SELECT 'prepared transaction ' || quote_literal(gid), owner, to_char(prepared, 'HH24:MI:SS'), "
        "prepared FROM pg_prepared_xacts ORDER BY 4 LIMIT 5"
    ).fetchall()
    return ", ".join(f"{what} of {user} since {since}" for what, user, since, _ in rows) or "not to be seen by us"


def _slots(connection: Connection[Any]) -> str:
    rows = connection.execute("SELECT slot_name FROM pg_replication_slots ORDER BY 1").fetchall()
    return ", ".join(row[0] for row in rows)


def _where(connection: Connection[Any]) -> str:
    info = connection.info
    return f"{info.host}:{info.port}/{info.dbname}"


def _one(connection: Connection[Any], query: str, *values: object) -> object:
    row = connection.execute(query.encode(), values or None).fetchone()
    assert row is not None
    return row[0]
