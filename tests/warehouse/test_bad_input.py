"""Bad input gets a message that says what is wrong, what exists and what to do; and nothing is half-done."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from strandline import StrandlineError, Warehouse
from tests.warehouse.shop import Shop

pytestmark = pytest.mark.spark


def refused(action: Callable[[], object], code: str) -> str:
    with pytest.raises(StrandlineError) as caught:
        action()
    assert caught.value.code == code, caught.value
    return str(caught.value)


def create(warehouse: Warehouse, query: str, name: str = "v") -> Callable[[], object]:
    return lambda: warehouse.sql(f"CREATE MATERIALIZED VIEW {name} AS\n{query}")


def unchanged(warehouse: Warehouse, folder: Path) -> None:
    """Nothing was registered, written or published."""
    assert warehouse.views() == []
    assert warehouse.states() == ()
    assert list((folder / "views").iterdir()) == []


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "project"


@pytest.mark.parametrize(
    ("query", "code", "says"),
    [
        ("SELECT * FROM shop.order", "UNKNOWN_TABLE", ["<sql>:2:15", "no table shop.order", "shop.orders"]),
        ("SELECT * FROM nowhere", "UNKNOWN_TABLE", ["no view nowhere", "shop.customers"]),
        ("SELECT totl FROM shop.orders", "UNKNOWN_COLUMN", ["<sql>:2:8", "no column totl", "orders.total", "^^^^"]),
        (
            "SELECT c_id FROM shop.orders o JOIN shop.customers c ON o.c_id = c.c_id",
            "AMBIGUOUS_COLUMN",
            ["<sql>:2:8", "o.c_id or c.c_id"],
        ),
        ("SELECT NULL AS nothing FROM shop.orders", "UNSUPPORTED_TYPE", ["nothing", "void", "cast"]),
        ("SELECT c_id, c_id FROM shop.orders", "DUPLICATE_COLUMN", ["c_id", "AS"]),
        ("SELECT c_id, total FROM shop.orders GROUP BY c_id", "SPARK_REJECTS", ["MISSING_AGGREGATION"]),
        ("SELECT FROM WHERE", "SQL_SYNTAX", ["<sql>:2:"]),
        ("SELECT 'open FROM shop.orders", "SQL_SYNTAX", ["quotes"]),
        ("DELETE FROM shop.orders", "NOT_A_QUERY", ["SELECT"]),
        ("SELECT * FROM v", "CYCLIC_VIEWS", ["v -> v"]),
    ],
)
def test_a_query_that_cannot_be_a_view(
    warehouse: Warehouse, folder: Path, query: str, code: str, says: list[str]
) -> None:
    message = refused(create(warehouse, query), code)
    for part in says:
        assert part in message, message
    unchanged(warehouse, folder)


def test_statements_of_later_versions_are_named_as_such(warehouse: Warehouse) -> None:
    for statement in (
        "ALTER MATERIALIZED VIEW v SET x",
        "EXPIRE FROM t WHERE a < 1",
        "REFRESH MATERIALIZED VIEW v TO TIMESTAMP '2026-01-01'",
    ):
        refused(lambda statement=statement: warehouse.sql(statement), "NOT_YET_AVAILABLE")  # type: ignore[misc]


def test_strict_views_are_refused_where_they_cannot_be_incremental(warehouse: Warehouse, folder: Path) -> None:
    statement = (
        "CREATE MATERIALIZED VIEW v REFRESH POLICY INCREMENTAL STRICT AS "
        "SELECT c.name, o.total FROM shop.customers c JOIN shop.orders o ON o.c_id = c.c_id LIMIT 1 + 2"
    )
    assert "LIMIT" in refused(lambda: warehouse.sql(statement), "NOT_INCREMENTAL")
    unchanged(warehouse, folder)


def test_a_view_is_not_defined_twice(warehouse: Warehouse, folder: Path) -> None:
    create(warehouse, "SELECT c_id FROM shop.orders")()
    create(warehouse, "SELECT  c_id  FROM shop.orders -- the same")()
    assert len(warehouse.states()) == 1
    assert "OR REPLACE" in refused(create(warehouse, "SELECT day FROM shop.orders"), "VIEW_EXISTS")
    (folder / "views" / "again.sql").write_text("CREATE MATERIALIZED VIEW V AS SELECT day FROM shop.orders")
    message = refused(warehouse.refresh, "DUPLICATE_VIEW")
    assert "views/again.sql" in message and "views/v.sql" in message


def test_views_in_files_must_not_go_round_in_circles(warehouse: Warehouse, folder: Path) -> None:
    for name, read in (("a", "b"), ("b", "c"), ("c", "a")):
        (folder / "views" / f"{name}.sql").write_text(f"CREATE MATERIALIZED VIEW {name} AS SELECT * FROM {read}")
    assert "a" in refused(warehouse.refresh, "CYCLIC_VIEWS")
    assert warehouse.views() == []


def test_a_view_that_others_read_is_not_dropped(warehouse: Warehouse) -> None:
    create(warehouse, "SELECT c_id, total FROM shop.orders", "base")()
    create(warehouse, "SELECT max(n) AS m FROM (SELECT c_id, count(*) AS n FROM base GROUP BY c_id) x", "top")()
    assert "read by top" in refused(lambda: warehouse.drop("base"), "VIEW_IN_USE")
    assert "there are: base, top" in refused(lambda: warehouse.drop("bse"), "UNKNOWN_VIEW")
    warehouse.drop("top")
    warehouse.drop("base")
    assert warehouse.views() == []


def test_redefining_a_view_must_suit_those_that_read_it(warehouse: Warehouse) -> None:
    create(warehouse, "SELECT c_id, total FROM shop.orders", "base")()
    create(warehouse, "SELECT c_id, sum(total) AS t FROM base GROUP BY c_id", "top")()
    statement = "CREATE OR REPLACE MATERIALIZED VIEW base AS SELECT c_id, day FROM shop.orders"
    assert "top" in refused(lambda: warehouse.sql(statement), "VIEW_IN_USE")
    assert warehouse.verify("base").ok and warehouse.verify("top").ok


def test_sources_that_are_not_there(warehouse: Warehouse, tmp_path: Path) -> None:
    missing = tmp_path / "nowhere"
    message = refused(lambda: warehouse.add_source("x", kind="delta", path=str(missing)), "SOURCE_PATH_MISSING")
    assert str(missing) in message
    (tmp_path / "plain" / "files").mkdir(parents=True)
    message = refused(lambda: warehouse.add_source("x", kind="delta", path=str(tmp_path / "plain")), "NOT_DELTA")
    assert "files" in message
    refused(lambda: warehouse.add_source("x", kind="oracle"), "BAD_CONFIG")
    refused(lambda: warehouse.add_source("x", kind="delta"), "BAD_CONFIG")
    refused(lambda: warehouse.add_source("a b", kind="delta", path="."), "BAD_SOURCE_NAME")
    message = refused(lambda: warehouse.add_source("shop", kind="delta", path=str(tmp_path)), "SOURCE_EXISTS")
    assert "path" in message and "alter_source" in message
    assert "shop" in refused(lambda: warehouse.remove_source("sohp"), "UNKNOWN_SOURCE")


def test_a_table_that_vanished_holds_back_only_its_views(warehouse: Warehouse, shop: Shop) -> None:
    create(warehouse, "SELECT product, count(*) AS n FROM lake.lines GROUP BY product", "of_lines")()
    create(warehouse, "SELECT c_id, count(*) AS n FROM shop.orders GROUP BY c_id", "of_orders")()
    shown = [tuple(row) for row in warehouse.read("of_lines").collect()]
    shutil.rmtree(shop.path("lines"))
    shop.place_orders_only()
    report = warehouse.refresh()
    assert not report.ok
    problem = report.views["of_lines"].problem
    assert problem is not None and "SOURCE_TABLE_GONE" in problem and "lake.lines" in problem
    assert report.views["of_orders"].problem is None
    assert warehouse.verify("of_orders").ok
    assert sorted(tuple(row) for row in warehouse.read("of_lines").collect()) == sorted(shown)


def test_files_of_the_project_that_cannot_be_read(tmp_path: Path, folder: Path, warehouse: Warehouse) -> None:
    (folder / "sources" / "bad.yml").write_text("kind: delta\n  path: [")
    message = refused(lambda: Warehouse.open(folder), "BAD_YAML")
    assert "sources/bad.yml:2:" in message
    (folder / "sources" / "bad.yml").write_text("kind: delta\npath: .\ncolour: red\n")
    assert "colour" in refused(lambda: Warehouse.open(folder), "BAD_CONFIG")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("x")
    message = refused(lambda: Warehouse.open(tmp_path / "other"), "NOT_A_PROJECT")
    assert "notes.txt" in message and "strandline init" in message


def test_a_catalog_of_a_newer_version_is_left_alone(folder: Path, warehouse: Warehouse) -> None:
    warehouse.close()
    engine = create_engine(f"sqlite:///{folder / '.strandline' / 'catalog.db'}")
    with engine.begin() as connection:
        connection.execute(text("UPDATE catalog_revision SET version_num = '9999'"))
    assert "9999" in refused(lambda: Warehouse.open(folder), "CATALOG_TOO_NEW")


def test_reading_what_is_not_there(warehouse: Warehouse) -> None:
    refused(lambda: warehouse.read("v"), "NO_STATE")
    create(warehouse, "SELECT c_id FROM shop.orders")()
    assert "there are: v" in refused(lambda: warehouse.read("w"), "UNKNOWN_VIEW")
    assert "states go from 1" in refused(lambda: warehouse.read("v", state=7), "UNKNOWN_STATE")
    refused(lambda: warehouse.read("v", as_of="2001-01-01"), "UNKNOWN_STATE")
    refused(lambda: warehouse.read("v", as_of="yesterday"), "BAD_TIME")
    refused(lambda: warehouse.refresh("w"), "UNKNOWN_VIEW")
