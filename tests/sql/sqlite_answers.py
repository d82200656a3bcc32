"""SQLite as another opinion on what a query means: it answers queries over integers, without Spark."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

import sqlglot

from strandline.algebra.bag import Row, SignedBag

SUFFICIENT = sqlite3.sqlite_version_info >= (3, 39)
"""RIGHT and FULL JOIN came then."""


class Answers:
    """Tables in memory; results of queries are kept as tables that later queries may read."""

    def __init__(self, schema: str, tables: Mapping[str, tuple[Sequence[str], Sequence[Row]]]) -> None:
        self._connection = sqlite3.connect(":memory:")
        self._connection.execute(f"ATTACH ':memory:' AS {schema}")
        for name, (columns, rows) in tables.items():
            self._keep(f"{schema}.{name}", columns, rows)

    def keep(self, name: str, columns: Sequence[str], query: str) -> SignedBag:
        """The rows of *query*, from now on known as *name*."""
        rows = self.rows(query)
        self._keep(name, columns, rows.rows())
        return rows

    def rows(self, query: str) -> SignedBag:
        """The rows of *query*; the set operations that SQLite lacks are made of its answers for either side."""
        for operation in (" INTERSECT ALL ", " EXCEPT ALL "):
            if operation in query:
                left, right = (self.rows(side) for side in query.split(operation))
                common = SignedBag((row, min(count, right[row])) for row, count in left.items() if row in right)
                return common if operation == " INTERSECT ALL " else left - common
        text = sqlglot.transpile(query, read="spark", write="sqlite")[0]
        return SignedBag.of(tuple(row) for row in self._connection.execute(text))

    def close(self) -> None:
        self._connection.close()

    def _keep(self, name: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        self._connection.execute(f"CREATE TABLE {name} ({', '.join(columns)})")
        marks = ", ".join("?" for _ in columns)
        self._connection.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)
