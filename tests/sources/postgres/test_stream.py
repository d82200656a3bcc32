"""What a real server's log says, read through a slot."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime

import psycopg
import pytest
from psycopg.pq import TransactionStatus

from strandline.errors import SourceError
from strandline.sources.postgres.lsn import format_lsn, parse_lsn
from strandline.sources.postgres.pgoutput import (
    UNCHANGED,
    Delete,
    Insert,
    Message,
    Other,
    Relation,
    RelationColumn,
    Truncate,
    Update,
    Values,
)
from strandline.sources.postgres.stream import Pending, count, peek
from tests.sources.postgres.slots import PUBLICATION, Slot, slot_of, transactions

pytestmark = pytest.mark.postgres

LONG = "string_agg(md5(n::text), '') FROM generate_series(1, 300) n"
INT, TEXT, NUMERIC = 23, 25, 1700
PAGE = 8192
PAGE_HEADERS = (24, 40)


@pytest.fixture
def slot(database: str) -> Iterator[Slot]:
    with slot_of(database) as slot:
        yield slot


@pytest.fixture
def items(slot: Slot) -> int:
    """A table with the default identity: its oid."""
    slot.execute("CREATE TABLE items (id int PRIMARY KEY, name text, price numeric(12, 2))")
    return slot.oid("items")


def inserted(messages: list[Message]) -> list[Values]:
    return [one.new for one in messages if isinstance(one, Insert)]


def xid_of(connection: psycopg.Connection) -> int:
    (xid,) = connection.execute("SELECT pg_current_xact_id()::text::bigint").fetchone() or (0,)
    return int(xid)


def status(slot: Slot) -> TransactionStatus:
    return slot.reader.info.transaction_status


# Rows


def test_a_transaction_has_its_xid_its_time_and_its_place(slot: Slot, items: int) -> None:
    before = slot.flushed()
    with slot.writer.transaction():
        slot.execute("INSERT INTO items VALUES (1, 'a', 1)")
        xid = xid_of(slot.writer)
    ((begin, messages, commit),) = slot.transactions()
    assert begin.xid == xid
    assert before < begin.final_lsn == commit.lsn < commit.end_lsn <= slot.flushed()
    assert begin.committed_at == commit.committed_at
    assert abs((datetime.now(UTC) - begin.committed_at).total_seconds()) < 60
    assert messages == (
        Relation(
            items,
            "public",
            "items",
            "d",
            (
                RelationColumn("id", INT, -1, key=True),
                RelationColumn("name", TEXT, -1, key=False),
                RelationColumn("price", NUMERIC, (12 << 16 | 2) + 4, key=False),
            ),
        ),
        Insert(items, ("1", "a", "1.00")),
    )


def test_with_the_default_identity_there_is_no_old_row_but_its_key(slot: Slot, items: int) -> None:
    slot.execute(
        "INSERT INTO items VALUES (1, 'a', NULL)",
        "UPDATE items SET name = 'b'",
        "UPDATE items SET id = 2",
        "DELETE FROM items",
    )
    assert slot.changes() == [
        Insert(items, ("1", "a", None)),
        Update(items, None, False, ("1", "b", None)),
        Update(items, ("1", None, None), True, ("2", "b", None)),
        Delete(items, ("2", None, None), True),
    ]


def test_with_the_full_identity_there_is_the_old_row(slot: Slot, items: int) -> None:
    slot.execute(
        "ALTER TABLE items REPLICA IDENTITY FULL",
        "INSERT INTO items VALUES (1, 'a', 1)",
        "UPDATE items SET name = 'b'",
        "UPDATE items SET id = 2",
        "DELETE FROM items",
    )
    assert slot.changes() == [
        Insert(items, ("1", "a", "1.00")),
        Update(items, ("1", "a", "1.00"), False, ("1", "b", "1.00")),
        Update(items, ("1", "b", "1.00"), False, ("2", "b", "1.00")),
        Delete(items, ("2", "b", "1.00"), False),
    ]
    (relation,) = slot.relations()
    assert relation.identity == "f"
    assert all(column.key for column in relation.columns)


def test_an_index_can_be_the_identity(slot: Slot) -> None:
    slot.execute(
        "CREATE TABLE t (id int PRIMARY KEY, code text NOT NULL UNIQUE)",
        "ALTER TABLE t REPLICA IDENTITY USING INDEX t_code_key",
        "INSERT INTO t VALUES (1, 'a')",
        "UPDATE t SET id = 2",
        "UPDATE t SET code = 'b'",
        "DELETE FROM t",
    )
    oid = slot.oid("t")
    assert slot.changes() == [
        Insert(oid, ("1", "a")),
        Update(oid, None, False, ("2", "a")),
        Update(oid, (None, "a"), True, ("2", "b")),
        Delete(oid, (None, "b"), True),
    ]
    (relation,) = slot.relations()
    assert relation.identity == "i"
    assert [column.key for column in relation.columns] == [False, True]


@pytest.mark.parametrize("identity", ["DEFAULT", "FULL"])
def test_a_value_out_of_line_that_did_not_change_is_not_in_the_new_row(slot: Slot, identity: str) -> None:
    slot.execute(
        "CREATE TABLE t (id int PRIMARY KEY, n int, long text)",
        f"ALTER TABLE t REPLICA IDENTITY {identity}",
        f"INSERT INTO t SELECT 1, 1, {LONG}",
        "UPDATE t SET n = 2",
        "UPDATE t SET id = 2",
        "UPDATE t SET long = long || '!'",
        "DELETE FROM t",
    )
    oid = slot.oid("t")
    full = identity == "FULL"
    insert, *updates, delete = slot.changes()
    assert isinstance(insert, Insert)
    long = insert.new[2]
    assert isinstance(long, str)
    assert len(long) == 300 * 32
    assert updates == [
        Update(oid, ("1", "1", long) if full else None, False, ("1", "2", UNCHANGED)),
        Update(oid, ("1", "2", long) if full else ("1", None, None), not full, ("2", "2", UNCHANGED)),
        Update(oid, ("2", "2", long) if full else None, False, ("2", "2", f"{long}!")),
    ]
    assert delete == Delete(oid, ("2", "2", f"{long}!") if full else ("2", None, None), not full)


def test_truncate_names_all_tables_at_once(slot: Slot, items: int) -> None:
    slot.execute(
        "CREATE TABLE parts (item int REFERENCES items)",
        "INSERT INTO items VALUES (1, 'a', 1)",
        "TRUNCATE items, parts RESTART IDENTITY",
        "TRUNCATE items CASCADE",
        "TRUNCATE parts",
    )
    parts = slot.oid("parts")
    assert slot.changes() == [
        Insert(items, ("1", "a", "1.00")),
        Truncate((items, parts), cascade=False, restart_identity=True),
        Truncate((items, parts), cascade=True, restart_identity=False),
        Truncate((parts,), cascade=False, restart_identity=False),
    ]


def test_copied_rows_are_inserts(slot: Slot, items: int) -> None:
    rows: list[Values] = [(str(n), None if n % 3 == 0 else f"n\t{n}\\é", f"{n}.50") for n in range(1000)]
    with slot.writer.cursor() as cursor, cursor.copy("COPY items FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)
    ((_, messages, _),) = slot.transactions()
    assert inserted(list(messages)) == rows


def test_what_is_rolled_back_is_not_in_the_log(slot: Slot, items: int) -> None:
    with slot.writer.transaction():
        slot.execute("INSERT INTO items VALUES (1, 'a', 1)")
        with slot.writer.transaction() as savepoint:
            slot.execute("INSERT INTO items VALUES (2, 'b', 2)", "DELETE FROM items WHERE id = 1")
            raise psycopg.Rollback(savepoint)
        with slot.writer.transaction():
            slot.execute("INSERT INTO items VALUES (3, 'c', 3)")
        xid = xid_of(slot.writer)
    with slot.writer.transaction(force_rollback=True):
        slot.execute("INSERT INTO items VALUES (4, 'd', 4)")
    ((begin, messages, _),) = slot.transactions()
    # A savepoint has an xid of its own, which the log does not show.
    assert begin.xid == xid
    assert inserted(list(messages)) == [("1", "a", "1.00"), ("3", "c", "3.00")]


def test_a_transaction_that_changed_no_row_is_not_in_the_log(slot: Slot, items: int) -> None:
    slot.execute("SELECT pg_current_xact_id()", "UPDATE items SET name = 'a'", "CREATE TABLE other ()")
    assert slot.peek() == []


def test_a_prepared_transaction_is_in_the_log_once_it_is_committed(slot: Slot, items: int) -> None:
    slot.execute("BEGIN", "INSERT INTO items VALUES (1, 'kept', 1)")
    xid = xid_of(slot.writer)
    slot.execute("PREPARE TRANSACTION 'kept'")
    slot.execute("BEGIN", "INSERT INTO items VALUES (2, 'gone', 1)", "PREPARE TRANSACTION 'gone'")
    slot.execute("INSERT INTO items VALUES (3, 'plain', 1)", "ROLLBACK PREPARED 'gone'")
    assert inserted(slot.peek()) == [("3", "plain", "1.00")]
    between = slot.flushed()
    slot.execute("COMMIT PREPARED 'kept'")
    assert inserted(slot.peek(between)) == [("3", "plain", "1.00")]
    _, (begin, messages, _) = slot.transactions()
    assert begin.xid == xid
    assert begin.final_lsn >= between
    assert inserted(list(messages)) == [("1", "kept", "1.00")]


# Tables


def test_a_relation_comes_again_after_its_table_changed(slot: Slot, items: int) -> None:
    slot.execute(
        "INSERT INTO items VALUES (1, 'a', 1)",
        "INSERT INTO items VALUES (2, 'b', 1)",
        "ALTER TABLE items RENAME name TO title",
        "ALTER TABLE items DROP price",
        "ALTER TABLE items RENAME TO goods",
        "INSERT INTO goods VALUES (3, 'c')",
    )
    first, second = slot.relations()
    assert (first.oid, first.table, [c.name for c in first.columns]) == (items, "items", ["id", "name", "price"])
    assert (second.oid, second.table, [c.name for c in second.columns]) == (items, "goods", ["id", "title"])
    assert inserted(slot.peek()) == [("1", "a", "1.00"), ("2", "b", "1.00"), ("3", "c")]


def test_stored_generated_columns_are_there_if_published(slot: Slot) -> None:
    slot.execute(
        "CREATE TABLE t (id int PRIMARY KEY, twice int GENERATED ALWAYS AS (id * 2) STORED)",
        "INSERT INTO t VALUES (1)",
        """ALTER PUBLICATION "All ""the"" tables" SET (publish_generated_columns = stored)""",
        "INSERT INTO t VALUES (2)",
    )
    without, published = slot.relations()
    assert [column.name for column in without.columns] == ["id"]
    assert [column.name for column in published.columns] == ["id", "twice"]
    assert inserted(slot.peek()) == [("1",), ("2", "4")]


def test_types_of_ones_own_and_origins_are_passed_over(slot: Slot) -> None:
    slot.execute("CREATE TYPE mood AS ENUM ('sad', 'happy')", "CREATE TABLE t (m mood)")
    slot.execute("SELECT pg_replication_origin_create('there')", "SELECT pg_replication_origin_session_setup('there')")
    slot.execute("INSERT INTO t VALUES ('happy')")
    messages = slot.peek()
    slot.execute("SELECT pg_replication_origin_session_reset()", "SELECT pg_replication_origin_drop('there')")
    assert [one for one in messages if isinstance(one, Other)] == [Other("O"), Other("Y")]
    assert inserted(messages) == [("happy",)]


# Reading


def test_reading_again_gives_the_same(slot: Slot, items: int) -> None:
    slot.execute("INSERT INTO items VALUES (1, 'a', 1)", "UPDATE items SET price = 2", "TRUNCATE items")
    messages = slot.peek()
    assert [type(one).__name__ for one in messages] == [
        *("Begin", "Relation", "Insert", "Commit"),
        *("Begin", "Update", "Commit"),
        # To empty a table is to give it another file: its definition comes again.
        *("Begin", "Relation", "Truncate", "Commit"),
    ]
    assert slot.peek() == messages
    assert slot.peek(chunk=1) == messages


def test_a_huge_transaction_is_read_in_chunks(slot: Slot, items: int) -> None:
    slot.execute("INSERT INTO items SELECT n, 'name of ' || n, n FROM generate_series(1, 100000) n")
    stream = peek(slot.reader, slot.name, PUBLICATION, None)
    rows = 0
    tracemalloc.start()
    for message in stream:
        if isinstance(message, Insert):
            rows += 1
            assert message.new[0] == str(rows)
        if rows == 20_000:
            # Slows everything down.
            _, most = tracemalloc.get_traced_memory()
            tracemalloc.stop()
    assert rows == 100_000
    # 5,000 messages of 60 bytes, not 100,000.
    assert most < 2_000_000
    items_table = ("public", "items")
    assert slot.count() == Pending(1, {items_table: 1}, {items_table: 100_000}, frozenset({items_table}), frozenset())


def test_transactions_come_in_the_order_of_their_commits(slot: Slot, items: int) -> None:
    with psycopg.connect(slot.dsn) as first, psycopg.connect(slot.dsn) as second:
        first.execute("INSERT INTO items VALUES (1, 'first', 1)")
        second.execute("INSERT INTO items VALUES (2, 'second', 1)")
        first.execute("INSERT INTO items VALUES (3, 'first', 1)")
        xids = [xid_of(second), xid_of(first)]
        second.execute("INSERT INTO items VALUES (4, 'second', 1)")
        second.commit()
        first.commit()
    found = slot.transactions()
    assert [begin.xid for begin, _, _ in found] == xids
    assert xids != sorted(xids)
    assert [[row[0] for row in inserted(list(messages))] for _, messages, _ in found] == [["2", "4"], ["1", "3"]]


def test_a_place_between_two_transactions_gives_exactly_the_first(slot: Slot, items: int) -> None:
    slot.execute("INSERT INTO items VALUES (1, 'a', 1)")
    between = slot.flushed()
    slot.execute("INSERT INTO items VALUES (2, 'b', 1)")
    assert inserted(slot.peek(between)) == [("1", "a", "1.00")]
    assert slot.count(between).transactions == 1
    assert inserted(slot.peek(slot.flushed())) == [("1", "a", "1.00"), ("2", "b", "1.00")]


def test_what_is_read_up_to_a_place_is_what_the_slot_forgets_when_advanced_to_it(slot: Slot, items: int) -> None:
    copy = f"SELECT pg_copy_logical_replication_slot('{slot.name}', '{slot.name}_copy')"
    advance = f"SELECT pg_replication_slot_advance('{slot.name}_copy', '0/0'::pg_lsn + %s)"
    for number in range(4):
        slot.execute(f"INSERT INTO items VALUES ({number}, 'a', 1)", "CREATE TABLE between ()", "DROP TABLE between")
    all_of_them = slot.transactions()
    _, (begin, _, commit), *_ = all_of_them
    # Before, at, inside, at the end of, and after a commit record.
    for upto in (begin.final_lsn - 8, begin.final_lsn, begin.final_lsn + 8, commit.end_lsn, commit.end_lsn + 8):
        slot.execute(copy)
        slot.writer.execute(advance, (upto,))
        read, left = slot.transactions(upto), transactions(slot.peek(slot=f"{slot.name}_copy"))
        slot.execute(f"SELECT pg_drop_replication_slot('{slot.name}_copy')")
        assert [begin for begin, _, _ in read + left] == [begin for begin, _, _ in all_of_them]
        assert len(read) == (2 if upto > begin.final_lsn else 1)


def start_of_a_page(slot: Slot) -> int:
    """Fill a page of the log to its end; what is written next starts after the header of the next page."""

    def write(size: int) -> int:
        slot.execute(f"SELECT pg_logical_emit_message(false, 'filler', repeat('x', {size}), true)")
        return parse_lsn(slot.value("SELECT pg_current_wal_insert_lsn()"))

    # The server may write to the log in between.
    for _ in range(20):
        begin = write(1000)
        end = write(1000)
        left = PAGE - end % PAGE
        if begin // PAGE == end // PAGE and left >= end - begin:
            place = write(1000 + left - (end - begin))
            if place // PAGE == end // PAGE + 1 and place % PAGE in PAGE_HEADERS:
                return place
    raise AssertionError("no end of a page was met")


def test_the_transaction_that_the_server_sends_too_many_is_left_out(slot: Slot, items: int) -> None:
    with psycopg.connect(slot.dsn) as other:
        other.execute("INSERT INTO items VALUES (1, 'a', 1)")
        place = start_of_a_page(slot)
    ((begin, _, _),) = slot.transactions()
    assert begin.final_lsn == place
    # The record before ended with the page, so that the server has not yet reached the place when it sends this one.
    sent = (
        f"SELECT count(*) FROM pg_logical_slot_peek_binary_changes('{slot.name}', '{format_lsn(place)}', NULL,"
        """ 'proto_version', '1', 'publication_names', '"All ""the"" tables"')"""
    )
    assert slot.value(sent) == 4
    assert slot.peek(place) == []
    assert slot.count(place).transactions == 0
    assert len(slot.peek(place + 1)) == 4


def test_each_end_of_a_transaction_gives_the_transactions_so_far(slot: Slot, items: int) -> None:
    for number in range(5):
        slot.execute(f"INSERT INTO items VALUES ({number}, 'a', 1)")
    all_of_them = slot.transactions()
    assert [slot.transactions(commit.end_lsn) for _, _, commit in all_of_them] == [
        all_of_them[: number + 1] for number in range(5)
    ]
    assert slot.peek(0) == []


def test_nothing_stays_behind_when_reading_is_broken_off(slot: Slot, items: int) -> None:
    slot.execute("SET TimeZone = 'Asia/Tokyo'", "INSERT INTO items SELECT n FROM generate_series(1, 100) n")
    slot.reader.execute("SET TimeZone = 'Asia/Tokyo'")
    with closing(peek(slot.reader, slot.name, PUBLICATION, None, chunk=10)) as stream:
        next(stream)
        assert status(slot) == TransactionStatus.INTRANS
    assert status(slot) == TransactionStatus.IDLE
    assert slot.reader.info.parameter_status("TimeZone") == "Asia/Tokyo"
    with slot.reader.transaction():
        whole = slot.peek()
        assert slot.reader.info.parameter_status("TimeZone") == "Asia/Tokyo"
    assert len(whole) == 103


# Text


def test_text_does_not_depend_on_the_settings_of_who_reads(slot: Slot) -> None:
    slot.execute(
        "CREATE TABLE t (a timestamptz, b date, c interval, d bytea, e float8, f text)",
        "INSERT INTO t VALUES ('2026-03-01 12:00+00', '2026-03-01', '1 day 2 hours', 'a', 0.1::float8 + 0.2, 'é')",
    )
    expected = [("2026-03-01 12:00:00+00", "2026-03-01", "P1DT2H", r"\x61", "0.30000000000000004", "é")]
    assert inserted(slot.peek()) == expected
    for setting in (
        "TimeZone = 'Asia/Tokyo'",
        "DateStyle = 'German, DMY'",
        "IntervalStyle = 'postgres'",
        "bytea_output = 'escape'",
        "extra_float_digits = 0",
        "client_encoding = 'LATIN1'",
    ):
        slot.reader.execute(f"SET {setting}".encode())
    assert inserted(slot.peek()) == expected


def test_a_database_in_another_encoding_is_read(slot: Slot) -> None:
    name = f"{slot.writer.info.dbname}_latin"
    slot.execute(f"CREATE DATABASE {name} ENCODING 'LATIN1' TEMPLATE template0 LOCALE 'C'")
    with slot_of(slot.dsn.replace(f"dbname={slot.writer.info.dbname}", f"dbname={name}")) as latin:
        latin.execute("""CREATE TABLE "größe" ("é" text)""", """INSERT INTO "größe" VALUES ('ü')""")
        assert [(one.table, one.columns[0].name) for one in latin.relations()] == [("größe", "é")]
        assert inserted(latin.peek()) == [("ü",)]
        latin.execute(f"SELECT pg_drop_replication_slot('{latin.name}')")
    slot.execute(f"DROP DATABASE {name}")


# Summaries and errors


def test_pending_changes_are_counted_by_table(slot: Slot, items: int) -> None:
    slot.execute("CREATE SCHEMA s", "CREATE TABLE s.log (n int)", "CREATE TABLE emptied (n int)")
    slot.execute("INSERT INTO emptied VALUES (1)")
    slot.together(
        "INSERT INTO items SELECT n FROM generate_series(1, 5) n",
        "UPDATE items SET price = 1 WHERE id < 3",
        "INSERT INTO s.log SELECT n FROM generate_series(1, 7) n",
    )
    slot.execute("DELETE FROM items WHERE id = 5", "TRUNCATE emptied")
    assert slot.count() == Pending(
        transactions=4,
        touching={("public", "items"): 2, ("s", "log"): 1, ("public", "emptied"): 2},
        rows={("public", "items"): 8, ("s", "log"): 7, ("public", "emptied"): 1},
        only_inserts=frozenset({("s", "log")}),
        truncated=frozenset({("public", "emptied")}),
    )


def test_a_slot_without_changes_has_nothing_pending(slot: Slot) -> None:
    assert slot.count() == Pending(0, {}, {}, frozenset(), frozenset())


def test_changes_from_before_the_publication_are_an_error_not_nothing(slot: Slot, items: int) -> None:
    slot.execute("INSERT INTO items VALUES (1, 'a', 1)", "CREATE PUBLICATION late FOR TABLE items")
    for publication in ("late", "missing"):
        with pytest.raises(SourceError) as caught:
            list(peek(slot.reader, slot.name, publication, None))
        assert caught.value.code == "PUBLICATION_MISSING"
        with pytest.raises(SourceError):
            count(slot.reader, slot.name, publication, None)
    assert len(slot.peek()) == 4


def test_a_missing_slot_is_an_error_of_the_server(slot: Slot) -> None:
    with pytest.raises(psycopg.errors.UndefinedObject, match="none"):
        slot.peek(slot="none")
