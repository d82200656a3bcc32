"""The shop: four Delta tables in two lakes, written without Spark, and what happens to them.

``shop`` (customers, orders) has its change feed on, ``lake`` (products, line_items) has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

REGIONS = ("north", "south", "east", "west", "overseas")
SEGMENTS = ("household", "business", "school")
STATUSES = ("delivered", "delivered", "delivered", "shipped", "open")
CATEGORIES = {
    "books": (600, 6_000),
    "garden": (400, 25_000),
    "games": (900, 9_000),
    "kitchen": (300, 40_000),
    "music": (500, 120_000),
    "office": (100, 30_000),
    "sports": (700, 60_000),
    "toys": (300, 12_000),
}
"""Each with its lowest and highest price in cents."""

FIRST_DAY = date(2026, 1, 1)
DAYS = 300
TODAY = FIRST_DAY + timedelta(days=DAYS)
BATCHES = 4

_CUSTOMERS = pa.schema(
    {
        "customer_id": pa.int64(),
        "name": pa.string(),
        "region": pa.string(),
        "segment": pa.string(),
        "joined_on": pa.date32(),
    }
)
_ORDERS = pa.schema(
    {"order_id": pa.int64(), "customer_id": pa.int64(), "ordered_on": pa.date32(), "status": pa.string()}
)
_PRODUCTS = pa.schema(
    {"product_id": pa.int64(), "name": pa.string(), "category": pa.string(), "price": pa.decimal128(10, 2)}
)
_LINE_ITEMS = pa.schema(
    {
        "order_id": pa.int64(),
        "line_no": pa.int32(),
        "product_id": pa.int64(),
        "quantity": pa.int32(),
        "unit_price": pa.decimal128(10, 2),
        "returned_on": pa.date32(),
    }
)


@dataclass(frozen=True)
class Sizes:
    """How many rows there are at first; an order has three lines on average."""

    customers: int = 2_000
    products: int = 500
    orders: int = 20_000


class Shop:
    """The tables below *folder*, and the changes that the demonstration makes to them.

    Each change says what it did, a sentence for each table.
    """

    def __init__(self, folder: Path, sizes: Sizes) -> None:
        self._sizes = sizes
        self._random = Random(2026)
        self._orders = 0
        self._prices: list[Decimal] = []
        self.customers = str(folder / "shop" / "customers")
        self.orders = str(folder / "shop" / "orders")
        self.products = str(folder / "lake" / "products")
        self.line_items = str(folder / "lake" / "line_items")

    def open_for_business(self) -> list[str]:
        """Write the tables."""
        customers = [self._customer(number) for number in range(self._sizes.customers)]
        products = [self._product(number) for number in range(self._sizes.products)]
        orders, lines = self._new_orders(self._sizes.orders)
        fed = {"delta.enableChangeDataFeed": "true"}
        _write(self.customers, customers, _CUSTOMERS, fed)
        _write(self.orders, orders, _ORDERS, fed)
        _write(self.products, products, _PRODUCTS, {})
        _write(self.line_items, lines, _LINE_ITEMS, {})
        return [
            f"shop.customers  {len(customers):>7,} rows, change feed on",
            f"shop.orders     {len(orders):>7,} rows, change feed on",
            f"lake.products   {len(products):>7,} rows, no change feed",
            f"lake.line_items {len(lines):>7,} rows, no change feed",
        ]

    def take_orders(self) -> list[str]:
        """One order more for each hundred, in several transactions."""
        batches = [self._new_orders(max(self._sizes.orders // 100 // BATCHES, 1), TODAY) for _ in range(BATCHES)]
        for orders, lines in batches:
            write_deltalake(self.orders, pa.Table.from_pylist(orders, _ORDERS), mode="append")
            write_deltalake(self.line_items, pa.Table.from_pylist(lines, _LINE_ITEMS), mode="append")
        ordered, sold = (sum(len(batch[place]) for batch in batches) for place in (0, 1))
        return [
            f"shop.orders: {ordered:,} new orders in {BATCHES} transactions",
            f"lake.line_items: their {sold:,} lines in {BATCHES} transactions",
        ]

    def cancel_return_and_reprice(self) -> list[str]:
        """Orders are cancelled, lines come back, and one category becomes dearer."""
        cancelled = DeltaTable(self.orders).update(predicate="order_id % 200 = 7", updates={"status": "'cancelled'"})
        returned = DeltaTable(self.line_items).update(
            predicate="order_id % 150 = 11 AND line_no = 1 AND returned_on IS NULL",
            updates={"returned_on": f"DATE '{TODAY}'"},
        )
        dearer = DeltaTable(self.products).update(
            predicate="category = 'garden'", updates={"price": "CAST(price * 1.05 AS DECIMAL(10, 2))"}
        )
        return [
            f"shop.orders: {_updated(cancelled)} orders cancelled",
            f"lake.line_items: {_updated(returned)} lines returned",
            f"lake.products: {_updated(dearer)} prices in the garden category raised by 5 %",
        ]

    def do_nothing(self) -> list[str]:
        """Nobody comes."""
        return ["no table has a new version"]

    def compact(self) -> list[str]:
        """Small files are put together: new versions of the tables, with the same rows."""
        done = []
        for name, path in (("shop.orders", self.orders), ("lake.line_items", self.line_items)):
            table = DeltaTable(path)
            metrics = table.optimize.compact()
            files = f"{metrics['numFilesRemoved']} files became {metrics['numFilesAdded']}"
            done.append(f"{name}: compacted to version {table.version()} ({files}); no row changed")
        return done

    def move_customers(self) -> list[str]:
        """Some customers move, some say where they live for the first time."""
        table = DeltaTable(self.customers)
        moved = table.update(predicate="customer_id % 100 = 42", updates={"region": "'overseas'"})
        told = table.update(predicate="region IS NULL AND customer_id % 2 = 0", updates={"region": "'north'"})
        return [
            f"shop.customers: {_updated(moved)} customers moved overseas",
            f"shop.customers: {_updated(told)} customers of unknown region turned out to live in the north",
        ]

    def _customer(self, number: int) -> dict[str, object]:
        random = self._random
        return {
            "customer_id": number,
            "name": f"Customer {number:05d}",
            "region": None if random.random() < 0.03 else random.choice(REGIONS),
            "segment": random.choice(SEGMENTS),
            "joined_on": FIRST_DAY - timedelta(days=random.randrange(2_000)),
        }

    def _product(self, number: int) -> dict[str, object]:
        category = list(CATEGORIES)[number % len(CATEGORIES)]
        price = Decimal(self._random.randint(*CATEGORIES[category])).scaleb(-2)
        self._prices.append(price)
        return {"product_id": number, "name": f"{category} {number:03d}", "category": category, "price": price}

    def _new_orders(
        self, count: int, day: date | None = None
    ) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
        """*count* orders with their lines, of *day* or of any day so far."""
        random = self._random
        orders: list[dict[str, object]] = []
        lines: list[dict[str, object]] = []
        for number in range(self._orders, self._orders + count):
            ordered_on = day or FIRST_DAY + timedelta(days=random.randrange(DAYS))
            status = "open" if day else "cancelled" if random.random() < 0.02 else random.choice(STATUSES)
            customer = random.randrange(self._sizes.customers)
            orders.append({"order_id": number, "customer_id": customer, "ordered_on": ordered_on, "status": status})
            for line in range(1, random.randint(1, 5) + 1):
                lines.append(self._line(number, line, ordered_on, status))
        self._orders += count
        return orders, lines

    def _line(self, order: int, line: int, ordered_on: date, status: str) -> dict[str, object]:
        random = self._random
        product = random.randrange(self._sizes.products)
        returned = status == "delivered" and random.random() < 0.02
        return {
            "order_id": order,
            "line_no": line,
            "product_id": product,
            "quantity": random.randint(1, 4),
            "unit_price": self._prices[product],
            "returned_on": ordered_on + timedelta(days=random.randint(3, 20)) if returned else None,
        }


def _write(path: str, rows: Sequence[dict[str, object]], schema: pa.Schema, properties: dict[str, str]) -> None:
    write_deltalake(path, pa.Table.from_pylist(list(rows), schema), configuration=dict(properties))


def _updated(metrics: dict[str, Any]) -> str:
    return f"{metrics['num_updated_rows']:,}"
