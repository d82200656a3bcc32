"""Random view definitions over three small tables, as SQL, and random changes of those tables."""

from __future__ import annotations

import random

from strandline.algebra.bag import Row
from strandline.algebra.schema import Column
from strandline.sources.memory import MemorySource

TABLES = {"r": ("a", "b"), "s": ("b", "c"), "t": ("c", "d")}


class Generator:
    """Draws views of filters, projections, joins, unions, aggregates, HAVING and DISTINCT, also over earlier views."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.columns: dict[str, tuple[str, ...]] = {f"m.{name}": columns for name, columns in TABLES.items()}

    def view(self, name: str) -> str:
        """A definition; its columns are x0, x1, ..., and later views may read it."""
        draw = self.random.choice(
            [
                self.plain,
                self.plain,
                self.joined,
                self.joined,
                self.grouped,
                self.grouped,
                self.distinct,
                self.union,
                self.nested,
            ]
        )
        query, width = draw()
        self.columns[name] = tuple(f"x{i}" for i in range(width))
        return query

    def plain(self) -> tuple[str, int]:
        body, columns = self.body(1)
        items = [self.scalar(columns) for _ in range(self.random.randint(1, 3))]
        return f"SELECT {_named(items)} FROM {body}", len(items)

    def joined(self) -> tuple[str, int]:
        body, columns = self.body(self.random.randint(2, 3))
        items = [self.scalar(columns) for _ in range(self.random.randint(1, 3))]
        return f"SELECT {_named(items)} FROM {body}", len(items)

    def grouped(self) -> tuple[str, int]:
        body, columns = self.body(self.random.randint(1, 2))
        keys = [self.scalar(columns) for _ in range(self.random.randint(0, 2))]
        measures = [self.measure(columns) for _ in range(self.random.randint(1, 3))]
        group = f" GROUP BY {', '.join(keys)}" if keys else ""
        having = f" HAVING count(*) > {self.random.randint(0, 2)}" if keys and self.random.random() < 0.3 else ""
        return f"SELECT {_named(keys + measures)} FROM {body}{group}{having}", len(keys) + len(measures)

    def distinct(self) -> tuple[str, int]:
        body, columns = self.body(self.random.randint(1, 2))
        items = [self.scalar(columns) for _ in range(self.random.randint(1, 2))]
        return f"SELECT DISTINCT {_named(items)} FROM {body}", len(items)

    def union(self) -> tuple[str, int]:
        parts = []
        for _ in range(2):
            body, columns = self.body(1)
            parts.append(f"SELECT {_named([self.scalar(columns), self.scalar(columns)])} FROM {body}")
        return " UNION ALL ".join(parts), 2

    def nested(self) -> tuple[str, int]:
        inner, width = self.grouped()
        outer = f"x{self.random.randrange(width)}"
        return f"SELECT count(*) AS x0, max({outer}) AS x1, sum({outer}) AS x2 FROM ({inner}) AS q", 3

    def body(self, tables: int) -> tuple[str, list[str]]:
        """A FROM and WHERE clause, and the columns it offers."""
        froms: list[str] = []
        columns: list[str] = []
        conditions: list[str] = []
        for place in range(tables):
            name = self.random.choice(list(self.columns))
            own = [f"q{place}.{column}" for column in self.columns[name]]
            froms.append(f"{name} AS q{place}")
            if columns:
                operator = self.random.choice(["=", "=", "=", "<=>", "<"])
                conditions.append(f"{self.random.choice(columns)} {operator} {self.random.choice(own)}")
            columns += own
        if self.random.random() < 0.5:
            conditions.append(self.condition(columns))
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return ", ".join(froms) + where, columns

    def condition(self, columns: list[str]) -> str:
        column = self.random.choice(columns)
        return self.random.choice(
            [
                f"{column} > 0",
                f"{column} IS NOT NULL",
                f"({column} = 1 OR {column} IS NULL)",
                f"coalesce({column}, 2) < 3",
            ]
        )

    def scalar(self, columns: list[str]) -> str:
        column = self.random.choice(columns)
        return self.random.choice(
            [
                column,
                column,
                column,
                f"{column} + 1",
                f"coalesce({column}, 0)",
                f"CASE WHEN {column} > 1 THEN 1 ELSE 0 END",
            ]
        )

    def measure(self, columns: list[str]) -> str:
        column = self.random.choice(columns)
        return self.random.choice(
            [
                "count(*)",
                f"count({column})",
                f"sum({column})",
                f"avg({column})",
                f"min({column})",
                f"max({column})",
                f"sum({column}) FILTER (WHERE {column} > 0)",
                f"count(DISTINCT {column})",
            ]
        )

    def source(self) -> MemorySource:
        """The three tables with some rows."""
        source = MemorySource("m")
        for name, columns in TABLES.items():
            source.create(name, tuple(Column(column, "bigint") for column in columns))
            source.commit(name, [self.row() for _ in range(self.random.randint(0, 8))])
        return source

    def change(self, source: MemorySource) -> None:
        """One random transaction on one or two tables."""
        for name in self.random.sample(list(TABLES), self.random.randint(1, 2)):
            rows = source.rows(name)
            chosen = [row for row in rows if self.random.random() < 0.3] if self.random.random() < 0.7 else []
            if self.random.random() < 0.1:
                chosen = rows
            source.commit(name, [self.row() for _ in range(self.random.randint(0, 4))], chosen)

    def row(self) -> Row:
        return tuple(self.random.choice([None, -1, 0, 1, 1, 2]) for _ in range(2))


def _named(items: list[str]) -> str:
    return ", ".join(f"{item} AS x{place}" for place, item in enumerate(items))
