"""Tables as a role without privileges sees them in the catalogs, and by what the log tells their rows apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from psycopg import Connection

from strandline.demo.server import SUPERUSER, PostgresServer
from strandline.errors import SourceError
from strandline.sources.postgres.introspect import all_tables, named_tables
from strandline.sources.postgres.pgoutput import Delete, Relation, decode
from strandline.sources.postgres.tables import Partition, PgColumn, PgTable, PgType, identity_problem, key_of

pytestmark = pytest.mark.postgres

DDL = """
CREATE SCHEMA sales;
CREATE DOMAIN price AS numeric(12,2);
CREATE DOMAIN dear AS price;
CREATE DOMAIN dears AS dear[];
CREATE TYPE mood AS ENUM ('sad');

CREATE TABLE orders (
    gone int, id bigint GENERATED ALWAYS AS IDENTITY, "Größe ""x"" y" dear NOT NULL, at timestamptz(3), moods mood[],
    stored int GENERATED ALWAYS AS (1) STORED, virtual int GENERATED ALWAYS AS (2) VIRTUAL,
    paid dears, n numeric(5,-2)[], PRIMARY KEY (at, id) INCLUDE (moods)
);
ALTER TABLE orders DROP COLUMN gone;
CREATE TABLE sales.orders (id int PRIMARY KEY);
CREATE TABLE sales."order" (id int PRIMARY KEY);

CREATE TABLE bag (a int, b text);
CREATE TABLE full_bag (a int, b text);
ALTER TABLE full_bag REPLICA IDENTITY FULL;
CREATE TABLE full_keyed (a int PRIMARY KEY, b text, v int GENERATED ALWAYS AS (a) VIRTUAL);
ALTER TABLE full_keyed REPLICA IDENTITY FULL;
CREATE TABLE by_index (a int PRIMARY KEY, b text NOT NULL, c int NOT NULL);
CREATE UNIQUE INDEX by_index_c_b ON by_index (c, b);
ALTER TABLE by_index REPLICA IDENTITY USING INDEX by_index_c_b;
CREATE TABLE lost_index (a int PRIMARY KEY, b int NOT NULL);
CREATE UNIQUE INDEX lost_index_b ON lost_index (b);
ALTER TABLE lost_index REPLICA IDENTITY USING INDEX lost_index_b;
DROP INDEX lost_index_b;
CREATE TABLE nothing (a int PRIMARY KEY);
ALTER TABLE nothing REPLICA IDENTITY NOTHING;
CREATE TABLE deferred (a int PRIMARY KEY DEFERRABLE);

CREATE TABLE days (day date, id int, note text, PRIMARY KEY (day, id)) PARTITION BY RANGE (day);
CREATE TABLE days_2024 PARTITION OF days FOR VALUES FROM ('2024-01-01') TO ('2025-01-01') PARTITION BY LIST (id);
CREATE TABLE days_2024_1 PARTITION OF days_2024 FOR VALUES IN (1);
CREATE TABLE sales.days_2025 (id int NOT NULL, extra int, note text, day date NOT NULL);
ALTER TABLE sales.days_2025 DROP COLUMN extra;
ALTER TABLE sales.days_2025 REPLICA IDENTITY FULL;
ALTER TABLE days ATTACH PARTITION sales.days_2025 FOR VALUES FROM ('2025-01-01') TO ('2026-01-01');
CREATE TABLE empty_days (day date PRIMARY KEY) PARTITION BY RANGE (day);
CREATE TABLE bag_days (day date) PARTITION BY RANGE (day);
CREATE TABLE bag_days_all PARTITION OF bag_days DEFAULT;

CREATE UNLOGGED TABLE unlogged (id int PRIMARY KEY);
CREATE VIEW a_view AS SELECT 1 AS one;
CREATE MATERIALIZED VIEW a_stored_view AS SELECT 1 AS one;
CREATE TABLE parent (id int PRIMARY KEY);
CREATE TABLE child () INHERITS (parent);
CREATE TABLE hidden (id int PRIMARY KEY);
ALTER TABLE hidden ENABLE ROW LEVEL SECURITY;
CREATE FOREIGN DATA WRAPPER nowhere;
CREATE SERVER elsewhere FOREIGN DATA WRAPPER nowhere;
CREATE FOREIGN TABLE far (id int) SERVER elsewhere;
CREATE TABLE half_far (id int) PARTITION BY LIST (id);
CREATE FOREIGN TABLE half_far_1 PARTITION OF half_far FOR VALUES IN (1) SERVER elsewhere;

