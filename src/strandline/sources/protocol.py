"""What every source offers.

A *position* says how far a table's changes have been taken, in the source's own terms: a table version, a log
sequence number. It is a JSON value that only its source can read; two positions are equal or they are not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from strandline.algebra.plan import Plan
from strandline.algebra.schema import Schema
from strandline.catalog import Json
from strandline.reasons import Reason

Position = Json


@dataclass(frozen=True)
class TableInfo:
    """A table of a source."""

    name: str
    columns: Schema
    key: tuple[str, ...] = ()
    location: str | None = None


@dataclass(frozen=True)
class SourceTransaction:
    """One commit of a source, in its place in the order; *columns* is set where it changed the schema."""

    position: Position
    txid: str | None
    committed_at: datetime | None
    changes_data: bool = True
    columns: Schema | None = None


@dataclass(frozen=True)
class Peek:
    """What is known of the changes in (after, upto] without reading them.

    *gap* is set if they cannot be given any more: then the table has to be read anew.
    """

    transactions: tuple[SourceTransaction, ...]
    insert_only: bool = False
    rows: int | None = None
    bytes: int = 0
    gap: Reason | None = None

    @property
    def changes_data(self) -> bool:
        return self.gap is not None or any(t.changes_data for t in self.transactions)


@dataclass(frozen=True)
class Answer:
    """A query of a source, and exactly which positions its answer shows."""

    sql: str
    positions: Mapping[str, Position]


@dataclass(frozen=True)
class Size:
    """How much a table holds, as far as it is known without reading it."""

    rows: int | None
    bytes: int


class Source(Protocol):
    """A source of tables that change on their own."""

    name: str
    kind: str

    def check(self) -> None:
        """Raise SourceError, with what to do, unless the source can be used as it is declared."""

    def tables(self) -> Mapping[str, TableInfo]:
        """The tables as they are now, by name."""

    def position(self, table: str) -> Position:
        """The newest position of a table."""

    def peek(self, table: str, after: Position, upto: Position) -> Peek:
        """The transactions in (after, upto], in commit order, without their rows."""

    def changes(self, table: str, after: Position, upto: Position, columns: Schema) -> str:
        """A SELECT of the changed rows in (after, upto]: *columns*, ``__sign``, and ``_position`` in commit order."""

    def snapshot(self, table: str, at: Position, columns: Schema | None) -> str:
        """A SELECT of the rows of a table at a position: *columns*, or all that it has there."""

    def size(self, table: str, at: Position) -> Size:
        """How much the table holds at a position."""

    def query(self, plan: Plan) -> Answer:
        """A query over this source's tables (named ``source.table`` in *plan*), answered in its current state."""

    def acknowledge(self, table: str, position: Position) -> None:
        """Everything up to *position* is durable here: the source may forget it."""
