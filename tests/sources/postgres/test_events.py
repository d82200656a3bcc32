"""Whatever is done to rows in PostgreSQL, the views over them show it.

One warehouse follows several tables; each test does something to them all, and one refresh takes it in.
"""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from strandline.engine.session import Engine
from strandline.propagate.progress import Event
from tests.sources.postgres.live import Live, live

pytestmark = [pytest.mark.postgres, pytest.mark.spark]

LARGE = "repeat(md5('{}'), 200)"

TABLES = (
    # Names that our own columns have, that Spark and SQL have to quote, and a key of two columns.
    'CREATE TABLE "Odd ""Table" ("_op" int, "Key 2" text, "__sign" numeric(10,2), "c1" text, "_at" text, '
    '"say ""hi""" text, "a.b" date, "tick`" int[], "__here" bool, PRIMARY KEY ("Key 2", "_op"))',
    "INSERT INTO \"Odd \"\"Table\" SELECT i, 'k' || i % 3, i / 7.0, 'c' || i, NULL, '\"', '2024-02-29', "
    "ARRAY[i, NULL], i % 2 = 0 FROM generate_series(1, 20) AS i",
    "CREATE TABLE bag (a int, b text)",
    "ALTER TABLE bag REPLICA IDENTITY FULL",
    "ALTER TABLE bag ALTER b SET STORAGE EXTERNAL",
    f"INSERT INTO bag VALUES (1, 'x'), (1, 'x'), (1, 'x'), (2, NULL), (NULL, NULL), (3, {LARGE.format(3)})",
    "CREATE TABLE toasted (id int PRIMARY KEY, big text, small text, other text)",
    "ALTER TABLE toasted ALTER big SET STORAGE EXTERNAL, ALTER other SET STORAGE EXTERNAL",
    f"INSERT INTO toasted SELECT i, {LARGE.format('a')}, 's', {LARGE.format('b')} FROM generate_series(1, 9) AS i",
    "CREATE TABLE parts (id int, region text, v text, PRIMARY KEY (id, region)) PARTITION BY LIST (region)",
    "CREATE TABLE parts_a PARTITION OF parts FOR VALUES IN ('a')",
    "CREATE TABLE parts_b PARTITION OF parts FOR VALUES IN ('b')",
    "INSERT INTO parts SELECT i, chr(97 + i % 2), 'v' FROM generate_series(1, 10) AS i",
    "CREATE SCHEMA sales",
    "CREATE TABLE sales.orders (id int PRIMARY KEY, code text NOT NULL, total numeric)",
    "CREATE UNIQUE INDEX by_code ON sales.orders (code)",
    "ALTER TABLE sales.orders REPLICA IDENTITY USING INDEX by_code",
    "INSERT INTO sales.orders SELECT i, 'o' || i, i FROM generate_series(1, 10) AS i",
)


