"""Questions answered by PostgreSQL, in a snapshot that a transaction of its own holds.

The tables of a question are joined by the server (:mod:`~strandline.sources.postgres.joins`). Values come as text, in
the form that the log has too (:mod:`~strandline.sources.postgres.types`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, product
from types import TracebackType
from typing import Any, Self

from psycopg import Connection, sql

from strandline.algebra.bag import Row, SignedBag, SignedRow
from strandline.algebra.plan import At, Scan
from strandline.errors import SourceError
from strandline.sources.postgres.address import Address
from strandline.sources.postgres.connect import connect
from strandline.sources.postgres.copying import rows_in_snapshot
from strandline.sources.postgres.faults import explained
from strandline.sources.postgres.jdbc import jdbc_options
from strandline.sources.postgres.joins import AskedTable, Group, Joins, LookUp, in_order
from strandline.sources.postgres.lsn import parse_lsn
from strandline.sources.postgres.marks import marks
from strandline.sources.protocol import Baseline
from strandline.sources.questions import Question, Reply

FETCHED_AT_ONCE = 5_000
"""Rows of an answer that are held as text."""

_CURSOR = "strandline_answer"

# What the catalogs say in the snapshot, and what they say now: TRUNCATE and whatever else writes a table anew puts it
# into another file, and a snapshot from before sees nothing there.
_REWRITTEN = """
WITH RECURSIVE shown (oid) AS (
    SELECT %(oid)s::oid UNION ALL SELECT i.inhrelid FROM shown s JOIN pg_inherits i ON i.inhparent = s.oid
),
present (oid) AS (SELECT %(oid)s::oid UNION SELECT relid FROM pg_partition_tree(%(oid)s::oid::regclass))
SELECT (SELECT array_agg((c.oid, c.relfilenode)::text ORDER BY c.oid) FROM shown JOIN pg_class c USING (oid))
    IS DISTINCT FROM
    (SELECT array_agg((oid, coalesce(pg_relation_filenode(oid), 0))::text ORDER BY oid) FROM present)
