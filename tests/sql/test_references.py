"""The tables that a query names, and the query with other relations in their place."""

from __future__ import annotations

import pytest

from strandline.errors import Origin, SqlError
from strandline.sql.ddl import parse, parse_select
from strandline.sql.references import references, replaced
from strandline.sql.relations import Relation
from strandline.sql.statements import CreateView
from tests.sql.shop import SHOP


def pinned(relation: Relation) -> str:
    return f"<{relation.name}>"


def rewritten(sql: str) -> str:
    return replaced(parse_select(sql), SHOP, pinned)


def read(sql: str) -> list[str]:
    return [reference.relation.name for reference in references(parse_select(sql), SHOP)]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        # A table answers to its last name, unless it has an alias.
        ("SELECT id FROM shop.orders", "SELECT id FROM <shop.orders> AS `orders`"),
        ("SELECT id FROM totals", "SELECT id FROM <totals> AS `totals`"),
        ("SELECT o.id FROM shop.orders o", "SELECT o.id FROM <shop.orders> o"),
        ("SELECT o.id FROM shop.orders AS o", "SELECT o.id FROM <shop.orders> AS o"),
        ("SELECT x FROM shop.orders AS o(x)", "SELECT x FROM <shop.orders> AS o(x)"),
        ("SELECT ORDERS.id FROM SHOP.Orders", "SELECT ORDERS.id FROM <shop.orders> AS `Orders`"),
        ("SELECT id FROM `shop`.`orders`", "SELECT id FROM <shop.orders> AS `orders`"),
        # Columns that were written with the source's name.
        (
            "SELECT shop.orders.id, orders.id, id FROM shop.orders WHERE shop.Orders.note = 'shop.orders.id'",
            "SELECT `orders`.id, orders.id, id FROM <shop.orders> AS `orders` WHERE `orders`.note = 'shop.orders.id'",
        ),
        ("SELECT shop.lines.s.b.c FROM shop.lines", "SELECT `lines`.s.b.c FROM <shop.lines> AS `lines`"),
        ("SELECT s.b.c FROM shop.lines", "SELECT s.b.c FROM <shop.lines> AS `lines`"),
        ("SELECT shop.orders.* FROM shop.orders", "SELECT `orders`.* FROM <shop.orders> AS `orders`"),
        # The same table twice.
        (
            "SELECT a.id FROM shop.orders a JOIN shop.orders b ON a.id = b.id",
            "SELECT a.id FROM <shop.orders> a JOIN <shop.orders> b ON a.id = b.id",
        ),
        (
            "SELECT id FROM shop.orders UNION ALL SELECT id FROM shop.orders",
            "SELECT id FROM <shop.orders> AS `orders` UNION ALL SELECT id FROM <shop.orders> AS `orders`",
        ),
        # Subqueries, wherever they stand.
        (
            "SELECT (SELECT max(total) FROM totals) FROM shop.orders o WHERE id IN (SELECT id FROM shop.lines) "
            "AND EXISTS (SELECT 1 FROM shop.customer WHERE shop.customer.id = o.customer)",
            "SELECT (SELECT max(total) FROM <totals> AS `totals`) FROM <shop.orders> o "
            "WHERE id IN (SELECT id FROM <shop.lines> AS `lines`) "
            "AND EXISTS (SELECT 1 FROM <shop.customer> AS `customer` WHERE `customer`.id = o.customer)",
        ),
        ("SELECT x FROM (SELECT id AS x FROM totals) d", "SELECT x FROM (SELECT id AS x FROM <totals> AS `totals`) d"),
        # A name of a CTE is not a table, and hides a view of the same name, but not inside itself.
        ("WITH c AS (SELECT 1 AS a) SELECT a FROM c", "WITH c AS (SELECT 1 AS a) SELECT a FROM c"),
        (
            "WITH totals AS (SELECT id FROM shop.orders) SELECT t.id FROM Totals t, totals",
            "WITH totals AS (SELECT id FROM <shop.orders> AS `orders`) SELECT t.id FROM Totals t, totals",
        ),
        (
            "WITH totals AS (SELECT total FROM totals) SELECT total FROM totals",
            "WITH totals AS (SELECT total FROM <totals> AS `totals`) SELECT total FROM totals",
        ),
        (
            "WITH orders AS (SELECT id FROM shop.orders) SELECT id FROM orders",
            "WITH orders AS (SELECT id FROM <shop.orders> AS `orders`) SELECT id FROM orders",
        ),
        (
            "WITH a AS (SELECT total FROM totals), totals AS (SELECT 1 FROM a) SELECT 1 FROM totals",
            "WITH a AS (SELECT total FROM <totals> AS `totals`), totals AS (SELECT 1 FROM a) SELECT 1 FROM totals",
        ),
        (
            "WITH RECURSIVE totals AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM totals) SELECT n FROM totals",
            "WITH RECURSIVE totals AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM totals) SELECT n FROM totals",
        ),
        (
            "SELECT total FROM totals WHERE customer IN (WITH totals AS (SELECT 1 AS c) SELECT c FROM totals)",
            "SELECT total FROM <totals> AS `totals` "
            "WHERE customer IN (WITH totals AS (SELECT 1 AS c) SELECT c FROM totals)",
        ),
        # Comments and odd spaces stay.
        (
            "SELECT id -- from shop.orders\nFROM /* shop.lines */ shop . orders /* c */ WHERE 'FROM t' <> '' -- end",
            "SELECT id -- from shop.orders\nFROM /* shop.lines */ <shop.orders> AS `orders` /* c */ "
            "WHERE 'FROM t' <> ''",
        ),
        ("SELECT id FROM totals ; -- end", "SELECT id FROM <totals> AS `totals`"),
        ("SELECT id FROM totals LIMIT 3;", "SELECT id FROM <totals> AS `totals` LIMIT 3"),
        ("SELECT 'ü' FROM totals", "SELECT 'ü' FROM <totals> AS `totals`"),
    ],
)
def test_only_table_names_give_way(sql: str, expected: str) -> None:
    assert rewritten(sql) == expected


