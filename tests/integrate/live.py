"""Two databases and a lake that nobody copies, a warehouse over them, and what its views must show."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from psycopg import Connection

from strandline import Warehouse
from strandline.engine.session import Engine
from strandline.propagate.report import RefreshReport
from tests.conftest import bag, rows_shown

SALES = """
CREATE TABLE orders (id int PRIMARY KEY, customer int, product int, amount numeric(10,2), note text);
ALTER TABLE orders REPLICA IDENTITY FULL;
CREATE TABLE returns (id int PRIMARY KEY, of_order int, why text);
ALTER TABLE returns REPLICA IDENTITY FULL;
INSERT INTO orders SELECT i, i % 4, i % 3, i * 1.5, 'n' || i FROM generate_series(1, 12) AS i;
INSERT INTO returns SELECT i, i * 2, 'w' FROM generate_series(1, 4) AS i;
"""
CRM = """
CREATE TABLE customers (id int PRIMARY KEY, name text, region text);
ALTER TABLE customers REPLICA IDENTITY FULL;
INSERT INTO customers VALUES (0, 'ada', 'north'), (1, 'bob', 'south'), (2, 'cy', NULL), (5, 'eve', 'north');
"""
PRODUCTS = pa.schema([("id", pa.int32()), ("title", pa.string())])

JOINED = """
SELECT o.id, o.amount, c.name, c.region, p.title
FROM sales.orders o JOIN crm.customers c ON o.customer = c.id JOIN lake.products p ON o.product = p.id
"""
RETURNED = "SELECT o.id, o.amount, r.why FROM sales.orders o JOIN sales.returns r ON r.of_order = o.id"
TOTALS = "SELECT region, title, sum(amount) AS total, count(*) AS n FROM joined GROUP BY region, title"

Row = tuple[Any, ...]


@dataclass
class Shop:
    """Three sources that are written to, and the warehouse that follows them; *joins* and *returned* are its views."""

    folder: Path
    sales: Connection[Any]
    crm: Connection[Any]
    warehouse: Warehouse
    joins: list[str] = field(default_factory=list)
    returned: list[str] = field(default_factory=list)

    @property
    def lake(self) -> str:
        return str(self.folder / "lake" / "products")

    def add_products(self, *rows: tuple[int, str]) -> None:
        columns = [[row[place] for row in rows] for place in range(2)]
        write_deltalake(self.lake, pa.table(columns, schema=PRODUCTS), mode="append")

    def remove_products(self, condition: str) -> None:
        DeltaTable(self.lake).delete(condition)

    def follow(self, name: str, query: str = JOINED, *, algorithm: str = "auto", level: str = "STRONG") -> None:
        """Create a view that :meth:`refreshed` compares."""
        properties = f"TBLPROPERTIES ('strandline.algorithm' = '{algorithm}')"
        self.warehouse.sql(f"CREATE MATERIALIZED VIEW {name} {properties} CONSISTENCY {level} WITH NO DATA AS {query}")
        (self.joins if query == JOINED else self.returned).append(name)

    def base_view(self, view: str) -> str:
        """The base view that a view reads."""
        return self.warehouse._refreshing.vdag().nodes[view].inputs[0]

    def joined(self) -> list[Row]:
        """The join, computed from the tables themselves."""
        customers = {row[0]: row[1:] for row in self.crm.execute("SELECT id, name, region FROM customers").fetchall()}
        products = DeltaTable(self.lake).to_pyarrow_table().to_pylist()
        found = []
        for id_, customer, product, amount in self.sales.execute("SELECT id, customer, product, amount FROM orders"):
            for each in products:
                if customer in customers and each["id"] == product:
                    found.append((id_, amount, *customers[customer], each["title"]))
        return found

    def shown(self, view: str) -> list[Row]:
        return rows_shown(self.warehouse, view)

    def refreshed(self) -> RefreshReport:
        """Refresh, and compare all views with what the tables hold: nobody may write meanwhile."""
        report = self.warehouse.refresh()
        assert report.ok, report.to_dict()
        for view in self.joins:
            assert bag(self.shown(view)) == bag(self.joined()), view
        own = RETURNED.replace("sales.", "").encode()
        for view in self.returned:
            assert bag(self.shown(view)) == bag(self.sales.execute(own).fetchall()), view
        return report


@contextmanager
def shop(folder: Path, sales: str, crm: str, engine: Engine) -> Iterator[Shop]:
    """A new shop, without views yet."""
    os.environ["SHOP_SALES"], os.environ["SHOP_CRM"] = sales, crm
    with (
        psycopg.connect(sales, autocommit=True) as first,
        psycopg.connect(crm, autocommit=True) as second,
        Warehouse.open(folder / "project", spark=engine.spark) as warehouse,
    ):
        first.execute(SALES)
        second.execute(CRM)
        found = Shop(folder, first, second, warehouse)
        found.add_products((0, "tea"), (1, "coffee"), (1, "cocoa"))
        for name in ("sales", "crm"):
            warehouse.add_source(name, kind="postgres", dsn_env=f"SHOP_{name.upper()}", copies=False, patience=5)
        warehouse.add_source("lake", kind="delta", path=str(folder / "lake"), keys={"products": ["id", "title"]})
        yield found


def rounds(found: Shop) -> Iterator[None]:
    """Rounds of changes: of one source, of several, of rows that meet, and of none that matter."""
    found.sales.execute("INSERT INTO orders VALUES (13, 0, 0, 2.25, 'x'), (14, 9, 0, 1, NULL)")
    found.sales.execute("INSERT INTO returns VALUES (5, 13, NULL), (6, 99, 'none')")
    yield
    with found.sales.transaction():
        found.sales.execute("DELETE FROM orders WHERE id IN (1, 2)")
        found.sales.execute("UPDATE returns SET of_order = 3 WHERE id = 2")
    found.crm.execute("UPDATE customers SET name = 'ada l.' WHERE id = 0")
    found.add_products((2, "milk"))
    found.crm.execute("INSERT INTO customers VALUES (3, 'dan', 'east')")
    found.sales.execute("UPDATE orders SET customer = 3, amount = amount + 1 WHERE id % 2 = 0")
    found.remove_products("id = 1")
    found.crm.execute("DELETE FROM customers WHERE id = 1")
    yield
    found.sales.execute("UPDATE orders SET note = 'other'")
    yield
    found.sales.execute("DELETE FROM orders")
    found.add_products((1, "coffee"))
    found.sales.execute("INSERT INTO orders SELECT i, 5, 1, i, '' FROM generate_series(1, 5) AS i")
    yield
