"""The tables that the corpus reads, as Delta tables, and random changes of them.

Values come from small domains with NULL, so that rows meet, collide and cancel often.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from strandline.engine.session import Engine

Row = dict[str, Any]

_PLAIN = pa.schema(
    [("k", pa.int64()), ("a", pa.int32()), ("b", pa.int32()), ("t", pa.string()), ("d", pa.decimal128(10, 2))]
)
_STRUCT = pa.struct([("a", pa.int32()), ("b", pa.struct([("c", pa.string())]))])

SCHEMAS: Mapping[str, pa.Schema] = {
    "r": _PLAIN,
    "s": _PLAIN,
    "t": _PLAIN,
    # Nothing in it is unique.
    "bag": pa.schema([("a", pa.int32()), ("t", pa.string()), ("d", pa.decimal128(10, 2))]),
    "kinds": pa.schema(
        [
            ("k", pa.int64()),
            ("day", pa.date32()),
            ("ts", pa.timestamp("us", "UTC")),
            ("flag", pa.bool_()),
            ("x", pa.float64()),
            ("f", pa.float32()),
            ("w", pa.decimal128(38, 10)),
            ("n", pa.decimal128(5, 0)),
            ("i8", pa.int8()),
            ("i16", pa.int16()),
            ("bin", pa.binary()),
        ]
    ),
    "nest": pa.schema(
        [
            ("k", pa.int64()),
            ("xs", pa.list_(pa.int32())),
            ("tags", pa.list_(pa.string())),
            ("st", _STRUCT),
            ("m", pa.map_(pa.string(), pa.int32())),
            ("ps", pa.list_(pa.struct([("p", pa.int32()), ("q", pa.string())]))),
        ]
    ),
    "order": pa.schema(
        [
            ("select", pa.int64()),
            ("from", pa.int32()),
            ("a.b", pa.int32()),
            ("größe", pa.decimal128(6, 1)),
            ("名前", pa.string()),
            ("it's", pa.string()),
            ('"q"', pa.int32()),
        ]
    ),
    "läufe": pa.schema([("k", pa.int64()), ("x", pa.string())]),
}

SPACED = "odd table"
"""Its columns have names that Delta takes only with column mapping: Spark writes it."""

KEYS = {"r": ["k"], "kinds": ["k"], "nest": ["k"]}
"""Declared for some tables; other tables have unique columns too, or none."""


class Lake:
    """The tables below *folder*."""

    def __init__(self, folder: Path, engine: Engine, seed: int) -> None:
        self.folder = folder
        self.random = random.Random(seed)
        self._engine = engine
        self._next = 0
        for table in SCHEMAS:
            feed = {"delta.enableChangeDataFeed": "true"} if table in ("s", "nest") else None
            write_deltalake(self._path(table), self._rows(table, 12), configuration=feed)
        self._spark(
            f"CREATE TABLE delta.`{self._path(SPACED)}` (`a b` INT, `c,d` DECIMAL(8,2), `(e)` STRING) USING delta "
            "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
        )
        self._fill_spaced(4)

    def change(self) -> list[str]:
        """Insert, delete and update rows of most tables; what was done."""
        done = []
        for table in SCHEMAS:
            if self.random.random() < 0.8:
                what = self.random.choice(["insert", "delete", "update", "move", "all", "all", "repeat"])
                self._change(table, what)
                done.append(f"{what} {table}")
        self._change_spaced()
        return done

    def empty(self) -> list[str]:
        """Take all rows out of most tables."""
        chosen = [table for table in SCHEMAS if self.random.random() < 0.6] or ["r"]
        for table in chosen:
            DeltaTable(self._path(table)).delete()
        return [f"empty {table}" for table in chosen]

    def refill(self) -> list[str]:
        """Rows for every table that has few."""
        chosen = [table for table in SCHEMAS if DeltaTable(self._path(table)).to_pyarrow_table().num_rows < 6]
        for table in chosen:
            write_deltalake(self._path(table), self._rows(table, 10), mode="append")
        return [f"refill {table}" for table in chosen]

    def rewrite(self) -> list[str]:
        """Write every table as it is, in another order, or take out and put back: no row changes."""
        for table in SCHEMAS:
            rows = DeltaTable(self._path(table)).to_pyarrow_table()
            match self.random.choice(["overwrite", "again", "compact"]):
                case "overwrite":
                    write_deltalake(self._path(table), _shuffled(rows, self.random), mode="overwrite")
                case "again":
                    DeltaTable(self._path(table)).delete()
                    write_deltalake(self._path(table), _cast(rows, SCHEMAS[table]), mode="append")
                case _:
                    DeltaTable(self._path(table)).optimize.compact()
        return ["rewrite everything"]

    def _change(self, table: str, what: str) -> None:
        keyed = "k" in SCHEMAS[table].names
        what = {"move": "move" if keyed else "update", "repeat": "insert" if keyed else "repeat"}.get(what, what)
        if what in ("insert", "all"):
            write_deltalake(self._path(table), self._rows(table, self.random.randrange(1, 4)), mode="append")
        if what in ("delete", "all"):
            self._edit(table, lambda rows: [row for row in rows if self.random.random() > 0.25])
        if what == "repeat":
            self._edit(table, lambda rows: rows + rows[:3])
        if what == "move":
            # An update of the key.
            DeltaTable(self._path(table)).update(predicate="k % 3 = 0", updates={"k": "k + 100000"})
        if what in ("update", "all"):
            self._update(table)

    def _update(self, table: str) -> None:
        if SCHEMAS[table] is _PLAIN:
            choose = self.random.choice
            values = {"a": str(self.random.randrange(4)), "b": choose(["b + 1", "NULL"]), "d": choose(["d", "d + 1"])}
            DeltaTable(self._path(table)).update(predicate=f"k % 4 = {self.random.randrange(4)}", updates=values)
            return

        def changed(row: Row) -> Row:
            fresh = self._row(table)
            columns = [name for name in row if name != "k" and self.random.random() < 0.5]
            return {**row, **{name: fresh[name] for name in columns}}

        self._edit(table, lambda rows: [changed(row) if self.random.random() < 0.3 else row for row in rows])

    def _edit(self, table: str, edit: Callable[[list[Row]], list[Row]]) -> None:
        """Overwrite a table with its edited rows."""
        rows = edit(DeltaTable(self._path(table)).to_pyarrow_table().to_pylist())
        write_deltalake(self._path(table), pa.Table.from_pylist(rows, SCHEMAS[table]), mode="overwrite")

    def _fill_spaced(self, count: int) -> None:
        choose = self.random.choice
        rows = [(choose(["NULL", "0", "1", "2"]), choose(["NULL", "1.50", "-2"]), choose("pq")) for _ in range(count)]
        listed = ", ".join(f"({a}, {c}, '{e}')" for a, c, e in rows)
        self._spark(f"INSERT INTO delta.`{self._path(SPACED)}` VALUES {listed}")

    def _change_spaced(self) -> None:
        match self.random.choice(["insert", "delete", "update"]):
            case "insert":
                self._fill_spaced(2)
            case "delete":
                self._spark(f"DELETE FROM delta.`{self._path(SPACED)}` WHERE `a b` = {self.random.randrange(3)}")
            case _:
                self._spark(f"UPDATE delta.`{self._path(SPACED)}` SET `c,d` = 7, `(e)` = 'r' WHERE `a b` = 1")

    def _spark(self, statement: str) -> None:
        self._engine.worker.sql(statement).collect()

    def _path(self, table: str) -> str:
        return str(self.folder / table)

    def _rows(self, table: str, count: int) -> pa.Table:
        return pa.Table.from_pylist([self._row(table) for _ in range(count)], SCHEMAS[table])

    def _row(self, table: str) -> Row:
        choose = self.random.choice
        self._next += 1
        small = choose([None, 0, 1, 2, 3])
        text = choose([None, "x", "y", "z"])
        amount = choose([None, Decimal("1.50"), Decimal("2.25"), Decimal("-1.00")])
        match table:
            case "bag":
                return {"a": choose([None, 0, 1]), "t": choose([None, "x"]), "d": choose([None, Decimal("1.50")])}
            case "kinds":
                return {
                    "k": self._next,
                    "day": choose([None, date(2024, 2, 29), date(2023, 12, 31), date(1969, 7, 20)]),
                    "ts": choose([None, *_MOMENTS]),
                    "flag": choose([None, True, False]),
                    "x": choose([None, *_FLOATS]),
                    "f": choose([None, *_FLOATS]),
                    "w": choose([None, Decimal("0.0000000001"), Decimal("-3.5"), Decimal("123456789012345.6")]),
                    "n": choose([None, Decimal(99999), Decimal(-7)]),
                    "i8": choose([None, 127, -128, 0]),
                    "i16": choose([None, 32767, 5]),
                    "bin": choose([None, b"", b"\x00\xff"]),
                }
            case "nest":
                return {
                    "k": self._next,
                    "xs": choose([None, [], [1], [1, None, 2], [3, 3]]),
                    "tags": choose([None, [], ["p"], ["p", "q"], [None]]),
                    "st": choose([None, {"a": small, "b": {"c": text}}, {"a": 1, "b": None}]),
                    "m": choose([None, [], [("a", 1)], [("a", 1), ("b", None)], [("b", None), ("a", 1)]]),
                    "ps": choose([None, [], [{"p": 1, "q": text}, {"p": None, "q": "s"}]]),
                }
            case "order":
                return {
                    "select": choose([1, 2, 3]),
                    "from": small,
                    "a.b": choose([None, 0, 1]),
                    "größe": choose([None, Decimal("1.5"), Decimal("-2.0")]),
                    "名前": choose([None, "名", "ñ"]),
                    "it's": choose(["it's", '"', "`"]),
                    '"q"': small,
                }
            case "läufe":
                return {"k": self._next, "x": choose([None, "ÄÖ", "ß"])}
        return {"k": self._next, "a": small, "b": choose([None, 0, 1, 2]), "t": text, "d": amount}


_MOMENTS = (
    datetime(2024, 2, 29, 10, 0, 0, 123456, UTC),
    datetime(1999, 12, 31, 23, 59, 59, 999999, UTC),
    datetime(2024, 2, 29, 10, 30, tzinfo=UTC),
)
_FLOATS = (0.0, -0.0, 1.5, -2.25, 0.1, float("nan"), float("inf"), float("-inf"))


def _shuffled(rows: pa.Table, chance: random.Random) -> pa.Table:
    places = list(range(rows.num_rows))
    chance.shuffle(places)
    return rows.take(places)


def _cast(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    return pa.Table.from_pylist(rows.to_pylist(), schema)
