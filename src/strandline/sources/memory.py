"""A scripted source, for tests and simulation: its transactions are given, and it keeps them all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from strandline.algebra.bag import Row, SignedBag
from strandline.algebra.plan import Plan
from strandline.algebra.schema import Schema, names
from strandline.engine import tables
from strandline.errors import SourceError
from strandline.sources.protocol import Answer, Peek, Position, Size, SourceTransaction, TableInfo
from strandline.sources.query import pinned_query
from strandline.sql.names import choices, literal, quoted_list
from strandline.sql.render import SIGN

_EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class _Table:
    info: TableInfo
    transactions: list[SignedBag] = field(default_factory=list)


class MemorySource:
    """Tables of rows in memory; a position is the number of transactions so far."""

    kind = "memory"
    copied = False

    def __init__(self, name: str) -> None:
        self.name = name
        self._tables: dict[str, _Table] = {}

    def create(self, table: str, columns: Schema, key: Sequence[str] = ()) -> None:
        """Add an empty table."""
        self._tables[table] = _Table(TableInfo(table, columns, tuple(key)))

    def commit(self, table: str, inserted: Sequence[Row] = (), deleted: Sequence[Row] = ()) -> Position:
        """One transaction; a row that is deleted must be there."""
        change = SignedBag([*((row, 1) for row in inserted), *((row, -1) for row in deleted)])
        transactions = self._known(table).transactions
        after = self._rows(table, len(transactions)) + change
        if any(count < 0 for count in after.values()):
            raise ValueError(f"{self.name}.{table} does not hold all rows that are to be deleted")
        transactions.append(change)
        return self.position(table)

    def rows(self, table: str) -> list[Row]:
        """The rows of a table as they are now."""
        return self._rows(table, len(self._known(table).transactions)).rows()

    def tables(self) -> Mapping[str, TableInfo]:
        return {name: table.info for name, table in self._tables.items()}

    def position(self, table: str) -> Position:
        return len(self._known(table).transactions)

    def peek(self, table: str, after: Position, upto: Position) -> Peek:
        numbers = range(_number(after), _number(upto))
        changes = [self._known(table).transactions[n] for n in numbers]
        return Peek(
            tuple(SourceTransaction(n + 1, f"{table}-{n + 1}", _EPOCH + timedelta(seconds=n)) for n in numbers),
            insert_only=all(not change.deleted for change in changes),
            rows=sum(abs(count) for change in changes for count in change.values()),
        )

    def changes(self, table: str, after: Position, upto: Position, columns: Schema) -> str:
        known = self._known(table)
        rows = [
            (*row, 1 if count > 0 else -1, number + 1)
            for number in range(_number(after), _number(upto))
            for row, count in known.transactions[number].items()
            for _ in range(abs(count))
        ]
        if not rows:
            return tables.no_changes(columns)
        return f"SELECT {quoted_list((*names(columns), SIGN, '_position'))} FROM ({self._values(known, rows)})"

    def snapshot(self, table: str, at: Position, columns: Schema | None) -> str:
        known = self._known(table)
        columns = known.info.columns if columns is None else columns
        rows = [(*row, 1, 0) for row in self._rows(table, _number(at)).rows()]
        if not rows:
            return f"SELECT {quoted_list(names(columns))} FROM ({tables.no_changes(known.info.columns)})"
        return f"SELECT {quoted_list(names(columns))} FROM ({self._values(known, rows)})"

    def size(self, table: str, at: Position) -> Size:
        return Size(sum(self._rows(table, _number(at)).values()), 0)

    def query(self, plan: Plan) -> Answer:
        return pinned_query(self, plan, self.position)

    def acknowledge(self, table: str, position: Position) -> None:
        """Nothing is ever forgotten."""

    def check(self) -> None:
        """Always there."""

    def _rows(self, table: str, transactions: int) -> SignedBag:
        total = SignedBag()
        for change in self._known(table).transactions[:transactions]:
            total = total + change
        return total

    def _known(self, table: str) -> _Table:
        if table not in self._tables:
            raise SourceError(
                "UNKNOWN_TABLE", f"source {self.name} has no table {table}; it has {choices(self._tables)}."
            )
        return self._tables[table]

    def _values(self, table: _Table, rows: Sequence[Row]) -> str:
        columns = table.info.columns
        listed = ", ".join("(" + ", ".join(_text(value) for value in row) + ")" for row in rows)
        items = [f"CAST(col{i + 1} AS {c.type}) AS {quoted_list([c.name])}" for i, c in enumerate(columns)]
        items += [f"col{len(columns) + 1} AS {SIGN}", f"col{len(columns) + 2} AS _position"]
        return f"SELECT {', '.join(items)} FROM VALUES {listed}"


def _number(position: Position) -> int:
    assert isinstance(position, int)
    return position


def _text(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool | int):
        return str(value).lower()
    return literal(str(value))
