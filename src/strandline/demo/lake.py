"""The lake: two Delta tables, written without Spark, and what happens to them."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from random import Random

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

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
    }
)


class Lake:
    """The tables in *folder*, which exist."""

    def __init__(self, folder: Path) -> None:
        self._products = str(folder / "products")
        self._line_items = str(folder / "line_items")
        self._random = Random(43)
        self._prices: list[Decimal] = DeltaTable(self._products).to_pyarrow_table()["price"].to_pylist()

    @classmethod
    def new(cls, folder: Path, products: int, orders: int) -> Lake:
        """Write the tables, with lines for orders that were numbered from nought."""
        random = Random(42)
        write_deltalake(
            str(folder / "products"),
            pa.Table.from_pylist([_product(number, random) for number in range(products)], _PRODUCTS),
        )
        lake = cls(folder)
        lake.sell(range(orders))
        return lake

    def rows(self) -> dict[str, int]:
        """How many rows each table has."""
        tables = {"products": self._products, "line_items": self._line_items}
        return {name: DeltaTable(path).to_pyarrow_dataset().count_rows() for name, path in tables.items()}

    def sell(self, orders: Sequence[int]) -> int:
        """Append the lines of *orders*; how many."""
        lines = [self._line(order, line) for order in orders for line in range(1, self._random.randint(1, 5) + 1)]
        if lines:
            write_deltalake(self._line_items, pa.Table.from_pylist(lines, _LINE_ITEMS), mode="append")
        return len(lines)

    def reclassify(self) -> int:
        """Some games turn out to be toys; how many."""
        done = DeltaTable(self._products).update(
            predicate="category = 'games' AND product_id % 5 = 2", updates={"category": "'toys'"}
        )
        return int(done["num_updated_rows"])

    def compact(self) -> str:
        """Small files are put together: a new version of the table, with the same rows."""
        table = DeltaTable(self._line_items)
        done = table.optimize.compact()
        files = f"{done['numFilesRemoved']} files became {done['numFilesAdded']}"
        return f"lake.line_items: compacted to version {table.version()} ({files}); no row changed"

    def _line(self, order: int, line: int) -> dict[str, object]:
        product = self._random.randrange(len(self._prices))
        quantity = self._random.randint(1, 4)
        price = self._prices[product]
        return {"order_id": order, "line_no": line, "product_id": product, "quantity": quantity, "unit_price": price}


def _product(number: int, random: Random) -> dict[str, object]:
    category = list(CATEGORIES)[number % len(CATEGORIES)]
    price = Decimal(random.randint(*CATEGORIES[category])).scaleb(-2)
    return {"product_id": number, "name": f"{category} {number:03d}", "category": category, "price": price}
