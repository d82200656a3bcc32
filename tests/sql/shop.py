"""The tables that the queries of these tests read."""

from __future__ import annotations

from collections.abc import Sequence

from strandline.algebra.schema import Column, Schema
from strandline.sql.names import quoted
from strandline.sql.relations import Relation, empty_select


class Known:
    """A fixed set of relations, whatever the case of their names."""

    def __init__(self, relations: Sequence[Relation]) -> None:
        self._relations = {relation.name.lower(): relation for relation in relations}

    def find(self, name: str) -> Relation | None:
        return self._relations.get(name.lower())

    def names(self) -> list[str]:
        return [relation.name for relation in self._relations.values()]


def relation(name: str, key: tuple[str, ...] = (), /, **types: str) -> Relation:
    """A relation; an underscore in the name of a column stands for a space."""
    return Relation(name, tuple(Column(column.replace("_", " "), type_) for column, type_ in types.items()), key)


ORDERS = relation(
    "shop.orders",
    ("id",),
    id="bigint",
    customer="int",
    amount="decimal(12,2)",
    day="date",
    note="string",
    ratio="double",
    odd_name="string",
)
LINES = relation(
    "shop.lines",
    id="bigint",
    line="int",
    qty="smallint",
    price="decimal(38,18)",
    tags="array<string>",
    s="struct<a:int,b:struct<c:string>>",
    m="map<string,int>",
)
CUSTOMER = relation("shop.customer", ("id",), id="int", name="string", city="string", seen="timestamp", f="float")
TOTALS = relation("totals", ("customer",), customer="int", total="decimal(22,2)")

SHOP = Known([ORDERS, LINES, CUSTOMER, TOTALS])

KEPT = {
    "shop.orders": [
        "(1, 1, 1.50, '2024-02-29', 'a', 0.5, 'x')",
        "(2, 1, 20.25, '2024-03-01', 'b', -0.25, NULL)",
        "(3, 2, NULL, '2023-12-31', NULL, NULL, 'x')",
        "(4, NULL, 7.00, NULL, 'a', double('NaN'), 'y')",
    ],
    "shop.lines": [
        "(1, 1, 3, 2.5, array('p', 'q'), named_struct('a', 1, 'b', named_struct('c', 'x')), map('a', 1))",
        "(1, 2, NULL, NULL, array(), NULL, NULL)",
        "(3, 1, 5, 0.000000000000000001, NULL, named_struct('a', NULL, 'b', NULL), map('b', 2))",
    ],
    "shop.customer": ["(1, 'Ann', 'Bern', '2024-01-01 10:00:00', 1.5)", "(2, 'Bob', NULL, NULL, NULL)"],
    "totals": ["(1, 21.75)", "(2, NULL)"],
}
"""Rows that are there before and after a change, as SQL."""

DELETED = {
    "shop.orders": ["(5, 2, 100.00, '2024-02-29', 'a', 2.0, 'x')", "(6, 3, -1.00, '2020-01-01', 'c', 8.0, NULL)"],
    "shop.lines": ["(5, 1, 4, 1, array('p'), named_struct('a', 1, 'b', named_struct('c', 'x')), map('a', 1))"],
    "shop.customer": ["(3, 'Cem', 'Bonn', '2024-01-01 10:30:00', 0.5)"],
    "totals": ["(4, 1.00)"],
}
INSERTED = {
    "shop.orders": [
        "(7, 1, 1.50, '2024-02-29', 'b', 0.5, 'x')",
        "(8, 4, 0.01, '2021-05-05', 'ab', 0.0, 'z')",
    ],
    "shop.lines": [
        "(7, 1, 3, 2.5, array('p', NULL), NULL, NULL)",
        "(1, 3, 1, -7, array('r'), named_struct('a', 2, 'b', named_struct('c', NULL)), map('a', 3))",
    ],
    "shop.customer": ["(4, 'Dee', 'Bern', '1999-12-31 23:59:59', 0.0)"],
    "totals": ["(2, 3.00)", "(2, 3.00)"],
}


def rows_sql(columns: Schema, rows: Sequence[str]) -> str:
    """A SELECT of *rows*, which are SQL."""
    if not rows:
        return empty_select(columns)
    items = ", ".join(f"CAST(c{place} AS {c.type}) AS {quoted(c.name)}" for place, c in enumerate(columns))
    labels = ", ".join(f"c{place}" for place in range(len(columns)))
    return f"SELECT {items} FROM VALUES {', '.join(rows)} AS v({labels})"
