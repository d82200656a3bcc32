"""Random view definitions over three small tables, as SQL, and random changes of those tables."""

from __future__ import annotations

from strandline.algebra.bag import Row
from strandline.algebra.schema import Column
from strandline.sources.memory import MemorySource
from tests.campaign.random_parts import TABLES, Parts

OPEN = frozenset({"SUBQUERY"})
"""Reasons for a full refresh of such a view: EXISTS as a value that meets its row by other than equality."""

Query = tuple[str, int]
"""A query and its width."""


class Generator(Parts):
    """Draws views of all operators, also over earlier views, and nested in each other.

    Where the order of rows matters it is by all columns, so that only equal rows are in no order.
    """

    def view(self, name: str) -> str:
        """A definition; its columns are x0, x1, ..., and later views may read it."""
        draw = self.random.choice(
            [
                self.plain,
                self.joined,
                self.joined,
                self.grouped,
                self.grouped,
                self.distinct,
                self.union,
                self.nested,
                self.outer_joined,
                self.outer_joined,
                self.grouped_outer_join,
                self.matched,
                self.matched,
                self.beside_scalar,
                self.set_operation,
                self.set_operation,
                self.windowed,
                self.windowed,
                self.exploded,
                self.grouping_sets,
                self.top,
                self.numbered,
                self.matched_or,
                self.joined_using,
                self.over_groups,
            ]
        )
        query, width = draw()
        self.columns[name] = tuple(f"x{i}" for i in range(width))
        return query

    def plain(self) -> Query:
        body, columns = self.body(1)
        items = [self.scalar(columns) for _ in range(self.random.randint(1, 3))]
        return f"SELECT {_named(items)} FROM {body}", len(items)

    def joined(self) -> Query:
        body, columns = self.body(self.random.randint(2, 3))
        items = [self.scalar(columns) for _ in range(self.random.randint(1, 3))]
        return f"SELECT {_named(items)} FROM {body}", len(items)

    def grouped(self) -> Query:
        body, columns = self.body(self.random.randint(1, 2))
        keys = [self.scalar(columns) for _ in range(self.random.randint(0, 2))]
        measures = [self.measure(columns) for _ in range(self.random.randint(1, 3))]
        group = f" GROUP BY {', '.join(keys)}" if keys else ""
        having = f" HAVING count(*) > {self.random.randint(0, 2)}" if keys and self.random.random() < 0.3 else ""
        return f"SELECT {_named(keys + measures)} FROM {body}{group}{having}", len(keys) + len(measures)

    def distinct(self) -> Query:
        body, columns = self.body(self.random.randint(1, 2))
        items = [self.scalar(columns) for _ in range(self.random.randint(1, 2))]
        return f"SELECT DISTINCT {_named(items)} FROM {body}", len(items)

    def union(self) -> Query:
        parts = []
        for _ in range(2):
            body, columns = self.body(1)
            parts.append(f"SELECT {_named([self.scalar(columns), self.scalar(columns)])} FROM {body}")
        return " UNION ALL ".join(parts), 2

    def nested(self) -> Query:
        inner, width = self.grouped()
        outer = f"x{self.random.randrange(width)}"
        return f"SELECT count(*) AS x0, max({outer}) AS x1, sum({outer}) AS x2 FROM ({inner}) AS q", 3

    def outer_joined(self) -> Query:
        body, columns = self.outer_body()
        items = [self.scalar(columns) for _ in range(self.random.randint(1, 3))]
        return f"SELECT {_named(items)} FROM {body}", len(items)

    def grouped_outer_join(self) -> Query:
        body, columns = self.outer_body()
        items = [self.scalar(columns), self.measure(columns), self.measure(columns)]
        return f"SELECT {_named(items)} FROM {body} GROUP BY {items[0]}", len(items)

    def matched(self) -> Query:
        """EXISTS, IN, and their negations, now and then one inside the other."""
        body, columns = self.body(1)
        conditions = [self.match(columns) for _ in range(self.random.choice([1, 1, 2]))]
        items = [self.scalar(columns) for _ in range(self.random.randint(1, 2))]
        glue = " AND " if " WHERE " in body else " WHERE "
        return f"SELECT {_named(items)} FROM {body}{glue}{' AND '.join(conditions)}", len(items)

    def beside_scalar(self) -> Query:
        """A query that stands for a value, correlated or not, in the list or in a condition."""
        body, columns = self.body(1)
        name = self.random.choice(list(self.columns))
        own = [f"m.{column}" for column in self.columns[name]]
        correlated = self.random.random() < 0.6
        where = f" WHERE {self.random.choice(own)} = {self.random.choice(columns)}" if correlated else ""
        query = f"(SELECT {self.measure(own)} FROM {name} AS m{where})"
        if self.random.random() < 0.5:
            return f"SELECT {_named([self.scalar(columns), query])} FROM {body}", 2
        glue = " AND " if " WHERE " in body else " WHERE "
        condition = f"{self.random.choice(columns)} {self.random.choice(['<', '>=', '<>'])} {query}"
        return f"SELECT {_named([self.scalar(columns)])} FROM {body}{glue}{condition}", 1

    def set_operation(self) -> Query:
        operator = self.random.choice(["UNION", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"])
        width = self.random.randint(1, 2)
        parts = []
        for _ in range(2):
            body, columns = self.body(self.random.choice([1, 1, 2]))
            parts.append(f"SELECT {_named([self.scalar(columns) for _ in range(width)])} FROM {body}")
        return f" {operator} ".join(parts), width

    def windowed(self) -> Query:
        body, columns = self.body(self.random.choice([1, 1, 2]))
        items = [self.scalar(columns)]
        for _ in range(self.random.randint(1, 2)):
            parts = ", ".join(self.random.sample(columns, self.random.randint(0, min(2, len(columns)))))
            partition = f"PARTITION BY {parts}" if parts else ""
            column = self.random.choice(columns)
            call = self.random.choice(
                [
                    f"sum({column}) OVER ({partition})",
                    f"count(*) OVER ({partition})",
                    f"max({column}) OVER ({partition})",
                    f"rank() OVER ({partition} ORDER BY {', '.join(columns)})",
                    f"dense_rank() OVER ({partition} ORDER BY {column} DESC)",
                    f"sum({column}) OVER ({partition} ORDER BY {self.random.choice(columns)})",
                ]
            )
            items.append(call)
        return f"SELECT {_named(items)} FROM {body}", len(items)

    def exploded(self) -> Query:
        body, columns = self.body(1)
        made = f"explode(array({self.scalar(columns)}, {self.scalar(columns)}, NULL))"
        head, _, where = body.partition(" WHERE ")
        condition = f" WHERE {where}" if where else ""
        items = [self.random.choice(columns), "e.x"]
        return f"SELECT {_named(items)} FROM {head} LATERAL VIEW {made} e AS x{condition}", 2

    def grouping_sets(self) -> Query:
        body, columns = self.body(self.random.choice([1, 1, 2]))
        first, second = (self.random.choice(columns) for _ in range(2))
        if first == second:
            second = f"{second} + 1"
        sets = self.random.choice(
            [
                f"ROLLUP ({first}, {second})",
                f"CUBE ({first}, {second})",
                f"GROUPING SETS (({first}), ({second}), ())",
                f"GROUPING SETS (({first}, {second}), ({first}))",
            ]
        )
        items = [first, second, self.measure(columns), self.measure(columns)]
        return f"SELECT {_named(items)} FROM {body} GROUP BY {sets}", len(items)

    def top(self) -> Query:
        body, columns = self.body(self.random.choice([1, 1, 2]))
        items = [self.scalar(columns) for _ in range(2)]
        order = ", ".join(f"x{n} {self.random.choice(['ASC', 'DESC'])}" for n in range(2))
        offset = self.random.choice(["", "", " OFFSET 1"])
        return f"SELECT {_named(items)} FROM {body} ORDER BY {order} LIMIT {self.random.randint(0, 5)}{offset}", 2

    def numbered(self) -> Query:
        """Functions of a place among the rows; rows that are equal in all columns may trade places."""
        name = self.random.choice(list(self.columns))
        columns = [f"q.{column}" for column in self.columns[name]]
        window = f"PARTITION BY {self.random.choice(columns)} ORDER BY {', '.join(columns)}"
        column = self.random.choice(columns)
        call = self.random.choice(
            [
                "row_number()",
                f"lag({column})",
                f"lead({column}, 2, 0)",
                f"first_value({column})",
                "ntile(2)",
                f"sum({column})",
            ]
        )
        frame = " ROWS BETWEEN 1 PRECEDING AND CURRENT ROW" if call.startswith(("sum", "first")) else ""
        query = f"SELECT {_named([*columns, f'{call} OVER ({window}{frame})'])} FROM {name} AS q"
        return query, len(columns) + 1

    def matched_or(self) -> Query:
        """A condition that asks a query, beside others under OR, or as a value."""
        body, columns = self.body(1)
        if self.random.random() < 0.4:
            items = [self.scalar(columns), f"CASE WHEN {self.match(columns)} THEN 1 ELSE 0 END"]
            return f"SELECT {_named(items)} FROM {body}", 2
        glue = " AND " if " WHERE " in body else " WHERE "
        condition = f"({self.condition(columns)} OR {self.match(columns)})"
        return f"SELECT {_named([self.scalar(columns)])} FROM {body}{glue}{condition}", 1

    def joined_using(self) -> Query:
        kind = self.random.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
        names = [self.random.choice(list(self.columns)) for _ in range(2)]
        sides = [
            f"(SELECT {self.random.choice(self.columns[name])} AS y, {self.columns[name][0]} AS z{place} FROM {name})"
            for place, name in enumerate(names)
        ]
        query = f"SELECT y AS x0, z0 AS x1, z1 AS x2 FROM {sides[0]} AS p {kind} {sides[1]} AS q USING (y)"
        return query, 3

    def over_groups(self) -> Query:
        """A window over the groups of a grouping."""
        body, columns = self.body(1)
        key = self.random.choice(columns)
        windows = ["sum(count(*)) OVER ()", f"rank() OVER (ORDER BY count(*), {key})", f"max(sum({key})) OVER ()"]
        items = [key, "count(*)", self.random.choice(windows)]
        return f"SELECT {_named(items)} FROM {body} GROUP BY {key}", 3

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
