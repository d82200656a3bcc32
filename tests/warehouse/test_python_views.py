"""Views that are defined in Python end as the statements and files that SQL would have made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from strandline import Warehouse
from strandline.errors import SqlError
from strandline.sql import ddl
from strandline.sql.create_text import ViewOptions, create_text
from strandline.sql.statements import CreateView
from tests.warehouse.shop import Shop, assert_verified

PRODUCTS = "SELECT product, sum(qty) AS qty FROM lake.lines GROUP BY product"


@pytest.mark.spark
def test_a_view_of_sql_text_is_that_of_a_statement(warehouse: Warehouse, shop: Shop, tmp_path: Path) -> None:
    report = warehouse.view("products", PRODUCTS + ";", policy="incremental", comment="it's all", cluster_by="product")
    assert report is not None
    assert report.views["products"].reason.code == "FIRST_FILL"
    assert (tmp_path / "project" / "views" / "products.sql").read_text(encoding="utf-8").strip() == (
        "CREATE MATERIALIZED VIEW products\n  COMMENT 'it\\'s all'\n  CLUSTER BY (`product`)\n"
        f"  REFRESH POLICY INCREMENTAL\nAS\n{PRODUCTS};"
    )
    assert warehouse.plan().pending == ()
    shop.place_orders()
    assert warehouse.refresh().views["products"].strategy == "incremental"
    assert_verified(warehouse)


@pytest.mark.spark
def test_functions_that_return_sql_define_views(warehouse: Warehouse) -> None:
    @warehouse.view("products")
    def products() -> str:
        return PRODUCTS

    assert products() == PRODUCTS
    assert warehouse.view("products", products) is None
    with pytest.raises(SqlError, match="VIEW_EXISTS"):
        warehouse.view("products", lambda: PRODUCTS + " HAVING sum(qty) > 3")
    warehouse.view("products", lambda table: PRODUCTS + " HAVING sum(qty) > 3", replace=True)
    assert_verified(warehouse)


@pytest.mark.spark
def test_dataframes_of_a_classic_session_are_refused(warehouse: Warehouse) -> None:
    classic = warehouse.sql("SELECT 1 AS one")
    for definition in (classic, lambda: classic, lambda table: table("lake.lines")):
        with pytest.raises(SqlError, match=r"DATAFRAME_CLASSIC.*Spark Connect"):
            warehouse.view("v", definition)
    assert warehouse.views() == []


def _two(one: Any, other: Any) -> str:
    return f"SELECT {one}, {other}"


@pytest.mark.spark
@pytest.mark.parametrize(
    ("definition", "code"),
    [
        (3, "NOT_A_DEFINITION"),
        (lambda: None, "NOT_A_DEFINITION"),
        (_two, "NOT_A_DEFINITION"),
        ("DROP MATERIALIZED VIEW x", "NOT_A_QUERY"),
        (lambda table: table("lake.nothing"), "UNKNOWN_TABLE"),
    ],
)
def test_other_definitions_are_refused(warehouse: Warehouse, definition: Any, code: str) -> None:
    with pytest.raises(SqlError, match=code):
        warehouse.view("v", definition)


def test_what_is_said_of_a_view_comes_back_from_its_statement() -> None:
    options = ViewOptions(
        "full",
        "convergent",
        "it's a \\ 'comment'\nof $2",
        ("a b", "c"),
        {"k.x": "v'1"},
        replace=True,
        with_no_data=True,
    )
    create = ddl.parse(create_text("my view", "SELECT 1 AS one", options))
    assert isinstance(create, CreateView)
    assert (create.name, create.query.sql) == ("my view", "SELECT 1 AS one")
    assert (create.policy, create.consistency, create.or_replace, create.with_no_data) == (
        "FULL", "CONVERGENT", True, True,
    )  # fmt: skip
    assert create.comment == options.comment
    assert create.cluster_by == options.cluster_by
    assert dict(create.properties) == options.properties
