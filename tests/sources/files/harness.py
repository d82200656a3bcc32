"""Sources that can only be read whole, for the conformance suite: a warehouse takes a dump after each transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from strandline import Warehouse
from strandline.algebra.bag import Row
from strandline.engine.session import Engine
from strandline.ingest.copies import place_of
from strandline.ingest.dumped import DumpedSource
from strandline.sources.protocol import Position
from tests.sources.conformance import ARROW, Transaction, after
from tests.sources.files.dumps import declaration, write


class DumpedHarness:
    """A table without a key, of which *dump* makes all rows the newest dump."""

    def __init__(self, warehouse: Warehouse, dump: Callable[[Sequence[Row]], None]) -> None:
        self._warehouse = warehouse
        self._dump = dump
        self._rows: list[Row] = []
        source = warehouse._sources["src"]
        assert isinstance(source, DumpedSource)
        self.source: DumpedSource = source
        warehouse.sql("CREATE MATERIALIZED VIEW v WITH NO DATA AS SELECT * FROM src.t")
        self._refresh()

    def run(self, transaction: Transaction) -> None:
        self._rows = after(self._rows, transaction)
        self._dump(self._rows)
        self._refresh()

    def position(self) -> Position:
        node = self.source.node("t")
        base = self._warehouse._catalog.versions.baseline(node.record.id)
        assert base is not None
        return base.positions["src.t"]

    def leads_to(self, transaction: Position, before: Position, after: Position) -> bool:
        return transaction == after and place_of(after) == place_of(before) + 1

    def _refresh(self) -> None:
        report = self._warehouse.refresh("src.t")
        assert report.ok, report


@contextmanager
def _opened(folder: Path, engine: Engine, **config: Any) -> Iterator[Warehouse]:
    with Warehouse.open(folder, spark=engine.spark) as warehouse:
        warehouse.add_source("src", **config)
        yield warehouse


@contextmanager
def files(folder: Path, engine: Engine) -> Iterator[DumpedHarness]:
    """Dumps in Parquet files."""
    numbers = iter(range(100))

    def dump(rows: Sequence[Row]) -> None:
        write(folder / "dumps" / "t" / f"{next(numbers):03d}.parquet", rows, ARROW)

    dump([])
    with _opened(folder / "project", engine, **declaration(folder / "dumps", shrink=0)) as warehouse:
        yield DumpedHarness(warehouse, dump)


@contextmanager
def jdbc(dsn: str, folder: Path, engine: Engine) -> Iterator[DumpedHarness]:
    """A table of a database, which is read in ranges."""
    with psycopg.connect(dsn, autocommit=True) as connection, pytest.MonkeyPatch.context() as patch:
        columns = 'k bigint, text text, amount numeric(12,2), day date, flag boolean, ratio float8, "odd name" text'
        connection.execute(f"CREATE TABLE t ({columns})")

        def dump(rows: Sequence[Row]) -> None:
            with connection.transaction(), connection.cursor() as cursor:
                cursor.execute("TRUNCATE t")
                cursor.executemany("INSERT INTO t VALUES (%s, %s, %s, %s, %s, %s, %s)", rows)

        info = connection.info
        patch.setenv("TEST_JDBC_PASSWORD", info.password)
        table = {"table": "t", "partition_column": "k", "partitions": 2, "shrink": 0}
        config: dict[str, Any] = {
            "kind": "jdbc",
            "url": f"jdbc:postgresql://{info.host}:{info.port}/{info.dbname}",
            "user": info.user,
            "password_env": "TEST_JDBC_PASSWORD",
            "properties": {"driver": "org.postgresql.Driver"},
            "tables": {"t": table},
        }
        with _opened(folder / "project", engine, **config) as warehouse:
            yield DumpedHarness(warehouse, dump)
