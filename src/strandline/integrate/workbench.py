"""Where terms are evaluated at the warehouse: in memory while they are small and plain, else on Spark.

Plain is what the in-memory evaluator and Spark are certain to compute alike: columns, and comparisons of values of one
kind. Anything else a view may say in its conditions is Spark's to evaluate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import count

import pyarrow as pa

from strandline.algebra.bag import SignedBag
from strandline.algebra.evaluate import evaluate
from strandline.algebra.plan import (
    Change,
    Exists,
    Filter,
    GroupBy,
    Join,
    Operand,
    Plan,
    Project,
    Scan,
    children,
    map_scans,
    scans,
)
from strandline.algebra.scalar import COMPARISONS, Call, Col, Lit, Scalar, Text
from strandline.algebra.schema import Schema, names
from strandline.engine import places
from strandline.engine.files import read_rows, write_rows
from strandline.engine.session import Engine
from strandline.sources.arrow_types import arrow_type
from strandline.sql.names import quoted, quoted_list
from strandline.sql.render import SIGN, render

MOST_IN_MEMORY = 100_000
"""A plan over more rows than this is evaluated on Spark, and a table of more rows is not loaded."""

_KINDS = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), "number"),
    **{kind: kind for kind in ("float", "double", "string", "boolean", "date", "timestamp", "timestamp_ntz", "binary")},
}
_LITERALS: dict[type, str] = {bool: "boolean", int: "number", Decimal: "number", str: "string"}
_CONNECTIVES = frozenset({"and", "or", "not", "is null", "is not null"})


@dataclass(frozen=True)
class Table:
    """Rows that are stored: a SELECT of them, and about how many there are, if that is known."""

    select: str
    columns: Schema
    rows: int | None

    @property
    def signed(self) -> str:
        """The SELECT with ``__sign``."""
        return f"SELECT {quoted_list(names(self.columns))}, 1 AS {SIGN} FROM ({self.select})"


class Workbench:
    """Evaluates plans over bags in memory, and over *tables*, which only Spark reads; files go below *folder*."""

    def __init__(self, engine: Engine, folder: str, most: int = MOST_IN_MEMORY) -> None:
        self._engine = engine
        self._folder = folder
        self._most = most
        self._numbers = count(1)
        self.on_spark = 0
        """How many plans were evaluated on Spark."""

    def value(self, plan: Plan, bags: Mapping[Operand, SignedBag], tables: Mapping[Operand, str]) -> SignedBag:
        """The rows of *plan*; *tables* has for an operand the SELECT of its signed rows."""
        read = list(scans(plan))
        here = [scan for scan in read if scan.operand not in tables]
        size = sum(len(bags[scan.operand]) for scan in here)
        if len(here) == len(read) and size <= self._most and plain(plan):
            return evaluate(plan, lambda operand: bags[operand])
        if here and not tables and not any(bags[scan.operand] for scan in here):
            return SignedBag()
        return self._on_spark(plan, bags, tables)

    def loaded(self, table: Table) -> SignedBag | None:
        """The rows of a table that is small enough to be worked with in memory; None for any other."""
        if table.rows is None or table.rows > self._most:
            return None
        path = self._path()
        return self._read(path) if self._engine.write_parquet(table.signed, path) else SignedBag()

    def select(self, rows: SignedBag, columns: Schema) -> str:
        """A SELECT of signed rows, which are written to a file for it."""
        path = self._path()
        store(rows, columns, path, self._engine.storage_options)
        return f"SELECT {quoted_list((*names(columns), SIGN))} FROM parquet.{quoted(path)}"

    def close(self) -> None:
        """Remove the files."""
        places.remove(self._folder, self._engine.storage_options)

    def _on_spark(self, plan: Plan, bags: Mapping[Operand, SignedBag], tables: Mapping[Operand, str]) -> SignedBag:
        selects: dict[Operand, str] = dict(tables)

        def bound(scan: Scan) -> str:
            shown = quoted_list((*names(scan.fields), SIGN))
            assert isinstance(scan.operand, Change)
            operand = known[scan.operand]
            if operand not in selects:
                selects[operand] = self.select(bags[operand], scan.fields)
            return f"SELECT {shown} FROM ({selects[operand]})"

        known: dict[Change, Operand] = {}

        def signed(scan: Scan) -> Scan:
            """Every operand may hold signed rows, so each is read as a change."""
            change = Change(f"{len(known)}")
            known[change] = scan.operand
            return Scan(change, scan.alias, scan.fields)

        self.on_spark += 1
        path = self._path()
        sql = render(map_scans(plan, signed), bound, signed=True)
        wrote = self._engine.write_parquet(f"SELECT {quoted_list((*names(plan.columns), SIGN))} FROM ({sql})", path)
        return self._read(path) if wrote else SignedBag()

    def _read(self, path: str) -> SignedBag:
        return loaded(path, self._engine.storage_options)

    def _path(self) -> str:
        return f"{self._folder}/{next(self._numbers)}"


def store(rows: SignedBag, columns: Schema, path: str, storage_options: Mapping[str, str] | None = None) -> None:
    """Write signed rows to a folder, as unit rows with ``__sign``."""
    units = [(row, 1 if times > 0 else -1) for row, times in rows.items() for _ in range(abs(times))]
    arrays = [
        pa.array([row[place] for row, _ in units], arrow_type(column.type)) for place, column in enumerate(columns)
    ]
    fields = [pa.field(column.name, array.type) for column, array in zip(columns, arrays, strict=True)]
    signs = pa.array([sign for _, sign in units], pa.int32())
    table = pa.Table.from_arrays([*arrays, signs], schema=pa.schema([*fields, pa.field(SIGN, pa.int32())]))
    write_rows(table, path, storage_options)


def loaded(path: str, storage_options: Mapping[str, str] | None = None) -> SignedBag:
    """The signed rows of a folder, whose last column is ``__sign``."""
    columns = [_values(column) for column in read_rows(path, storage_options).columns]
    return SignedBag((row[:-1], row[-1]) for row in zip(*columns, strict=True))


def _values(column: pa.ChunkedArray) -> list[object]:
    values = column.to_pylist()
    return [tuple(v) if isinstance(v, list) else v for v in values] if pa.types.is_list(column.type) else values


def plain(plan: Plan) -> bool:
    """Whether the in-memory evaluator gives what Spark does."""
    kinds = {column.name: _kind(column.type) for column in _columns(plan)}
    return all(_plain(scalar, kinds) for scalar in _scalars(plan)) and all(map(plain, children(plan)))


def _columns(plan: Plan) -> Schema:
    return (*plan.columns, *(column for child in children(plan) for column in child.columns))


def _scalars(plan: Plan) -> Iterator[Scalar]:
    match plan:
        case Filter(condition=condition):
            yield condition
        case Project(outputs=outputs):
            yield from (output.value for output in outputs)
        case Join(conditions=conditions):
            yield from conditions
        case Exists(keys=keys, conditions=conditions):
            yield from (Call("=", pair) for pair in keys)
            yield from conditions
        case GroupBy(keys=outputs):
            yield from (output.value for output in outputs)


def _plain(scalar: Scalar, kinds: Mapping[str, str | None]) -> bool:
    match scalar:
        case Col() | Lit():
            return True
        case Text(meaning=meaning):
            return meaning is not None and _plain(meaning, kinds)
        case Call(op, args) if op in COMPARISONS or op == "<=>":
            found = {_kind_of(arg, kinds) for arg in args}
            return len(found) == 1 and None not in found
        case Call(op, args):
            return op in _CONNECTIVES and all(_plain(arg, kinds) for arg in args)


def _kind_of(scalar: Scalar, kinds: Mapping[str, str | None]) -> str | None:
    match scalar:
        case Col(name):
            return kinds[name]
        case Lit(value):
            return _LITERALS.get(type(value))
        case Text(meaning=Col() | Lit() as meaning):
            return _kind_of(meaning, kinds)
        case _:
            return None


def _kind(type_: str) -> str | None:
    return "number" if type_.startswith("decimal(") else _KINDS.get(type_)