@pytest.fixture(scope="module")
def followed(own_database: str, engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """The tables with a view over each, none of them filled."""
    named = {"odd": 'public.Odd "Table', "o": "sales.orders"}
    named |= {name: name for name in ("bag", "toasted", "parts")}
    with psycopg.connect(own_database, autocommit=True) as connection:
        for statement in TABLES:
            connection.execute(statement.encode())
    with live(own_database, tmp_path_factory.mktemp("events") / "project", engine, tables=named) as followed:
        followed.follow("odd", "SELECT * FROM src.odd", 'SELECT * FROM "Odd ""Table"')
        followed.follow("orders", "SELECT total, code FROM src.o", "SELECT total, code FROM sales.orders")
        followed.follow("bags", "SELECT * FROM src.bag")
        followed.follow("toast", "SELECT * FROM src.toasted")
        followed.follow("parted", "SELECT * FROM src.parts")
        yield followed


def test_tables_are_copied_while_they_are_written_to(followed: Live) -> None:
    def write(event: Event) -> None:
        if event.step == "load" and event.subject == "src.bag":
            followed.execute(f"INSERT INTO bag VALUES ({event.what == 'done':d}, 'while copying')")
        if (event.step, event.what, event.subject) == ("load", "started", "src.odd"):
            followed.execute(
                "BEGIN",
                "UPDATE toasted SET small = 'prepared' WHERE id = 1",
                "PREPARE TRANSACTION 'before the copy'",
                "BEGIN",
                "INSERT INTO sales.orders VALUES (100, 'never', 1)",
                "PREPARE TRANSACTION 'never'",
            )

    followed.refresh(watcher=write)
    assert ("s",) in followed.rows("SELECT small FROM toasted WHERE id = 1")
    followed.assert_same()


def test_rows_are_inserted_updated_and_deleted(followed: Live) -> None:
    odd = '"Odd ""Table"'
    followed.execute(
        "COMMIT PREPARED 'before the copy'",
        "ROLLBACK PREPARED 'never'",
        # A row that comes and goes, one that comes again, and keys that change places.
        f"INSERT INTO {odd} VALUES (50, 'k', 1.5, 'c', 'at', 'hi', NULL, '{{}}', NULL)",
        f"UPDATE {odd} SET c1 = 'd', \"tick`\" = '{{1,2}}' WHERE _op = 50",
        f"DELETE FROM {odd} WHERE _op = 50",
        f"DELETE FROM {odd} WHERE _op = 1",
        f"INSERT INTO {odd} (_op, \"Key 2\", _at) VALUES (1, 'k1', 'again')",
        f"UPDATE {odd} SET \"Key 2\" = 'other' WHERE _op IN (2, 3)",
        f"UPDATE {odd} SET _op = -_op, __sign = NULL WHERE _op IN (4, 5)",
        f"UPDATE {odd} SET __here = NOT __here WHERE _op > 15",
    )
    with followed.writer.cursor().copy(f'COPY {odd} (_op, "Key 2") FROM STDIN'.encode()) as copy:
        copy.write("100\tcopied\\n\\t\n101\tcopied\n")
    followed.together(
        "INSERT INTO bag VALUES (7, 'kept')",
        "SAVEPOINT s",
        "INSERT INTO bag VALUES (8, 'rolled back')",
        "DELETE FROM bag WHERE a = 2",
        "ROLLBACK TO s",
        "INSERT INTO bag VALUES (9, 'kept')",
    )
    followed.execute("BEGIN", "DELETE FROM bag", "ROLLBACK")
    followed.execute(
        "DELETE FROM bag WHERE ctid = (SELECT min(ctid) FROM bag WHERE a = 1)",
        "UPDATE bag SET a = 4 WHERE ctid = (SELECT min(ctid) FROM bag WHERE a = 1)",
        "INSERT INTO bag VALUES (NULL, NULL), (2, NULL)",
        "UPDATE bag SET a = 30 WHERE a = 3",
        # Large values that stay as they are, on the way to another value, and in a row that is new.
        "UPDATE toasted SET small = 't' WHERE id = 2",
        "UPDATE toasted SET small = 'u', big = 'short' WHERE id = 3",
        "UPDATE toasted SET small = 'v' WHERE id = 3",
        f"UPDATE toasted SET other = {LARGE.format('new')} WHERE id = 4",
        "UPDATE toasted SET small = 'w' WHERE id = 4",
        "UPDATE toasted SET big = NULL WHERE id = 5",
        f"INSERT INTO toasted VALUES (10, {LARGE.format('ten')}, 's', {LARGE.format('ten')})",
        "UPDATE toasted SET small = 'x' WHERE id = 10",
        # Rows that move from one partition to another.
        "UPDATE parts SET region = 'b' WHERE id = 2",
        "UPDATE parts_b SET v = 'direct' WHERE id = 3",
        "INSERT INTO parts VALUES (11, 'a', 'w'), (11, 'b', 'w')",
        "DELETE FROM parts WHERE id = 4",
        "UPDATE sales.orders SET total = 10.50 WHERE id = 1",
        "UPDATE sales.orders SET id = -id WHERE id = 2",
        "UPDATE sales.orders SET code = 'p3' WHERE id = 3",
        "DELETE FROM sales.orders WHERE id = 4",
        "BEGIN",
        "UPDATE sales.orders SET total = -1 WHERE id = 5",
        "PREPARE TRANSACTION 'across'",
    )
    report = followed.refresh()
    assert {name: view.strategy for name, view in report.views.items() if view.strategy != "incremental"} == {
        "odd": "full"
    }
    followed.assert_same()


def test_tables_are_emptied_and_filled_again(followed: Live) -> None:
    odd = '"Odd ""Table"'
    followed.execute("COMMIT PREPARED 'across'", "UPDATE sales.orders SET total = 6 WHERE id = 6")
    followed.together(
        f"INSERT INTO {odd} (_op, \"Key 2\") VALUES (60, 'gone')",
        f"TRUNCATE {odd}",
        f"INSERT INTO {odd} (_op, \"Key 2\") VALUES (60, 'same transaction'), (1, 'k1')",
    )
    followed.execute(f"UPDATE {odd} SET c1 = 'after' WHERE _op = 60")
    followed.execute(
        "TRUNCATE bag",
        "INSERT INTO bag VALUES (1, 'x'), (1, 'x')",
        "DELETE FROM bag WHERE ctid = '(0,1)'",
        "TRUNCATE toasted",
        f"INSERT INTO toasted VALUES (1, {LARGE.format('again')}, 's', {LARGE.format('again')})",
        "UPDATE toasted SET small = 'changed' WHERE id = 1",
    )
    report = followed.refresh()
    assert {name: view.strategy for name, view in report.views.items() if view.strategy != "incremental"} == {
        "odd": "full",
        "parted": "none",
    }
    followed.assert_same()


def test_what_the_log_does_not_tell_is_read_anew(followed: Live) -> None:
    """Rows that go or come with a partition, and a key that changes while a large value stays."""
    followed.execute(
        "CREATE TABLE parts_c (LIKE parts INCLUDING ALL)",
        "INSERT INTO parts_c VALUES (20, 'c', 'attached')",
        "ALTER TABLE parts ATTACH PARTITION parts_c FOR VALUES IN ('c')",
        "TRUNCATE parts_a",
        "UPDATE toasted SET id = 2",
        "INSERT INTO toasted VALUES (3, 'three', 's', NULL)",
    )
    report = followed.refresh()
    codes = {name: copy.reason.code for name, copy in report.hidden.items() if copy.strategy == "full"}
    assert codes == {"src.parts": "SOURCE_TABLE_REWRITTEN", "src.toasted": "SOURCE_TABLE_REWRITTEN"}
    assert {view.strategy for view in report.views.values()} == {"incremental", "none"}
    followed.assert_same()
    followed.assert_verified()
    followed.execute('UPDATE "Odd ""Table" SET c1 = NULL WHERE _op = 1')
    assert followed.warehouse.verify_source("src.odd").ok
