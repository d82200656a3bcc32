"""SQLite as another opinion on what a query means: it answers queries over integers, without Spark."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import sqlglot
from sqlglot import exp

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
        text = " UNION ALL ".join(tree.sql("sqlite") for tree in _groupings(sqlglot.parse_one(query, dialect="spark")))
        return SignedBag.of(tuple(row) for row in self._connection.execute(text))

    def close(self) -> None:
        self._connection.close()

    def _keep(self, name: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        self._connection.execute(f"CREATE TABLE {name} ({', '.join(columns)})")
        marks = ", ".join("?" for _ in columns)
        self._connection.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)


def _groupings(tree: exp.Expr) -> Iterator[exp.Expr]:
    """One query for each grouping set: keys that are not in it are NULL. As in Spark, no rows make no group."""
    group = tree.args.get("group")
    sets = list(_grouping_sets(group)) if group is not None else []
    if not sets:
        yield tree
        return
    every = {key for keys in sets for key in keys}
    for keys in sets:
        part = tree.copy()
        for item in part.expressions:
            if item.this.sql() in every - set(keys):
                item.set("this", exp.Null())
        part.set("group", exp.Group(expressions=[sqlglot.parse_one(key) for key in keys]) if keys else None)
        part.set("having", exp.Having(this=sqlglot.parse_one("count(*) > 0")))
        yield part


def _grouping_sets(group: exp.Expr) -> Iterator[tuple[str, ...]]:
    for found in group.expressions:
        listed = [_keys(node) for node in found.expressions]
        match found:
            case exp.Rollup():
                yield from (sum(listed[:end], ()) for end in range(len(listed), -1, -1))
            case exp.Cube():
                for size in range(len(listed), -1, -1):
                    yield from (sum(chosen, ()) for chosen in combinations(listed, size))
            case exp.GroupingSets():
                yield from listed


def _keys(node: exp.Expr) -> tuple[str, ...]:
    """What a grouping set, or an element of ROLLUP, holds."""
    match node:
        case exp.Tuple():
            return tuple(key.sql() for key in node.expressions)
        case exp.Paren():
            return (node.this.sql(),)
        case _:
            return (node.sql(),)
