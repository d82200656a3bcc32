"""Parts of random queries over three small tables and earlier views: FROM clauses, conditions, values, aggregates."""

from __future__ import annotations

import random

TABLES = {"r": ("a", "b"), "s": ("b", "c"), "t": ("c", "d")}


class Parts:
    """Draws parts; *columns* are those of the tables and of the views so far."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.columns: dict[str, tuple[str, ...]] = {f"m.{name}": columns for name, columns in TABLES.items()}

    def match(self, columns: list[str], depth: int = 0) -> str:
        """A condition that asks a query."""
        alias = f"m{depth}"
        name = self.random.choice(list(self.columns))
        own = [f"{alias}.{column}" for column in self.columns[name]]
        inside = [self.condition(own)] if self.random.random() < 0.4 else []
        if depth == 0 and self.random.random() < 0.2:
            inside.append(self.match(own, 1))
        operator = self.random.choice(["EXISTS", "NOT EXISTS", "IN", "NOT IN"])
        if operator.endswith("EXISTS"):
            inside.append(f"{self.random.choice(own)} = {self.random.choice(columns)}")
            if self.random.random() < 0.3:
                inside.append(f"{self.random.choice(own)} <> {self.random.choice(columns)}")
        where = f" WHERE {' AND '.join(inside)}" if inside else ""
        if operator.endswith("EXISTS"):
            return f"{operator} (SELECT 1 FROM {name} AS {alias}{where})"
        return (
            f"{self.random.choice(columns)} {operator} (SELECT {self.random.choice(own)} FROM {name} AS {alias}{where})"
        )

    def outer_body(self) -> tuple[str, list[str]]:
        """Two or three tables in outer joins, and the columns they offer."""
        text, columns = "", list[str]()
        for place in range(self.random.choice([2, 2, 3])):
            name = self.random.choice(list(self.columns))
            own = [f"q{place}.{column}" for column in self.columns[name]]
            if not text:
                text, columns = f"{name} AS q{place}", own
                continue
            kind = self.random.choice(["LEFT", "LEFT", "RIGHT", "FULL", "INNER"])
            on = f"{self.random.choice(columns)} {self.random.choice(['=', '=', '<=>'])} {self.random.choice(own)}"
            if self.random.random() < 0.3:
                on += f" AND {self.condition(columns + own)}"
            text += f" {kind} JOIN {name} AS q{place} ON {on}"
            columns = columns + own
        if self.random.random() < 0.3:
            text += f" WHERE {self.condition(columns)}"
        return text, columns

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
                f"CAST(avg({column}) * 12 AS BIGINT)",
                f"min({column})",
                f"max({column})",
                f"sum({column}) FILTER (WHERE {column} > 0)",
                f"count(DISTINCT {column})",
                f"bool_or({column} > 0)::int",
                f"CAST(round(stddev({column}) * 1000) AS BIGINT)",
                f"CAST(percentile({column}, 0.5) * 2 AS BIGINT)",
                f"count_if({column} = 1)",
            ]
        )
