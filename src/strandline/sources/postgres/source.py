"""PostgreSQL as a source: changes from a replication slot, first copies from one snapshot through JDBC."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, TypeVar

import psycopg
from psycopg import Connection, sql

from strandline.algebra.plan import Scan
from strandline.algebra.scalar import Scalar
from strandline.algebra.schema import Column
from strandline.catalog import Json
from strandline.errors import SourceError
from strandline.reasons import Reason
from strandline.sources.postgres import slot, stream
from strandline.sources.postgres.address import Address
from strandline.sources.postgres.asking import PostgresSnapshot, is_utf8
from strandline.sources.postgres.check import findings
from strandline.sources.postgres.connect import connect
from strandline.sources.postgres.copying import rows_in_snapshot
from strandline.sources.postgres.entries import Followed, entries
from strandline.sources.postgres.faults import explained, is_transient
from strandline.sources.postgres.introspect import all_tables, named_tables
from strandline.sources.postgres.jdbc import jdbc_options
from strandline.sources.postgres.joins import AskedColumn, AskedTable, untranslatable
from strandline.sources.postgres.lsn import format_lsn
from strandline.sources.postgres.marks import difference, marks
from strandline.sources.postgres.retry import PATIENCE, retrying
from strandline.sources.postgres.tables import PgColumn, PgTable, identity_problem, key_of
from strandline.sources.postgres.types import ColumnType, Special, Unsupported, mapping
from strandline.sources.postgres.values import Value, value
from strandline.sources.postgres.visibility import Visible
from strandline.sources.protocol import (
    Baseline,
    Begun,
    Finding,
    Health,
    LogEvent,
    Opened,
    Peek,
    SourceTransaction,
    TableInfo,
    Wanted,
)
from strandline.sql.names import choices, twice

T = TypeVar("T")

GIVEN_UP_FOR = 10.0
"""Seconds for which a server that did not answer for as long as we have patience is taken to be down."""


_LEFT_OUT = ("UNKNOWN_TABLE", "SOURCE_TABLE_UNUSABLE")


class PostgresSource:
    """The tables of a PostgreSQL database: those named, or all of a schema that can be used.

    *tables* maps names here to names there; of tables of a schema whose names differ only in upper and lower case there
    is none, unless they are named so. *owner* distinguishes this warehouse from others that read the same
    database; the slot and the publication are called after it unless names are given. Without *copies* what was in a
    row that is updated or deleted must be in the log.
    """

    kind = "postgres"

    def __init__(
        self,
        name: str,
        address: Address,
        *,
        owner: str,
        schema: str = "public",
        tables: Mapping[str, str] | None = None,
        types: Mapping[str, Mapping[str, str]] | None = None,
        special_values: Literal["fail", "null"] = "fail",
        slot: str | None = None,
        publication: str | None = None,
        max_retained_wal: int | None = None,
        patience: float = PATIENCE,
        copies: bool = True,
    ) -> None:
        self.name = name
        self.address = address
        self._schema = schema
        self._tables = None if tables is None else dict(tables)
        self._types = {table: dict(columns) for table, columns in (types or {}).items()}
        self._special = special_values
        own = re.sub(r"[^a-z0-9_]", "_", f"strandline_{owner}_{name}".lower())[:63]
        self.slot = slot or own
        self.publication = publication or own
        self._max_retained_wal = max_retained_wal
        self._patience = patience
        self._copies = copies
        self._open: Connection[Any] | None = None
        self._gave_up: tuple[float, SourceError] | None = None

    def close(self) -> None:
        """Let go of the connection."""
        if self._open is not None:
            self._open.close()
            self._open = None

    @contextmanager
    def hurried(self, patience: float) -> Iterator[None]:
        """Within, what passes is waited out for so many seconds at most."""
        before, self._patience = self._patience, min(patience, self._patience)
        try:
            yield
        finally:
            self._patience = before

    def tables(self) -> Mapping[str, TableInfo]:
        """The tables as they are now; one that was declared and is gone, or cannot be used, is left out."""
        return {name: self._info(name, table) for name, table in self.described_tables().items()}

    def described_tables(self, *, strict: bool = False) -> dict[str, PgTable]:
        """The tables as PostgreSQL describes them, by their names here; with *strict* a missing one is an error."""

        def read(connection: Connection[Any]) -> dict[str, PgTable]:
            if self._tables is None:
                everything = all_tables(connection, self._schema)
                twins = twice(everything)
                return {name: table for name, table in everything.items() if name not in twins}
            found: dict[str, PgTable] = {}
            try:
                there = named_tables(connection, self._tables.values(), schema=self._schema, source=self.name)
                return {name: there[place] for name, place in self._tables.items()}
            except SourceError as error:
                if strict or error.code not in _LEFT_OUT:
                    raise
            for name, place in self._tables.items():
                try:
                    found[name] = named_tables(connection, [place], schema=self._schema, source=self.name)[place]
                except SourceError as error:
                    if error.code not in _LEFT_OUT:
                        raise
            return found

        return self._asked(read)

    # The log

    def open_log(self, tables: Sequence[str]) -> Opened:
        """Publish the tables, then make the slot: from there on it holds all changes of them."""
        named = self._checked(tables)

        def make(connection: Connection[Any]) -> Opened:
            if slot.slot_state(connection, self.slot) is not None:
                raise slot.taken(self.slot, connection)
            made = slot.publish(connection, self.publication, named)
            try:
                place = slot.create_slot(connection, self.slot, self._patience)
            except SourceError:
                if made:
                    slot.drop_publication(connection, self.publication)
                raise
            server = slot.server_state(connection)
            return Opened(
                place,
                {
                    "slot": self.slot,
                    "publication": self.publication,
                    "system": server.system,
                    "timeline": server.timeline,
                },
            )

        return self._asked(make)

    def add_to_log(self, tables: Sequence[str], details: Mapping[str, Json]) -> None:
        """Publish more tables, and wait for those who are writing to them."""
        named = self._checked(tables)

        def add(connection: Connection[Any]) -> None:
            slot.publish(connection, str(details["publication"]), named)
            slot.wait_for_writers(connection, named, self._patience)

        self._asked(add)

    def close_log(self, details: Mapping[str, Json]) -> None:
        """Drop slot and publication."""

        def drop(connection: Connection[Any]) -> None:
            slot.drop_slot(connection, str(details["slot"]))
            slot.drop_publication(connection, str(details["publication"]))

        self._asked(drop)

    def health(self, place: int, details: Mapping[str, Json]) -> Health:
        """Whether the slot is there and has given nothing to others; how much the server keeps for us."""

        def look(connection: Connection[Any]) -> Health:
            server = slot.server_state(connection)
            state = slot.slot_state(connection, str(details["slot"]))
            return Health(
                self._lost(server, state, place, details),
                state.retained_bytes if state else None,
                self._warning(state.retained_bytes if state else None),
            )

        return self._asked(look)

    def _lost(
        self, server: slot.ServerState, state: slot.SlotState | None, place: int, details: Mapping[str, Json]
    ) -> Reason | None:
        if server.system != details["system"]:
            return Reason("SOURCE_REPLACED", f"{self.name} is another database cluster than before")
        if server.timeline != details["timeline"] or server.flushed < place:
            return Reason("SOURCE_REPLACED", f"{self.name} failed over, or was restored from a backup")
        if state is None:
            return Reason("SLOT_LOST", f"slot {details['slot']} of {self.name} was dropped")
        if state.lost or state.confirmed is None:
            return Reason("SLOT_LOST", f"{self.name} no longer keeps the log that slot {details['slot']} needs")
        if state.confirmed > place:
            return Reason(
                "SLOT_LOST",
                f"somebody else has read slot {details['slot']} of {self.name} up to {format_lsn(state.confirmed)}, "
                f"and we are at {format_lsn(place)}",
            )
        return None

    def _warning(self, retained: int | None) -> str | None:
        if retained is None or self._max_retained_wal is None or retained <= self._max_retained_wal:
            return None
        return (
            f"{self.name} keeps {retained / 1e6:,.0f} MB of its log for us, more than max_retained_wal "
            f"({self._max_retained_wal / 1e6:,.0f} MB); refresh, or remove the source if it is not needed"
        )

    def end(self) -> int:
        """The end of the log, with everything in it that is visible now."""
        return self._asked(lambda connection: slot.wait_until_flushed(connection, self._patience))

    def captured(
        self, wanted: Mapping[str, Wanted], place: int, upto: int, details: Mapping[str, Json]
    ) -> Iterator[LogEvent]:
        """The transactions from *place* on that committed before *upto*, with the rows of the tables wanted.

        When they are all given they are visible too, so that a snapshot taken later shows all that was logged before.
        """
        followed = self._followed(wanted)
        now = Visible.parse(self._asked(_snapshot))
        unseen = set()
        # A connection of its own, for it is in use while the caller writes what it gets.
        with explained(self.address), connect(self.address) as connection:
            messages = stream.peek(connection, str(details["slot"]), str(details["publication"]), upto)
            for event in entries(messages, followed, place, now):
                if isinstance(event, Begun) and not now.sees(event.xid):
                    unseen.add(event.xid)
                yield event
        self._wait_until_visible(unseen)

    def _wait_until_visible(self, xids: Collection[int]) -> None:
        """A transaction is in the log before it is visible: for as long as it waits for a synchronous standby."""
        deadline = time.monotonic() + self._patience
        while not all(map(Visible.parse(self._asked(_snapshot)).sees, xids)):
            if time.monotonic() > deadline:
                raise SourceError(
                    "SOURCE_BUSY",
                    f"transactions of {self.name} are in its log and not visible yet, as while they wait for a "
                    "synchronous standby; refresh again later.",
                )
            time.sleep(0.02)

    def pending(self, place: int, upto: int, details: Mapping[str, Json]) -> Mapping[str, Peek]:
        """What the slot holds, by table, with the time of the first commit; the rows stay on the server."""
        names = {(table.schema, table.name): name for name, table in self.described_tables().items()}

        def count(connection: Connection[Any]) -> Mapping[str, Peek]:
            found = stream.count(connection, str(details["slot"]), str(details["publication"]), upto)
            return {
                names[table]: Peek(
                    (SourceTransaction({"place": upto}, None, found.oldest.get(table)),) * found.touching[table],
                    insert_only=table in found.only_inserts,
                    rows=None if table in found.truncated else rows,
                )
                for table, rows in found.rows.items()
                if table in names
            }

        return self._asked(count)

    def acknowledge(self, place: int, details: Mapping[str, Json]) -> None:
        """Let the server forget what was committed before *place*."""
        self._asked(lambda connection: slot.advance(connection, str(details["slot"]), place))

    # Rows

    @contextmanager
    def baseline(self, table: str, columns: Sequence[str]) -> Iterator[Baseline]:
        """All rows of a table in one snapshot, which several tasks of Spark share.

        The table is locked first, as for any query: to a snapshot from before a TRUNCATE or an ALTER TABLE that
        rewrites it, it looks empty.
        """
        options = self._retried(lambda: jdbc_options(self.address))
        with explained(self.address), connect(self.address, autocommit=False) as connection:
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
            connection.execute(sql.SQL("SET LOCAL lock_timeout = {}").format(int(self._patience * 1000)))
            connection.execute(f"LOCK TABLE {self._table(table).quoted} IN ACCESS SHARE MODE".encode())
            described = self._table(table)
            types = self._columns(table, described)
            rows = rows_in_snapshot(connection, described, types, columns, options)
            yield Baseline(rows, _snapshot(connection), marks(connection, described, self.publication))

    def sees(self, seen: str, xid: str) -> bool:
        """Whether a snapshot shows a transaction of the log."""
        return Visible.parse(seen).sees(int(xid))

    def not_seen(self, seen: str) -> str:
        """The condition on log entries that a snapshot does not show them."""
        return Visible.parse(seen).not_seen("_xid")

    def parsers(self, table: str) -> Mapping[str, Callable[[str], str]]:
        """From text to values, by column."""
        return {name: column.parse for name, column in self._columns(table, self._table(table)).items()}

    def values(self, table: str) -> Mapping[str, Value]:
        """From text to values outside Spark, by column: those that :meth:`parsers` make in it."""
        return {name: column.value for name, column in self._asked_table(table).columns.items()}

    # Questions

    def hold(self) -> PostgresSnapshot:
        """Hold a snapshot of the database, over a connection of its own."""
        given = (self.name, self.address, self._patience, self.publication, self._asked_table)
        return self._retried(lambda: PostgresSnapshot(*given))

    def untranslatable(self, scans: tuple[Scan, ...], conditions: tuple[Scalar, ...]) -> tuple[Scalar, ...]:
        """The conditions that PostgreSQL would leave to whoever asks."""
        return untranslatable(scans, conditions, self._asked_table, utf8=self._asked(is_utf8))

    def changed_since(self, noted: Mapping[str, Wanted]) -> Mapping[str, Reason]:
        """Which tables are others than before, or had values changed by something that the log does not tell."""
        described = {name: table for name, table in self.described_tables().items() if name in noted}
        now = self._asked(lambda c: {name: marks(c, table, self.publication) for name, table in described.items()})
        found = {
            name: difference(f"{self.name}.{name}", self.publication, noted[name], now[name]) for name in described
        }
        return {name: reason for name, reason in found.items() if reason is not None}

    def check(self) -> None:
        """Raise the first finding that is not as it must be, with all that is to be done."""
        wrong = [finding for finding in self.findings() if not finding.ok]
        if wrong:
            fixes = "".join(f"\n  {finding.fix}" for finding in wrong)
            raise SourceError(
                wrong[0].code,
                f"source {self.name} ({self.address}) cannot be used: "
                f"{'; '.join(finding.what for finding in wrong)}. To do:{fixes}",
            )
        self._check_types(self.tables())

    def _check_types(self, tables: Mapping[str, TableInfo]) -> None:
        """Raise unless what ``types`` names is there; whether the types will do, whoever looks up a table finds out."""
        for table, declared in self._types.items():
            self._check_named(self.name, "table", [table], tables)
            known = [*(column.name for column in tables[table].columns), *tables[table].unusable]
            self._check_named(f"{self.name}.{table}", "column", declared, known)

    def _check_named(self, place: str, what: str, named: Iterable[str], known: Collection[str]) -> None:
        for name in named:
            if name not in known:
                raise SourceError(
                    "SOURCE_TYPE",
                    f"{place} has no {what} {name}; it has {choices(known, name)}; "
                    f"correct `types` in sources/{self.name}.yml.",
                )

    def findings(self) -> list[Finding]:
        """All that the source must be and have."""
        tables = self.described_tables(strict=True)
        named = self._tables is not None
        return self._asked(
            lambda c: findings(c, tables, self.slot, self.publication, named=named, whole=not self._copies)
        )

    # Inside

    def _info(self, name: str, table: PgTable) -> TableInfo:
        usable, unusable = [], {}
        twins = twice(column.name for column in table.columns)
        for column in table.columns:
            label = f"{self.name}.{name}.{column.name}"
            found = self._mapped(name, table, column)
            if column.name in twins:
                unusable[column.name] = (
                    f"{label} and another column differ only in upper and lower case, which Spark does not tell apart; "
                    "rename one of them in PostgreSQL, or leave both out of the view."
                )
            elif not column.published:
                unusable[column.name] = (
                    f"{label} is a generated column that PostgreSQL does not put into its log; compute it in the view."
                )
            elif isinstance(found, Unsupported):
                unusable[column.name] = found.message
            else:
                nullable = not column.not_null or (self._special == "null" and column.name not in key_of(table))
                usable.append(Column(column.name, found.type, nullable))
        problem = identity_problem(table, whole=not self._copies)
        return TableInfo(name, tuple(usable), key_of(table), table.quoted, unusable, table.bytes, problem)

    def _columns(self, name: str, table: PgTable) -> dict[str, ColumnType]:
        found = {}
        for column in table.columns:
            type_ = self._mapped(name, table, column)
            if isinstance(type_, ColumnType):
                found[column.name] = type_
        return found

    def _mapped(self, name: str, table: PgTable, column: PgColumn) -> ColumnType | Unsupported:
        """A column's type in Spark."""
        declared = self._types.get(name, {}).get(column.name)
        special = self._special_of(table, column.name)
        return mapping(column, declared, special=special, label=f"{self.name}.{name}.{column.name}")

    def _special_of(self, table: PgTable, column: str) -> Special:
        """What becomes of a value that Spark's type cannot hold; a key has to be held as it is."""
        return "fail" if column in key_of(table) else self._special

    def _asked_table(self, name: str) -> AskedTable:
        table = self._table(name)
        types = self._columns(name, table)
        columns = {}
        for column in table.columns:
            if column.name in types:
                type_, special = types[column.name], self._special_of(table, column.name)
                label = f"{self.name}.{name}.{column.name}"
                made = value(column.resolved, type_.type, special=special, label=label)
                columns[column.name] = AskedColumn(column, type_, made, special)
        return AskedTable(table, columns)

    def _table(self, name: str) -> PgTable:
        found = self.described_tables()
        if name not in found:
            raise SourceError("SOURCE_TABLE_GONE", f"{self.name}.{name} does not exist any more; {self._has(found)}.")
        return found[name]

    def _has(self, found: Mapping[str, PgTable]) -> str:
        return f"{self.name} has {', '.join(found) or 'no tables'}"

    def _checked(self, tables: Sequence[str]) -> list[PgTable]:
        """Tables that may be published: publishing one whose rows cannot be told apart would stop its updates."""
        found = self.described_tables()
        for name in tables:
            problem = identity_problem(found[name], whole=not self._copies) if name in found else None
            if problem is not None:
                raise SourceError("NO_REPLICA_IDENTITY", f"{self.name}.{name}: {problem}")
        return [found[name] for name in tables if name in found]

    def _followed(self, wanted: Mapping[str, Wanted]) -> list[Followed]:
        found = self.described_tables()
        followed = []
        for name, want in wanted.items():
            oid, table = want.details["oid"], found.get(name)
            assert isinstance(oid, int)
            if table is None:
                followed.append(Followed(name, oid, None, want))
                continue
            types = self._columns(name, table)
            oids = {column.name: column.type_oid for column in table.columns}
            parts = [part.identity for part in table.partitions] or [table.identity]
            followed.append(
                Followed(
                    name,
                    oid,
                    (table.schema, table.name),
                    want,
                    [types[c].canonical if c in types else None for c in want.columns],
                    [oids.get(c, 0) for c in want.columns],
                    whole=all(identity == "f" for identity in parts),
                )
            )
        return followed

    def _asked(self, question: Callable[[Connection[Any]], T]) -> T:
        """Ask over the connection that is kept open; a lost one is made again while there is patience."""

        def ask() -> T:
            if self._open is None or self._open.closed:
                self._open = connect(self.address)
            try:
                with explained(self.address):
                    return question(self._open)
            except (SourceError, psycopg.Error):
                self._open.close()
                raise

        return self._retried(ask)

    def _retried(self, action: Callable[[], T]) -> T:
        """Wait out what passes, but not again for each question to a server that was just waited for in vain."""
        if self._gave_up is not None and time.monotonic() - self._gave_up[0] < GIVEN_UP_FOR:
            raise self._gave_up[1]
        self._gave_up = None
        try:
            return retrying(action, patience=self._patience)
        except SourceError as error:
            if is_transient(error):
                self._gave_up = (time.monotonic(), error)
            raise


def _snapshot(connection: Connection[Any]) -> str:
    row = connection.execute("SELECT pg_current_snapshot()::text").fetchone()
    assert row is not None
    return str(row[0])
