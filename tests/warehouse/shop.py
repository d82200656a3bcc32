"""A small shop in two lakes of Delta tables, and random changes of it: the source of the warehouse tests."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from strandline import Warehouse
from strandline.engine.session import Engine
from tests.campaign.together import different

CUSTOMERS = pa.schema([("c_id", pa.int64()), ("name", pa.string()), ("region", pa.string())])
ORDERS = pa.schema(
    [
        ("o_id", pa.int64()),
        ("c_id", pa.int64()),
        ("day", pa.date32()),
        ("total", pa.decimal128(12, 2)),
        ("weight", pa.float64()),
    ]
)
LINES = pa.schema(
    [("o_id", pa.int64()), ("product", pa.string()), ("qty", pa.int32()), ("price", pa.decimal128(10, 2))]
)

VIEWS = {
    "big_orders": "SELECT o.o_id, c.name, o.total FROM shop.orders o JOIN shop.customers c ON o.c_id = c.c_id "
    "WHERE o.total > 40",
    "revenue": "SELECT c.region, count(*) AS orders, sum(l.qty * l.price) AS revenue, avg(l.price) AS price, "
    "avg(o.weight) AS weight, min(o.day) AS first_day FROM shop.customers c JOIN shop.orders o ON c.c_id = o.c_id "
    "JOIN lake.lines l ON l.o_id = o.o_id GROUP BY c.region",
    "products": "SELECT DISTINCT product FROM lake.lines",
    "by_product": "SELECT product, sum(qty) AS qty, count(*) AS n FROM lake.lines GROUP BY product HAVING count(*) > 2",
    "everyone": "SELECT name AS label FROM shop.customers UNION ALL SELECT product FROM lake.lines WHERE qty > 3",
    "regions": "SELECT r.region, r.revenue, count(*) AS big FROM revenue r "
    "JOIN shop.customers c ON c.region = r.region JOIN big_orders b ON b.name = c.name GROUP BY r.region, r.revenue",
    "overall": "SELECT count(*) AS regions, sum(revenue) AS revenue FROM revenue",
    "busiest": "SELECT region, max(n) AS most FROM (SELECT c.region, c.c_id, count(*) AS n FROM shop.customers c "
    "JOIN shop.orders o ON o.c_id = c.c_id GROUP BY c.region, c.c_id) per GROUP BY region",
}
"""Joins over both lakes, aggregates, distinct, union all, a hidden block, views on views and a diamond."""


class Shop:
    """Two lakes below *folder*: ``shop`` with a change feed, ``lake`` without."""

    def __init__(self, folder: Path, seed: int = 0, orders: int = 60) -> None:
        self.folder = folder
        self.random = random.Random(seed)
        self.next_order = 0
        self.orders = orders

    def path(self, table: str) -> str:
        lake = "lake" if table == "lines" else "shop"
        return str(self.folder / lake / table)

    def create(self) -> None:
        feed = {"delta.enableChangeDataFeed": "true"}
        customers = [
            {"c_id": i, "name": None if i == 7 else f"c{i}", "region": f"r{i % 3}" if i % 5 else None}
            for i in range(12)
        ]
        write_deltalake(self.path("customers"), pa.Table.from_pylist(customers, CUSTOMERS), configuration=feed)
        orders, lines = self._new_orders(self.orders)
        write_deltalake(self.path("orders"), orders, configuration=feed)
        write_deltalake(self.path("lines"), lines)

    def declare(self, warehouse: Warehouse) -> None:
        warehouse.add_source("shop", kind="delta", path=str(self.folder / "shop"))
        warehouse.add_source("lake", kind="delta", path=str(self.folder / "lake"))

    def change(self) -> str:
        """One random change; what it was."""
        changes: list[Callable[[], Any]] = [
            self.place_orders, self.cancel, self.reprice, self.move, self.repeat_lines, self.compact, self.drop_lines,
        ]  # fmt: skip
        chosen = self.random.choice(changes)
        chosen()
        return chosen.__name__

    def place_orders(self, count: int = 5) -> None:
        orders, lines = self._new_orders(count)
        write_deltalake(self.path("orders"), orders, mode="append")
        write_deltalake(self.path("lines"), lines, mode="append")

    def place_orders_only(self, count: int = 5) -> None:
        write_deltalake(self.path("orders"), self._new_orders(count)[0], mode="append")

    def place_order(self, total: str) -> None:
        """One order of a given total."""
        order = self._new_orders(1)[0].to_pylist()[0] | {"total": Decimal(total)}
        write_deltalake(self.path("orders"), pa.Table.from_pylist([order], ORDERS), mode="append")

    def delete_orders(self, total: str) -> None:
        """All orders of a given total."""
        DeltaTable(self.path("orders")).delete(f"total = {total}")

    def cancel(self) -> None:
        first = self.random.randrange(max(1, self.next_order))
        DeltaTable(self.path("orders")).delete(f"o_id >= {first} AND o_id < {first + 4}")

    def reprice(self) -> None:
        product = f"p{self.random.randrange(8)}"
        DeltaTable(self.path("lines")).update(updates={"price": "price + 1"}, predicate=f"product = '{product}'")

    def move(self) -> None:
        customer, region = self.random.randrange(12), self.random.choice(["'r0'", "'r9'", "NULL"])
        DeltaTable(self.path("customers")).update(
            updates={"region": f"CAST({region} AS STRING)"}, predicate=f"c_id = {customer}"
        )

    def repeat_lines(self) -> None:
        line = {"o_id": 1, "product": "p1", "qty": 4, "price": Decimal("2.50")}
        write_deltalake(self.path("lines"), pa.Table.from_pylist([line] * 3, LINES), mode="append")

    def drop_lines(self) -> None:
        DeltaTable(self.path("lines")).delete(f"qty = {self.random.randrange(6)} AND o_id % 3 = 0")

    def compact(self) -> None:
        DeltaTable(self.path("orders")).optimize.compact()

    def clear(self) -> None:
        DeltaTable(self.path("orders")).delete()

    def _new_orders(self, count: int) -> tuple[pa.Table, pa.Table]:
        orders, lines = [], []
        for _ in range(count):
            number, self.next_order = self.next_order, self.next_order + 1
            pick = self.random.randrange
            orders.append(
                {
                    "o_id": number,
                    "c_id": None if pick(20) == 0 else pick(14),
                    "day": date(2026, 1, 1) + timedelta(days=pick(90)),
                    "total": Decimal(pick(9000)) / 100,
                    "weight": None if pick(9) == 0 else pick(1000) / 7,
                }
            )
            for _ in range(pick(4)):
                price = None if pick(15) == 0 else Decimal(pick(5000)) / 100
                lines.append({"o_id": number, "product": f"p{pick(8)}", "qty": pick(6), "price": price})
        return pa.Table.from_pylist(orders, ORDERS), pa.Table.from_pylist(lines, LINES)


def made_shop(folder: Path) -> Shop:
    """A shop below *folder* whose tables are filled."""
    shop = Shop(folder)
    shop.create()
    return shop


@contextmanager
def followed(folder: Path, engine: Engine, shop: Shop, views: dict[str, str]) -> Iterator[Warehouse]:
    """A warehouse in *folder* with *views* of the shop, filled."""
    with Warehouse.open(folder, spark=engine.spark) as warehouse:
        shop.declare(warehouse)
        create_views(warehouse, views)
        yield warehouse


def create_views(warehouse: Warehouse, views: dict[str, str] = VIEWS, policy: str = "INCREMENTAL") -> None:
    for name, query in views.items():
        warehouse.sql(f"CREATE MATERIALIZED VIEW {name} REFRESH POLICY {policy} AS {query}")


def assert_verified(warehouse: Warehouse) -> None:
    """Every view equals its recomputation, in both directions."""
    assert different(warehouse, warehouse.views()) == {}
