"""A PostgreSQL source that cannot be used as declared is refused with what to do, and nothing is half-done."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from strandline import Warehouse
from strandline.demo.server import SUPERUSER, PostgresServer
from strandline.engine.session import Engine
from tests.sources.postgres.live import ENVIRONMENT, live, refused

pytestmark = pytest.mark.postgres

SECRET = "s3cret"

TABLES = (
    "CREATE TABLE plain (id int PRIMARY KEY, x int, d date)",
    "INSERT INTO plain VALUES (1, 10, '2024-01-01')",
    "CREATE TABLE keyless (id int)",
    "CREATE TABLE odd (id int PRIMARY KEY, place point, amount numeric(50,2))",
    'CREATE TABLE twins (id int PRIMARY KEY, x int, "X" int)',
    'CREATE TABLE "Plain" (id int PRIMARY KEY)',
    "CREATE TABLE ranged (during int4range PRIMARY KEY, x int)",
    "CREATE TABLE computed (id int PRIMARY KEY, twice int GENERATED ALWAYS AS (id * 2) STORED)",
    f"CREATE ROLE reader LOGIN REPLICATION PASSWORD '{SECRET}'",
    f"CREATE ROLE nobody_much LOGIN PASSWORD '{SECRET}'",
    "GRANT SELECT ON plain TO reader, nobody_much",
)

Add = Callable[..., Callable[[], None]]


@pytest.fixture(scope="module")
def tables(own_database: str) -> Iterator[str]:
    """A database with tables that are not all as they should be, and two roles that may not do everything."""
    with psycopg.connect(own_database, autocommit=True) as connection:
        for statement in TABLES:
            connection.execute(statement.encode())
        yield own_database
        connection.execute("DROP OWNED BY reader, nobody_much")
        connection.execute("DROP ROLE reader, nobody_much")


@pytest.fixture
def add(tables: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Add]:
    """Declares a source in a new project; whoever is refused leaves no trace there."""
    monkeypatch.setenv(ENVIRONMENT, tables)
    with Warehouse.open(tmp_path / "project") as warehouse:

        def add(**config: Any) -> Callable[[], None]:
            where = {} if "dsn" in config or "dsn_env" in config else {"dsn_env": ENVIRONMENT}
            return lambda: warehouse.add_source("src", kind="postgres", **where, **{"patience": 0, **config})

        yield add
        assert warehouse.sources() == []
        assert list((tmp_path / "project" / "sources").iterdir()) == []


def as_role(dsn: str, user: str, **others: str) -> str:
    return make_conninfo(**{**conninfo_to_dict(dsn), "user": user, "password": SECRET, **others})


def test_a_server_that_does_not_answer_or_does_not_let_us_in(
    add: Add, tables: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ENVIRONMENT, as_role(tables, "reader", port="1"))
    said = refused(add(), "SOURCE_UNREACHABLE")
    assert "reader@127.0.0.1:1/" in said and "check host and port" in said and SECRET not in said
    monkeypatch.setenv(ENVIRONMENT, as_role(tables, "reader", password="wr0ng"))
    said = refused(add(), "SOURCE_LOGIN")
    assert 'password authentication failed for user "reader"' in said and "wr0ng" not in said
    monkeypatch.setenv(ENVIRONMENT, as_role(tables, "reader", dbname="nowhere"))
    assert "check dbname" in refused(add(), "SOURCE_DATABASE")
    monkeypatch.delenv(ENVIRONMENT)
    assert f"export {ENVIRONMENT}" in refused(add(), "SOURCE_DSN_UNSET")


def test_an_address_that_is_none(add: Add) -> None:
    said = refused(add(dsn=f"host=localhost user=app password={SECRET}"), "SOURCE_PASSWORD_IN_DSN")
    assert "dsn_env" in said and SECRET not in said
    assert "either a dsn or a dsn_env" in refused(add(dsn="host=localhost", dsn_env="X"), "SOURCE_ADDRESS")
    assert "either a dsn or a dsn_env" in refused(add(dsn=None), "SOURCE_ADDRESS")
    assert "dsn_env: SHOP_DSN" in refused(add(dsn_env="postgresql://localhost/shop"), "SOURCE_ADDRESS")


def test_a_role_that_may_not_do_what_it_must(add: Add, tables: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT, as_role(tables, "nobody_much"))
    said = refused(add(tables=["plain"]), "SOURCE_PRIVILEGE")
    assert "role nobody_much may not use replication slots" in said
    assert '\n  ALTER ROLE "nobody_much" REPLICATION;' in said
    monkeypatch.setenv(ENVIRONMENT, as_role(tables, "reader"))
    said = refused(add(tables=["odd"]), "SOURCE_PRIVILEGE")
    assert "role reader may not read public.odd" in said
    assert '\n  GRANT SELECT ON public.odd TO "reader";' in said
    said = refused(add(tables=["plain"], publication="p"), "SOURCE_PRIVILEGE")
    statement = re.search(r'\n  (CREATE PUBLICATION "p" FOR TABLE public.plain WITH .*); -- as the owner', said)
    assert statement is not None, said
    with psycopg.connect(tables, autocommit=True) as owner:
        owner.execute(statement[1].encode())
        owner.execute("DROP PUBLICATION p")


def test_tables_that_are_not_there_or_cannot_be_followed(add: Add) -> None:
    said = refused(add(tables=["plian"]), "UNKNOWN_TABLE")
    assert "source src has no table plian; schema public has plain" in said
    said = refused(add(tables=["keyless"]), "NO_REPLICA_IDENTITY")
    assert (
        "ALTER TABLE public.keyless ADD PRIMARY KEY (...), or ALTER TABLE public.keyless REPLICA IDENTITY FULL" in said
    )
    assert "named twice" in refused(add(tables=["plain", "sales.plain"]), "BAD_CONFIG")
    assert "Plain, plain differ only in upper and lower case" in refused(add(tables=["plain", "Plain"]), "BAD_CONFIG")


def test_types_that_do_not_fit(add: Add) -> None:
    said = refused(add(tables=["odd"], types={"odd": {"amount": "int"}}), "SOURCE_TYPE")
    assert "src.odd.amount is of type numeric(50,2) and declared as int" in said
    assert "decimal(p,s) with p up to 38, bigint, double, string" in said
    said = refused(add(tables=["odd"], types={"odd": {"amonut": "string"}}), "SOURCE_TYPE")
    assert "src.odd has no column amonut" in said and "amount" in said
    said = refused(add(tables=["odd"], types={"ood": {"amount": "string"}}), "SOURCE_TYPE")
    assert "src has no table ood" in said and "odd" in said
    assert "special_values" in refused(add(special_values="zero"), "BAD_CONFIG")
    assert "slot" in refused(add(slot="Not-A-Slot"), "BAD_CONFIG")


def test_a_server_without_a_log_or_a_free_slot(add: Add, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"wal_level": "replica", "max_replication_slots": "1"}
    with PostgresServer.start(tmp_path / "server", settings=settings) as server:
        dsn = server.dsn_for(SUPERUSER, server.password)
        monkeypatch.setenv(ENVIRONMENT, dsn)
        said = refused(add(), "WAL_LEVEL")
        assert "wal_level is replica" in said and "ALTER SYSTEM SET wal_level = 'logical'; -- then restart" in said
        server.restart(settings={"wal_level": "logical"})
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("SELECT pg_create_physical_replication_slot('somebody')")
        said = refused(add(), "NO_FREE_SLOT")
        assert "1 of 1 replication slots are in use" in said and "pg_drop_replication_slot('...')" in said


@pytest.mark.spark
def test_a_role_that_may_do_just_enough(tables: str, tmp_path: Path, engine: Engine) -> None:
    """It owns nothing, and an administrator made the publication."""
    with psycopg.connect(tables, autocommit=True) as owner:
        owner.execute("CREATE PUBLICATION ours FOR TABLE plain")
        just_so = {"tables": ["plain"], "publication": "ours", "slot": "ours"}
        with live(as_role(tables, "reader"), tmp_path / "project", engine, **just_so) as opened:
            opened.warehouse.sql("CREATE MATERIALIZED VIEW v AS SELECT id, x FROM src.plain")
            owner.execute("INSERT INTO plain VALUES (2, 20, 'infinity')")
            opened.refresh("src.plain")
            opened.assert_copied("plain")
            create = "CREATE MATERIALIZED VIEW w AS SELECT * FROM src.plain"
            said = refused(lambda: opened.warehouse.sql(create), "FILL_FAILED")
            assert "[SOURCE_VALUE] src.plain.d: infinity cannot be held by date" in said
            assert opened.warehouse.views() == ["v"]
            with live(as_role(tables, "reader"), tmp_path / "other", engine, **just_so) as other:
                create = "CREATE MATERIALIZED VIEW v AS SELECT id FROM src.plain"
                said = refused(lambda: other.warehouse.sql(create), "SLOT_TAKEN")
                assert "another warehouse may be using it" in said and "Give this source another `slot`" in said
                assert other.warehouse.views() == []
            opened.warehouse.drop("v")
            opened.warehouse.remove_source("src")
            assert owner.execute("SELECT slot_name FROM pg_replication_slots").fetchall() == []
            assert owner.execute("SELECT pubname FROM pg_publication").fetchall() == [("ours",)]


@pytest.mark.spark
def test_views_that_cannot_be(tables: str, tmp_path: Path, engine: Engine) -> None:
    with live(tables, tmp_path / "project", engine, schema="public") as opened:

        def create(query: str) -> Callable[[], object]:
            return lambda: opened.warehouse.sql(f"CREATE MATERIALIZED VIEW w AS {query}")

        for query in ("SELECT * FROM src.odd", "SELECT id, place FROM src.odd"):
            said = refused(create(query), "UNSUPPORTED_TYPE")
            assert "src.odd.place is of type point" in said and "types: {odd: {place: string}}" in said
        assert "REPLICA IDENTITY FULL" in refused(create("SELECT id FROM src.keyless"), "NO_REPLICA_IDENTITY")
        assert "src.ranged.during is of type int4range" in refused(
            create("SELECT x FROM src.ranged"), "UNSUPPORTED_TYPE"
        )
        assert "upper and lower case" in refused(create("SELECT x FROM src.twins"), "UNSUPPORTED_TYPE")
        assert "no table src.plain" in refused(create("SELECT id FROM src.plain"), "UNKNOWN_TABLE")
        assert opened.warehouse.views() == []
        opened.warehouse.sql("CREATE MATERIALIZED VIEW n WITH NO DATA AS SELECT count(*) AS n FROM src.odd")
        assert [column.name for column in opened.source.node("odd").visible] == ["id"]
        assert opened.rows("SELECT FROM pg_replication_slots") == []


@pytest.mark.spark
@pytest.mark.parametrize(
    ("publication", "says"),
    [
        ("FOR TABLE computed", 'leaves out columns of public.computed (twice); ALTER PUBLICATION "half" SET '),
        ("FOR TABLE computed (id)", "leaves out columns of public.computed (twice); "),
        (
            "FOR TABLE computed WHERE (id > 5)",
            "only some rows of public.computed ((id > 5)); publish the table without",
        ),
        ("FOR TABLE computed WITH (publish = 'insert')", "does not publish all changes; ALTER PUBLICATION"),
    ],
)
def test_publications_that_leave_something_out(
    tables: str, tmp_path: Path, engine: Engine, publication: str, says: str
) -> None:
    with live(tables, tmp_path / "project", engine, tables=["computed"], publication="half") as opened:
        opened.execute(f"CREATE PUBLICATION half {publication}")
        create = "CREATE MATERIALIZED VIEW w AS SELECT id FROM src.computed"
        assert says in refused(lambda: opened.warehouse.sql(create), "PUBLICATION_PARTIAL")
        opened.execute("DROP PUBLICATION half")