"""


class PostgresSnapshot:
    """A snapshot of a database that a transaction holds; *look_up* describes a table as it is now."""

    def __init__(self, source: str, address: Address, patience: float, publication: str, look_up: LookUp) -> None:
        self._source = source
        self._address = address
        self._publication = publication
        self._look_up = look_up
        self._tables: dict[str, AskedTable] = {}
        self._connection = connect(address, autocommit=False)
        try:
            with explained(address):
                self.seen, self.place = _begin(self._connection, patience)
        except BaseException:
            self._connection.close()
            raise

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def ask(self, question: Question) -> Reply:
        given = {number: question.given[s.operand] for number, s in enumerate(question.scans) if not _is_table(s)}
        columns = {column.name: column for scan in question.scans for column in scan.columns}
        if not all(given.values()):
            return Reply(SignedBag(), tuple(columns[name] for name in dict.fromkeys(question.wanted)), (), 0, 0, 0, 0)
        with self._continued():
            tables = {number: self._table(scan) for number, scan in enumerate(question.scans) if _is_table(scan)}
            joins, traffic = Joins(question, tables, given, utf8=is_utf8(self._connection)), _Traffic()
            asked = () if joins.cancels_out else joins.groups
            rows = [SignedBag(self._joined(joins, group, traffic)).items() for group in asked]
            return Reply(
                SignedBag(in_order(rows, asked, joins.shown) if asked else ()),
                tuple(columns[name] for name in joins.shown),
                joins.left,
                traffic.fetched_rows,
                traffic.fetched_bytes,
                traffic.sent_bytes,
                traffic.queries,
            )

    def copy(self, table: str, columns: Sequence[str]) -> Baseline:
        options = jdbc_options(self._address)
        with self._continued():
            found = self._known(table)
            types = {name: column.type for name, column in found.columns.items()}
            rows = rows_in_snapshot(self._connection, found.described, types, columns, options)
            return Baseline(rows, self.seen, marks(self._connection, found.described, self._publication))

    @contextmanager
    def _continued(self) -> Iterator[None]:
        """An error ends the transaction, and with it the snapshot."""
        if self._connection.closed:
            raise self._lost("its connection is closed")
        try:
            with explained(self._address):
                yield
        except SourceError as error:
            self.close()
            if error.code == "SOURCE_LOST":
                raise self._lost(error.message) from None
            raise
        except BaseException:
            self.close()
            raise

    def _lost(self, why: str) -> SourceError:
        return SourceError(
            "SNAPSHOT_LOST",
            f"the snapshot of {self._source} in which questions were asked is gone: {why}; ask all of them anew in "
            "another one, as the next refresh does.",
        )

    def _table(self, scan: Scan) -> AskedTable:
        """The table that a scan reads."""
        assert isinstance(scan.operand, At)
        name = scan.operand.relation.partition(".")[2]
        table = self._known(name)
        check_columns(scan, table, f"{self._source}.{name}")
        return table

    def _known(self, name: str) -> AskedTable:
        """A table, locked from its first use on: nobody writes it anew while the snapshot lives."""
        if name not in self._tables:
            self._connection.execute(f"LOCK TABLE {self._look_up(name).described.quoted} IN ACCESS SHARE MODE".encode())
            found = self._look_up(name)
            row = self._connection.execute(_REWRITTEN, {"oid": found.described.oid}).fetchone()
            assert row is not None
            if row[0]:
                raise self._lost(f"{name} was truncated or written anew since it was taken")
            self._tables[name] = found
        return self._tables[name]

    def _joined(self, joins: Joins, group: Group, traffic: _Traffic) -> Iterator[SignedRow]:
        """The rows of tables that conditions tie together, beside the given rows that go with them."""
        if not group.tables and not group.conditions:
            yield from chain.from_iterable(chain.from_iterable(joins.bundles[n].members for n in group.given))
            return
        for chunks in product(*(joins.bundles[number].chunks() for number in group.given)):
            arrays = [array for chunk in chunks for array in chunk.arrays]
            traffic.sent(group.query, arrays)
            with self._connection.cursor(_CURSOR) as cursor:
                cursor.itersize = FETCHED_AT_ONCE
                cursor.execute(group.query.encode(), arrays)
                for row in cursor:
                    traffic.fetched(row)
                    yield from group.made(row, [chunk.members for chunk in chunks])


def is_utf8(connection: Connection[Any]) -> bool:
    """Whether the database has its text in the encoding that Spark has."""
    return connection.info.parameter_status("server_encoding") == "UTF8"


def check_columns(scan: Scan, table: AskedTable, label: str) -> None:
    """Raise unless the table has the columns of a scan, with their types."""
    now = {name: column.type.type for name, column in table.columns.items()}
    changed = [f.name for f in scan.fields if now.get(f.name) != f.type]
    if changed:
        has = ", ".join(f"{name} {type_}" for name, type_ in now.items())
        raise SourceError(
            "SOURCE_SCHEMA_CHANGED",
            f"{label} has no column {', '.join(changed)} any more, or one of another type; it has {has}; "
            "redefine the view over the new columns.",
        )


def _begin(connection: Connection[Any], patience: float) -> tuple[str, int]:
    """Take the snapshot; what it shows, and a place after all of that.

    A transaction writes the record of its commit before it becomes visible. So whatever the snapshot of this statement
    shows has been written when the statement is carried out, and the end of the log then is behind it: of what is
    inserted into the log, for not all of that need be on disk (``synchronous_commit = off``).
    """
    connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
    connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
    # All rows are fetched, so the plan that gives the first ones soonest is not the best.
    connection.execute("SET LOCAL cursor_tuple_fraction = 1")
    connection.execute(sql.SQL("SET LOCAL lock_timeout = {}").format(int(patience * 1000)))
    row = connection.execute("SELECT pg_current_snapshot()::text, pg_current_wal_insert_lsn()::text").fetchone()
    assert row is not None
    return row[0], parse_lsn(row[1])


def _is_table(scan: Scan) -> bool:
    return isinstance(scan.operand, At)


@dataclass
class _Traffic:
    """What goes over the wire."""

    fetched_rows: int = 0
    fetched_bytes: int = 0
    sent_bytes: int = 0
    queries: int = 0

    def sent(self, query: str, arrays: Sequence[str]) -> None:
        self.queries += 1
        self.sent_bytes += sum(len(text.encode()) for text in (query, *arrays))

    def fetched(self, row: Row) -> None:
        self.fetched_rows += 1
        self.fetched_bytes += sum(len(str(value).encode()) for value in row if value is not None)
