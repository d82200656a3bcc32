"""PostgreSQL for the conformance suite: a table without a key, whose copy a warehouse brings up to date each time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from strandline.algebra.bag import Row
from strandline.engine.session import Engine
from strandline.ingest.copies import place_of
from strandline.sources.protocol import Position, Source
from tests.sources.conformance import Delete, Insert, Overwrite, Replace, Transaction, Update
from tests.sources.postgres.live import Live, live


class PostgresHarness:
    """A position of the table is one of its copy; the source's own also moves with all else that the server writes."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._live.follow("v", "SELECT * FROM src.t")
        self._live.refresh("src.t")

    @property
    def source(self) -> Source:
        return self._live.source

    def run(self, transaction: Transaction) -> None:
        with self._live.writer.transaction():
            self._carry_out(transaction)
        self._live.refresh("src.t")

    def position(self) -> Position:
        node = self._live.source.node("t")
        base = self._live.warehouse._catalog.versions.baseline(node.record.id)
        assert base is not None
        return base.positions["src.t"]

    def leads_to(self, transaction: Position, before: Position, after: Position) -> bool:
        return place_of(before) <= place_of(transaction) < place_of(after)

    def _carry_out(self, transaction: Transaction) -> None:
        match transaction:
            case Insert(rows):
                self._insert(rows)
            case Delete(key):
                self._live.execute(f"DELETE FROM t WHERE k = {key}")
            case Update(key, text):
                self._live.writer.execute("UPDATE t SET text = %s WHERE k = %s", (text, key))
            case Replace(keys, rows):
                self._live.writer.execute("DELETE FROM t WHERE k = ANY(%s)", (list(keys),))
                self._insert(rows)
            case Overwrite(rows):
                self._live.execute("TRUNCATE t")
                self._insert(rows)

    def _insert(self, rows: tuple[Row, ...]) -> None:
        with self._live.writer.cursor() as cursor:
            cursor.executemany("INSERT INTO t VALUES (%s, %s, %s, %s, %s, %s, %s)", rows)


@contextmanager
def following(dsn: str, folder: Path, engine: Engine) -> Iterator[PostgresHarness]:
    """The suite's table in a database, empty, with a warehouse in *folder* that follows it."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE t (k bigint, text text, amount numeric(12,2), day date, flag boolean, ratio float8, "
            '"odd name" text)'
        )
        connection.execute("ALTER TABLE t REPLICA IDENTITY FULL")
    with live(dsn, folder, engine, tables=["t"]) as followed:
        yield PostgresHarness(followed)
