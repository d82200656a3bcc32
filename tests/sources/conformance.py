"""What every source is tried with: a table of awkward columns, transactions, and a harness that carries them out.

The model of a table is a list of rows; a transaction is a function of it. A harness does the same to a real table.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from strandline.algebra.bag import Row, SignedBag
from strandline.algebra.schema import Column, Schema, names
from strandline.engine.session import Engine
from strandline.sources.delta import DeltaSource
from strandline.sources.memory import MemorySource
from strandline.sources.protocol import Position, Source
from strandline.sql.names import literal, quoted, quoted_list
from tests.conftest import bag

NAN = float("nan")

COLUMNS: Schema = (
    Column("k", "bigint"),
    Column("text", "string"),
    Column("amount", "decimal(12,2)"),
    Column("day", "date"),
    Column("flag", "boolean"),
    Column("ratio", "double"),
    Column("odd name", "string"),
)

ARROW = pa.schema(
    [
        ("k", pa.int64()),
        ("text", pa.string()),
        ("amount", pa.decimal128(12, 2)),
        ("day", pa.date32()),
        ("flag", pa.bool_()),
        ("ratio", pa.float64()),
        ("odd name", pa.string()),
    ]
)

PLAIN: Row = (1, "a", Decimal("1.20"), datetime.date(2024, 2, 29), True, 0.5, "b")
QUOTES: Row = (2, 'it\'s \\ a "quote"\n`tick`', Decimal("-0.01"), datetime.date(1582, 10, 15), False, NAN, "\\'")
NULLS: Row = (3, None, None, None, None, None, None)
WIDE: Row = (2**62, "ünïcode", Decimal("9999999999.99"), datetime.date(9999, 12, 31), True, float("inf"), "")
NO_KEY: Row = (None, "no key", Decimal("0.00"), datetime.date(1970, 1, 1), False, -1e-300, "x")


@dataclass(frozen=True)
class Insert:
    """Add rows."""

    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Delete:
    """Remove the rows with this key."""

    key: int


@dataclass(frozen=True)
class Update:
    """Give the rows with this key another text."""

    key: int
    text: str


@dataclass(frozen=True)
class Replace:
    """Remove the rows with these keys and add others, at once."""

    keys: tuple[int, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Overwrite:
    """Put these rows in place of all others."""

    rows: tuple[Row, ...]


Transaction = Insert | Delete | Update | Replace | Overwrite

TRANSACTIONS: tuple[Transaction, ...] = (
    Insert((PLAIN, PLAIN, QUOTES, NULLS, NO_KEY)),
    Insert((PLAIN, WIDE)),
    Update(2, "now it's\\"),
    Replace((1, 3), (PLAIN, QUOTES)),
    Delete(2),
)


def after(rows: Sequence[Row], transaction: Transaction) -> list[Row]:
    """The rows of a table after a transaction."""
    match transaction:
        case Insert(new):
            return [*rows, *new]
        case Delete(key):
            return [row for row in rows if row[0] != key]
        case Update(key, text):
            return [(row[0], text, *row[2:]) if row[0] == key else row for row in rows]
        case Replace(keys, new):
            return [*(row for row in rows if row[0] not in keys), *new]
        case Overwrite(new):
            return list(new)


class Harness(Protocol):
    """A source with one table, ``t``, that can be written."""

    @property
    def source(self) -> Source: ...

    def run(self, transaction: Transaction) -> None:
        """Carry out one transaction."""

    def position(self) -> Position:
        """Where the table is now."""

    def leads_to(self, transaction: Position, before: Position, after: Position) -> bool:
        """Whether a transaction with that position led from one position of the table to the next."""


class OwnPositions:
    """A table whose position moves with its own transactions and nothing else, and is that of the last of them."""

    source: Source

    def position(self) -> Position:
        return self.source.position("t")

    def leads_to(self, transaction: Position, before: Position, after: Position) -> bool:
        return transaction == after != before


@dataclass
class History:
    """A source, the positions of its table after each transaction, and the rows that were there."""

    harness: Harness
    positions: list[Position] = field(default_factory=list)
    states: list[list[Row]] = field(default_factory=list)

    @property
    def source(self) -> Source:
        return self.harness.source

    def run(self, transactions: Iterable[Transaction]) -> History:
        """Carry out transactions one by one, and note what each leaves."""
        for transaction in transactions:
            self.harness.run(transaction)
            self.note(after(self.states[-1], transaction))
        return self

    def note(self, rows: Sequence[Row]) -> None:
        """The table holds *rows* now."""
        self.positions.append(self.harness.position())
        self.states.append(list(rows))

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """All intervals, empty ones too, as places in *positions*."""
        count = len(self.positions)
        return [(first, last) for first in range(count) for last in range(first, count)]

    @property
    def read_pairs(self) -> list[tuple[int, int]]:
        """The intervals whose rows are read: all in memory; elsewhere single steps, the whole, and some between."""
        last = len(self.positions) - 1
        if isinstance(self.source, MemorySource):
            return self.pairs
        return [(0, 1), (2, 3), (3, 4), (last - 1, last), (0, 2), (2, last), (0, last), (last, last)]

    @property
    def read_places(self) -> list[int]:
        """The positions at which all rows are read."""
        last = len(self.positions) - 1
        return list(range(last + 1)) if isinstance(self.source, MemorySource) else [2, last]


def begin(harness: Harness) -> History:
    """The history of an empty table."""
    history = History(harness)
    history.note([])
    return history


Changes = dict[tuple[int, int], list[tuple[Row, int, int]]]
"""Per interval: rows, each with its sign and the position it carries."""


def read_changes(
    engine: Engine, history: History, pairs: Sequence[tuple[int, int]], columns: Schema = COLUMNS
) -> Changes:
    """The changes of several intervals."""
    positions = history.positions
    texts = {
        pair: history.source.changes("t", positions[pair[0]], positions[pair[1]], columns)
        for pair in dict.fromkeys(pairs)
    }
    shown = quoted_list((*names(columns), "__sign", "_position"))
    parts = [f"SELECT {first} AS first, {last} AS last, {shown} FROM ({text})" for (first, last), text in texts.items()]
    found: Changes = {pair: [] for pair in texts}
    for first, last, *row, sign, position in _union(engine, parts):
        found[first, last].append((tuple(row), sign, position))
    return found


def read_snapshots(engine: Engine, history: History, places: Sequence[int]) -> dict[int, SignedBag]:
    """The rows at some positions."""
    texts = {place: history.source.snapshot("t", history.positions[place], COLUMNS) for place in places}
    found: dict[int, list[Row]] = {place: [] for place in places}
    for place, *row in _union(engine, [f"SELECT {place} AS place, * FROM ({text})" for place, text in texts.items()]):
        found[place].append(tuple(row))
    return {place: bag(rows) for place, rows in found.items()}


def _union(engine: Engine, parts: Sequence[str]) -> list[Row]:
    """The rows of all parts. Most of the time goes into planning, which one thread does: so there are two."""
    unions = [" UNION ALL ".join(half) for half in (parts[::2], parts[1::2]) if half]
    with ThreadPoolExecutor() as pool:
        return [row for rows in pool.map(engine.rows, unions) for row in rows]


def netted(changes: Iterable[tuple[Row, int, int]]) -> SignedBag:
    """What signed rows amount to."""
    return SignedBag((row, sign) for row, sign, _ in changes)


class MemoryHarness(OwnPositions):
    """The scripted source."""

    def __init__(self) -> None:
        self.source: MemorySource = MemorySource("src")
        self.source.create("t", COLUMNS)
        self._rows: list[Row] = []

    def run(self, transaction: Transaction) -> None:
        rows = after(self._rows, transaction)
        change = bag(rows) - bag(self._rows)
        self.source.commit("t", change.inserted.rows(), change.deleted.rows())
        self._rows = rows


class WrittenHarness(OwnPositions):
    """A Delta table that another program than Spark writes (the ``deltalake`` package)."""

    def __init__(self, engine: Engine, folder: Path, *, change_feed: bool) -> None:
        self.source = DeltaSource("src", engine, path=str(folder))
        self.path = str(folder / "t")
        DeltaTable.create(self.path, ARROW)
        if change_feed:
            self.set_change_feed(True)

    def set_change_feed(self, on: bool) -> None:
        """Switch the change feed on or off."""
        self.table.alter.set_table_properties({"delta.enableChangeDataFeed": str(on).lower()})

    @property
    def table(self) -> DeltaTable:
        return DeltaTable(self.path)

    def run(self, transaction: Transaction) -> None:
        match transaction:
            case Insert(rows):
                write_deltalake(self.path, _arrow(rows), mode="append")
            case Delete(key):
                self.table.delete(f"k = {key}")
            case Update(key, text):
                value = "'" + text.replace("'", "''") + "'"
                self.table.update(predicate=f"k = {key}", updates={"text": value})
            case Replace(keys, rows):
                gone = [(key, *(None for _ in COLUMNS[1:])) for key in keys]
                source = _arrow([*gone, *rows]).append_column("gone", [[True] * len(gone) + [False] * len(rows)])
                merge = self.table.merge(source, "s.gone AND s.k = t.k", source_alias="s", target_alias="t")
                values = {f"`{name}`": f's."{name}"' for name in names(COLUMNS)}
                merge.when_matched_delete().when_not_matched_insert(values, predicate="NOT s.gone").execute()
            case Overwrite(rows):
                write_deltalake(self.path, _arrow(rows), mode="overwrite")


class SqlHarness(OwnPositions):
    """A Delta table that Spark writes, *name* being its name in SQL."""

    def __init__(self, engine: Engine, name: str, source: Source) -> None:
        self._engine = engine
        self._name = name
        self.source = source

    def run(self, transaction: Transaction) -> None:
        match transaction:
            case Insert(rows):
                self._engine.run(f"INSERT INTO {self._name} {_values(rows)}")
            case Delete(key):
                self._engine.run(f"DELETE FROM {self._name} WHERE k = {key}")
            case Update(key, text):
                self._engine.run(f"UPDATE {self._name} SET text = {literal(text)} WHERE k = {key}")
            case Replace(keys, rows):
                gone = _values([(key, *(None for _ in COLUMNS[1:])) for key in keys])
                source = f"SELECT *, true AS gone FROM ({gone}) UNION ALL SELECT *, false FROM ({_values(rows)})"
                shown = quoted_list(names(COLUMNS))
                inserted = ", ".join(f"s.{quoted(name)}" for name in names(COLUMNS))
                self._engine.run(
                    f"MERGE INTO {self._name} AS t USING ({source}) AS s ON s.gone AND s.k = t.k "
                    "WHEN MATCHED THEN DELETE "
                    f"WHEN NOT MATCHED AND NOT s.gone THEN INSERT ({shown}) VALUES ({inserted})"
                )
            case Overwrite(rows):
                self._engine.run(f"INSERT OVERWRITE {self._name} {_values(rows)}")


def catalog_harness(engine: Engine, folder: Path) -> SqlHarness:
    """A table that is known by its name in Spark's catalog."""
    name = "default.strandline_conformance"
    fields = ", ".join(f"{quoted(c.name)} {c.type}" for c in COLUMNS)
    engine.run(f"DROP TABLE IF EXISTS {name}")
    engine.run(
        f"CREATE TABLE {name} ({fields}) USING delta LOCATION {literal(str(folder / 'odd folder' / 't'))} "
        "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true', 'delta.columnMapping.mode' = 'name')"
    )
    return SqlHarness(engine, name, DeltaSource("src", engine, tables={"t": name}))


HARNESSES: dict[str, Callable[[Engine, Path], Harness]] = {
    "memory": lambda engine, folder: MemoryHarness(),
    "delta-with-feed": lambda engine, folder: WrittenHarness(engine, folder, change_feed=True),
    "delta-without-feed": lambda engine, folder: WrittenHarness(engine, folder, change_feed=False),
    "delta-in-catalog": catalog_harness,
}


def _arrow(rows: Sequence[Row]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(names(COLUMNS), row, strict=True)) for row in rows], ARROW)


def _values(rows: Sequence[Row]) -> str:
    listed = ", ".join(
        "(" + ", ".join(_value(value, c.type) for value, c in zip(row, COLUMNS, strict=True)) + ")" for row in rows
    )
    return f"SELECT * FROM VALUES {listed} AS v({quoted_list(names(COLUMNS))})"


def _value(value: Any, kind: str) -> str:
    return f"CAST({'NULL' if value is None else literal(str(value))} AS {kind})"