CREATE TABLE counted AS SELECT n AS id, repeat('x', 100) AS pad FROM generate_series(1, 1000) n;
CREATE TABLE uncounted AS SELECT n AS id, repeat('x', 100) AS pad FROM generate_series(1, 1000) n;
ANALYZE counted;
"""


@pytest.fixture(scope="module")
def owner(server: PostgresServer) -> Iterator[Connection[Any]]:
    """The owner of the tables."""
    with psycopg.connect(server.dsn_for(SUPERUSER, server.password), autocommit=True) as maker:
        maker.execute("CREATE ROLE onlooker LOGIN PASSWORD 'secret'")
        maker.execute("CREATE DATABASE tables")
    with psycopg.connect(server.dsn_for(SUPERUSER, server.password, "tables"), autocommit=True) as connection:
        connection.execute(DDL.encode())
        yield connection


@pytest.fixture(scope="module")
def guest(server: PostgresServer, owner: Connection[Any]) -> Iterator[Connection[Any]]:
    """Somebody who may connect, and no more."""
    with psycopg.connect(server.dsn_for("onlooker", "secret", "tables"), autocommit=True) as connection:
        yield connection


def table(connection: Connection[Any], name: str) -> PgTable:
    return named_tables(connection, [name], schema="public", source="shop")[name]


def test_columns_with_their_types_resolved(guest: Connection[Any]) -> None:
    found = table(guest, "orders")
    assert (found.schema, found.name, found.quoted, found.kind) == ("public", "orders", "public.orders", "r")
    assert [(c.name, c.type, c.not_null, c.generated, c.identity, c.published) for c in found.columns] == [
        ("id", "bigint", True, "", "a", True),
        ('Größe "x" y', "dear", True, "", "", True),
        ("at", "timestamp(3) with time zone", True, "", "", True),
        ("moods", "mood[]", False, "", "", True),
        ("stored", "integer", False, "s", "", True),
        ("virtual", "integer", False, "v", "", False),
        ("paid", "dears", False, "", "", True),
        ("n", "numeric(5,-2)[]", False, "", "", True),
    ]
    assert found.columns[1].quoted == '"Größe ""x"" y"'
    price = PgType("numeric", "b", (12 << 16 | 2) + 4)
    assert {c.name: c.resolved for c in found.columns if c.name not in ("stored", "virtual")} == {
        "id": PgType("int8"),
        'Größe "x" y': price,
        "at": PgType("timestamptz", "b", 3),
        "moods": PgType("public._mood", "b", -1, PgType("public.mood", "e")),
        "paid": PgType("public._dear", "b", -1, price),
        "n": PgType("_numeric", "b", -1, PgType("numeric", "b", (5 << 16 | (-2 & 0x7FF)) + 4)),
    }


def test_types_are_numbered_as_in_the_log(guest: Connection[Any], owner: Connection[Any]) -> None:
    rows = owner.execute(
        "SELECT atttypid::int8, atttypmod FROM pg_attribute "
        "WHERE attrelid = 'orders'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
    ).fetchall()
    assert [(c.type_oid, c.typmod) for c in table(guest, "orders").columns] == rows


def test_tables_are_called_as_the_user_calls_them(guest: Connection[Any]) -> None:
    found = named_tables(guest, ["orders", "sales.orders", "sales.order"], schema="public", source="shop")
    assert {name: one.quoted for name, one in found.items()} == {
        "orders": "public.orders",
        "sales.orders": "sales.orders",
        "sales.order": 'sales."order"',
    }
    found = named_tables(guest, ["orders", "public.bag"], schema="sales", source="shop")
    assert [one.quoted for one in found.values()] == ["sales.orders", "public.bag"]


def test_all_tables_of_a_schema_are_those_that_can_be_used(guest: Connection[Any]) -> None:
    everything = {"orders", "bag", "full_bag", "full_keyed", "by_index", "lost_index", "nothing", "deferred", "days"}
    everything |= {"empty_days", "bag_days", "child", "counted", "uncounted"}
    assert set(all_tables(guest, "public")) == everything
    assert set(all_tables(guest, "sales")) == {"orders", "order"}
    assert all_tables(guest, "nowhere") == {}
    assert named_tables(guest, [], schema="public", source="shop") == {}


@pytest.mark.parametrize(
    ("name", "key", "identity", "carried"),
    [
        ("orders", ("at", "id"), "d", ("at", "id")),
        ("bag", (), "d", ()),
        ("full_bag", (), "f", ("a", "b")),
        ("full_keyed", ("a",), "f", ("a", "b")),
        ("by_index", ("c", "b"), "i", ("c", "b")),
        ("lost_index", ("a",), "i", ()),
        ("nothing", ("a",), "n", ()),
        ("deferred", (), "d", ()),
        ("days", ("day", "id"), "d", ("day", "id")),
        ("empty_days", ("day",), "d", ("day",)),
        ("bag_days", (), "d", ()),
    ],
)
def test_the_key_and_what_the_log_carries(
    guest: Connection[Any], name: str, key: tuple[str, ...], identity: str, carried: tuple[str, ...]
) -> None:
    found = table(guest, name)
    assert key_of(found) == key
    assert found.identity == identity
    assert found.identity_columns == carried


def test_the_partitions_that_hold_rows_have_an_identity_each(guest: Connection[Any], owner: Connection[Any]) -> None:
    found = table(guest, "days")
    oids = owner.execute("SELECT 'days_2024_1'::regclass::oid::int8, 'sales.days_2025'::regclass::oid::int8").fetchone()
    assert oids is not None
    assert found.kind == "p"
    assert found.partitions == (
        Partition(oids[0], "public.days_2024_1", "d", ("day", "id")),
        Partition(oids[1], "sales.days_2025", "f", ("day", "id", "note")),
    )
    assert found.partition_oids == oids


PROBLEMS = {
    "bag": "public.bag has no primary key, so the log does not say which rows were updated or deleted; "
    "ALTER TABLE public.bag ADD PRIMARY KEY (...), or ALTER TABLE public.bag REPLICA IDENTITY FULL.",
    "nothing": "public.nothing keeps the key (a) of public.nothing out of the log of updates and deletes; "
    "ALTER TABLE public.nothing REPLICA IDENTITY DEFAULT.",
    "lost_index": "public.lost_index keeps the key (a) of public.lost_index out of the log of updates and deletes; "
    "ALTER TABLE public.lost_index REPLICA IDENTITY DEFAULT.",
    "deferred": "the primary key of public.deferred is deferrable, so it does not identify rows in the log; "
    "make it NOT DEFERRABLE, or ALTER TABLE public.deferred REPLICA IDENTITY FULL.",
    "bag_days": "public.bag_days has no primary key, so the log does not say which rows were updated or deleted; "
    "ALTER TABLE public.bag_days ADD PRIMARY KEY (...), or ALTER TABLE public.bag_days_all REPLICA IDENTITY FULL.",
}


def test_a_table_whose_rows_the_log_does_not_identify_is_named_with_the_fix(guest: Connection[Any]) -> None:
    found = all_tables(guest, "public")
    problems = {name: identity_problem(one) for name, one in found.items()}
    expected = PROBLEMS | {name: PROBLEMS["bag"].replace("bag", name) for name in ("child", "counted", "uncounted")}
    assert {name: problem for name, problem in problems.items() if problem} == expected


def test_the_fix_is_one_that_postgres_takes(owner: Connection[Any]) -> None:
    for name in ("nothing", "lost_index", "deferred", "bag_days"):
        problem = identity_problem(table(owner, name))
        assert problem is not None
        with owner.transaction(force_rollback=True):
            owner.execute(("ALTER TABLE" + problem.rsplit("ALTER TABLE", 1)[1].rstrip(".")).encode())
            assert identity_problem(table(owner, name)) is None


def test_a_partition_that_keeps_the_key_out_of_the_log_is_named(owner: Connection[Any]) -> None:
    with owner.transaction(force_rollback=True):
        owner.execute("ALTER TABLE days_2024_1 REPLICA IDENTITY NOTHING")
        found = table(owner, "days")
        assert found.identity_columns == ()
        assert identity_problem(found) == (
            "public.days_2024_1 keeps the key (day, id) of public.days out of the log of updates and deletes; "
            "ALTER TABLE public.days_2024_1 REPLICA IDENTITY DEFAULT."
        )


def test_a_generated_column_that_is_not_published_makes_no_key() -> None:
    column = PgColumn("id", "integer", 23, -1, PgType("int4"), generated="s", published=False)
    found = PgTable(1, "public", "t", "public.t", "r", (column,), ("id",), identity_columns=("id",))
    assert key_of(found) == ()
    assert "has a generated column, which is not in the log" in (identity_problem(found) or "")
    assert identity_problem(replace(found, identity="f")) is None


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a_view", "public.a_view is a view; the log has changes of tables; name the tables that it reads."),
        ("a_stored_view", "is a materialized view;"),
        ("far", "public.far is a foreign table; its changes are in the log of another server"),
        ("half_far", "public.half_far_1 is a foreign table;"),
        ("unlogged", "is unlogged; only logged tables are in the log; ALTER TABLE public.unlogged SET LOGGED."),
        ("days_2024_1", "is a partition of days; the log has its changes as that table's; name days."),
        ("parent", r"shows the rows of tables that inherit from it \(child\), and the log has them apart;"),
        ("hidden", "hides rows of public.hidden from onlooker, .*; ALTER ROLE onlooker BYPASSRLS"),
    ],
)
def test_a_table_whose_changes_the_log_does_not_have_is_refused(
    guest: Connection[Any], name: str, message: str
) -> None:
    with pytest.raises(SourceError, match=message) as caught:
        table(guest, name)
    assert caught.value.code == "SOURCE_TABLE_UNUSABLE"


def test_a_temporary_table_is_refused(owner: Connection[Any]) -> None:
    owner.execute("CREATE TEMPORARY TABLE brief (id int)")
    row = owner.execute("SELECT nspname FROM pg_namespace WHERE oid = pg_my_temp_schema()").fetchone()
    assert row is not None
    with pytest.raises(SourceError, match="is temporary; only its session sees it"):
        table(owner, f"{row[0]}.brief")


def test_an_unknown_table_is_named_with_those_that_exist(guest: Connection[Any]) -> None:
    with pytest.raises(SourceError, match=r"source shop has no table sales\.ordrs; schema sales has orders?, orders?;"):
        table(guest, "sales.ordrs")


def test_sizes_are_known_before_the_table_was_analysed(guest: Connection[Any]) -> None:
    counted, uncounted = table(guest, "counted"), table(guest, "uncounted")
    assert counted.estimated_rows == 1000
    assert 100_000 < counted.bytes < 300_000
    assert 500 < uncounted.estimated_rows < 3000
    assert 100_000 < uncounted.bytes < 300_000
    assert table(guest, "bag").estimated_rows == 0


def test_a_table_that_is_being_altered_is_not_waited_for(guest: Connection[Any], owner: Connection[Any]) -> None:
    guest.execute("SET statement_timeout = '2s'")
    with owner.transaction(force_rollback=True):
        owner.execute("LOCK TABLE counted IN ACCESS EXCLUSIVE MODE")
        assert table(guest, "counted").estimated_rows == 1000


def test_the_identity_of_the_partition_counts(owner: Connection[Any]) -> None:
    owner.execute("CREATE PUBLICATION everything FOR TABLE days WITH (publish_via_partition_root = true)")
    owner.execute("SELECT pg_create_logical_replication_slot('tables', 'pgoutput')")
    owner.execute("INSERT INTO days VALUES ('2024-01-01', 1, 'a'), ('2025-01-01', 1, 'b')")
    owner.execute("DELETE FROM days")
    data = owner.execute(
        "SELECT data FROM pg_logical_slot_get_binary_changes('tables', NULL, NULL, "
        "'proto_version', '1', 'publication_names', 'everything')"
    ).fetchall()
    owner.execute("SELECT pg_drop_replication_slot('tables')")
    messages = [decode(one) for (one,) in data]
    described = {one.oid: (one.table, one.identity) for one in messages if isinstance(one, Relation)}
    assert set(described.values()) == {("days", "d"), ("days_2024_1", "d"), ("days_2025", "f")}
    # Both are said to be of the root and, as it has it, to hold only the key; but the second holds the whole row.
    assert [(described[one.oid][0], one.old, one.old_is_key) for one in messages if isinstance(one, Delete)] == [
        ("days", ("2024-01-01", "1", None), True),
        ("days", ("2025-01-01", "1", "b"), True),
    ]