def test_the_header_of_a_view_is_left_out() -> None:
    view = parse("/* x */ CREATE MATERIALIZED VIEW v COMMENT 'shop.orders' AS\nSELECT id FROM totals;\n-- the end\n")
    assert isinstance(view, CreateView)
    assert replaced(view.query, SHOP, pinned) == "SELECT id FROM <totals> AS `totals`"


def test_references_come_in_the_order_of_the_text() -> None:
    sql = "WITH c AS (SELECT id FROM shop.lines) SELECT * FROM totals, c WHERE id IN (SELECT id FROM Shop.Orders)"
    assert read(sql) == ["shop.lines", "totals", "shop.orders"]
    assert read("SELECT 1") == []


@pytest.mark.parametrize(
    ("sql", "code", "column", "mark", "message"),
    [
        (
            "SELECT id FROM shop.order",
            "UNKNOWN_TABLE",
            16,
            "^^^^^^^^^^",
            "there is no table shop.order; there are: shop.orders, ",
        ),
        (
            "SELECT id FROM orders",
            "UNKNOWN_TABLE",
            16,
            "^^^^^^",
            "there is no view orders; there are: shop.orders, ",
        ),
        ("SELECT id FROM range(10)", "TABLE_FUNCTION", 16, "^^^^^^^^^", "table functions cannot be read by a view"),
        # A CTE is not known outside of the query that it belongs to.
        (
            "SELECT a FROM (WITH c AS (SELECT 1 AS a) SELECT a FROM c) JOIN c",
            "UNKNOWN_TABLE",
            64,
            "^",
            "there is no view c",
        ),
    ],
)
def test_a_name_that_stands_for_nothing(sql: str, code: str, column: int, mark: str, message: str) -> None:
    with pytest.raises(SqlError) as raised:
        rewritten(sql)
    assert (raised.value.code, raised.value.origin) == (code, Origin("<sql>", 1, column))
    assert message in raised.value.message
    assert raised.value.excerpt == f"    {sql}\n    {' ' * (column - 1)}{mark}"
