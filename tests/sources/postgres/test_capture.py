"""Changes become durable once: into the log, then into the catalog, then the server may forget them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from deltalake import DeltaTable

from strandline.catalog import CaptureRecord, Catalog, Lease
from strandline.ingest.capture import TableToCapture, capture
from strandline.ingest.change_log import ChangeLog
from strandline.sources.postgres.address import Address
from strandline.sources.postgres.source import PostgresSource
from strandline.sources.protocol import Wanted

pytestmark = pytest.mark.postgres

Rows = list[tuple[Any, ...]]


class Capturing:
    """A source with two tables whose changes are captured into logs below a folder."""

    def __init__(self, dsn: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("CAPTURED_DSN", dsn)
        self.folder = folder
        self.connection = psycopg.connect(dsn, autocommit=True)
        self.connection.execute("CREATE TABLE a (id int PRIMARY KEY, v text)")
        self.connection.execute("CREATE TABLE b (id int PRIMARY KEY, v text)")
        self.source = PostgresSource("src", Address(dsn_env="CAPTURED_DSN"), owner="test")
        self.catalog = Catalog.open(f"sqlite:///{folder}/catalog.db")
        self.catalog.sources.put("src", "postgres", {})
        for table in ("a", "b"):
            self.catalog.leaves.put("src", table, location=None, columns=(), key=(), position=None)
        self.lease: Lease = self.catalog.lock.acquire("test").__enter__()
        opened = self.source.open_log(["a", "b"])
        self.catalog.captures.begin("src", "first", opened.place, opened.details, self.lease)
        described = self.source.described_tables()
        self.tables = {
            table: TableToCapture(
                Wanted(("id", "v"), ("id",), {"oid": described[table].oid}), str(folder / "logs" / table)
            )
            for table in ("a", "b")
        }

    @property
    def record(self) -> CaptureRecord:
        found = self.catalog.captures.get("src")
        assert found is not None
        return found

    def run(self, *statements: str) -> None:
        with self.connection.transaction():
            for statement in statements:
                self.connection.execute(statement.encode())

    def capture(self) -> dict[str, dict[str, int]]:
        end = self.source.end()
        return capture(self.source, self.catalog, self.record, self.tables, end, {}, self.lease)[1].rows

    def logged(self, table: str) -> Rows:
        """What counts of a log, in its order."""
        version = self.record.tables[table].version
        if version is None:
            return []
        rows = DeltaTable(self.tables[table].path, version=version).to_pyarrow_table().to_pylist()
        rows.sort(key=lambda row: (row["_place"], row["_n"]))
        return [(row["_op"], row["c1"], row["c2"]) for row in rows]

    def retained(self) -> int:
        """Transactions that the slot still holds."""
        details = self.record.details
        return len(list(self.source.captured({}, 0, self.source.end(), details))) // 2

    def close(self) -> None:
        self.catalog.close()
        self.source.close_log(self.record.details)
        self.source.close()
        self.connection.close()


@pytest.fixture
def capturing(database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Capturing]:
    found = Capturing(database, tmp_path, monkeypatch)
    yield found
    found.close()


def test_entries_in_commit_order_and_transactions_in_the_catalog(capturing: Capturing) -> None:
    capturing.run("INSERT INTO a VALUES (1, 'x'), (2, NULL)", "INSERT INTO b VALUES (1, 'y')")
    capturing.run("UPDATE a SET v = 'z' WHERE id = 1")
    capturing.run("UPDATE a SET id = 3 WHERE id = 2")
    capturing.run("DELETE FROM a WHERE id = 1")
    capturing.run("TRUNCATE b")
    assert capturing.capture() == {
        "a": {"inserted": 3, "updated": 1, "deleted": 2},
        "b": {"inserted": 1, "truncated": 1},
    }
    assert capturing.logged("a") == [
        ("I", "1", "x"),
        ("I", "2", None),
        ("U", "1", "z"),
        ("D", "2", None),
        ("I", "3", None),
        ("D", "1", None),
    ]
    assert capturing.logged("b") == [("I", "1", "y"), ("T", None, None)]
    noted = capturing.catalog.unit_of_work.between("src.a", 0, capturing.record.place)
    assert [t.summary for t in noted] == [
        {"inserted": 2},
        {"updated": 1},
        {"deleted": 1, "inserted": 1},
        {"deleted": 1},
    ]
    assert capturing.capture() == {}
    assert capturing.retained() == 0


def test_a_quiet_stretch_advances_the_slot(capturing: Capturing) -> None:
    capturing.run("CREATE TABLE elsewhere AS SELECT generate_series(1, 1000)")
    before = capturing.record.place
    assert capturing.capture() == {}
    assert capturing.record.place > before
    health = capturing.source.health(capturing.record.place, capturing.record.details)
    assert health.lost is None
    assert health.retained_bytes is not None and health.retained_bytes < 100_000


@pytest.mark.parametrize("where", ["flush", "record", "acknowledge"])
def test_a_capture_that_dies_is_repeated_and_nothing_counts_twice(
    capturing: Capturing, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    capturing.run("INSERT INTO a VALUES (1, 'x')")
    capturing.capture()
    capturing.run("INSERT INTO a VALUES (2, 'y')", "INSERT INTO b VALUES (2, 'y')")
    with monkeypatch.context() as patched:
        _die(patched, capturing, where)
        with pytest.raises(KeyboardInterrupt):
            capturing.capture()
    capturing.run("INSERT INTO a VALUES (3, 'z')")
    capturing.capture()
    assert capturing.logged("a") == [("I", "1", "x"), ("I", "2", "y"), ("I", "3", "z")]
    assert capturing.logged("b") == [("I", "2", "y")]
    assert len(capturing.catalog.unit_of_work.since("src.a")) == 3
    assert capturing.retained() == 0


def _die(patched: pytest.MonkeyPatch, capturing: Capturing, where: str) -> None:
    """Be interrupted after the first log was written, before the catalog knows, or before the server is told."""
    if where == "flush":
        flush: Callable[[ChangeLog], None] = ChangeLog.flush
        flushed: list[ChangeLog] = []

        def interrupted(log: ChangeLog) -> None:
            if flushed:
                raise KeyboardInterrupt
            flushed.append(log)
            flush(log)

        patched.setattr(ChangeLog, "flush", interrupted)
    elif where == "record":
        patched.setattr(capturing.catalog.captures, "record", _interrupt)
    else:
        patched.setattr(capturing.source, "acknowledge", _interrupt)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_huge_transaction_is_written_in_portions(capturing: Capturing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strandline.ingest.change_log.ROWS_AT_ONCE", 1_000)
    capturing.run("INSERT INTO a SELECT n, repeat('x', 100) FROM generate_series(1, 10500) AS n")
    assert capturing.capture() == {"a": {"inserted": 10500}}
    assert [int(key) for _, key, _ in capturing.logged("a")] == list(range(1, 10501))
    assert capturing.record.tables["a"].version == 10


def test_writers_are_captured_completely_while_they_write(capturing: Capturing) -> None:
    stop = threading.Event()
    written: list[list[int]] = [[], []]

    def write(number: int) -> None:
        with psycopg.connect(capturing.connection.info.dsn, password=capturing.connection.info.password) as writer:
            key = number
            while not stop.is_set():
                writer.execute("INSERT INTO a VALUES (%s, 'x')", (key,))
                if key % 7 == 0:
                    writer.rollback()
                else:
                    writer.commit()
                    written[number].append(key)
                key += 2

    writers = [threading.Thread(target=write, args=(number,)) for number in range(2)]
    for writer in writers:
        writer.start()
    for _ in range(15):
        capturing.capture()
    stop.set()
    for writer in writers:
        writer.join()
    capturing.capture()
    keys = [int(key) for _, key, _ in capturing.logged("a")]
    assert len(keys) == len(set(keys))
    assert sorted(keys) == sorted(written[0] + written[1])
    assert len(keys) > 50


def test_what_cannot_be_logged_marks_the_log_as_broken(capturing: Capturing) -> None:
    capturing.run("INSERT INTO a VALUES (1, 'x')")
    capturing.run("ALTER TABLE a RENAME COLUMN v TO w")
    capturing.run("INSERT INTO a VALUES (2, 'y')", "INSERT INTO b VALUES (2, 'y')")
    capturing.capture()
    broken = capturing.record.tables["a"]
    assert broken.broken is not None and broken.broken.startswith("SOURCE_SCHEMA_CHANGED")
    assert broken.broken_at is not None
    assert capturing.logged("a") == [("I", "1", "x")]
    assert capturing.logged("b") == [("I", "2", "y")]
