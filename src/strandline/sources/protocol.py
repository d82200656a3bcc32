"""What every source offers.

A *position* says how far a table's changes have been taken, in the source's own terms: a table version, a log
sequence number. It is a JSON value that only its source can read; two positions are equal or they are not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol, runtime_checkable

from strandline.algebra.plan import Plan
from strandline.algebra.schema import Schema
from strandline.catalog import Json
from strandline.engine.statistics import Files
from strandline.reasons import Reason

Position = Json


@dataclass(frozen=True)
class TableInfo:
    """A table of a source; *unusable* says of columns that views cannot read, why and what to do.

    *bytes* is about how much it holds, where that is known. *problem* says why its changes cannot be followed.
    """

    name: str
    columns: Schema
    key: tuple[str, ...] = ()
    location: str | None = None
    unusable: Mapping[str, str] = field(default_factory=dict)
    bytes: int | None = None
    problem: str | None = None


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
    files: frozenset[str] = frozenset()
    """The files that hold what changed, before or after, if the table is one in files."""

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
    copied: bool
    """Whether the warehouse keeps copies of the tables, because the source cannot be asked about its past."""

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


@runtime_checkable
class InFiles(Protocol):
    """A source whose tables lie in files with statistics."""

    def files(self, table: str, at: Position) -> Files:
        """The files of a table at a position."""


@runtime_checkable
class Patient(Protocol):
    """A source that waits for a while when its server does not answer."""

    def hurried(self, patience: float) -> AbstractContextManager[None]:
        """Within, it waits for so many seconds at most."""


# Sources whose tables are copied: they have a log that is read once, and no past.


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of a transaction, in the text form that the source's types define.

    *op* is ``I`` (a row is there now), ``U`` (it is there, and the columns numbered *unchanged* are as they were),
    ``D`` (it is gone; of a keyed table only the key is given) or ``T`` (all rows of the table are gone).
    """

    table: str
    op: Literal["I", "U", "D", "T"]
    values: Sequence[str | None]
    unchanged: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Begun:
    """A transaction that committed at *place* follows: its entries, then :class:`Ended`."""

    place: int
    xid: int
    committed_at: datetime


@dataclass(frozen=True, slots=True)
class Ended:
    """The transaction is whole."""


@dataclass(frozen=True, slots=True)
class Unloggable:
    """From here on the changes of a table cannot be taken into its log: it has to be read anew."""

    table: str
    reason: Reason


LogEvent = Begun | Entry | Ended | Unloggable


@dataclass(frozen=True)
class Wanted:
    """A table whose changes are to be captured: which columns, in which order, and its key; a bag if it has none."""

    columns: tuple[str, ...]
    key: tuple[str, ...]
    details: Mapping[str, Json]


@dataclass(frozen=True)
class Rows:
    """Rows of a table to be read by Spark through JDBC, in parallel parts: *options*, and a condition for each part."""

    options: Mapping[str, str]
    parts: tuple[str, ...]


@dataclass(frozen=True)
class Baseline:
    """All rows of a table in one snapshot of the source; *seen* names the transactions that the snapshot shows."""

    rows: tuple[Rows, ...]
    seen: str
    details: Mapping[str, Json]


@dataclass(frozen=True)
class Opened:
    """A log that was begun: from *place* on it holds all changes; *details* is what the source needs to go on."""

    place: int
    details: Mapping[str, Json]


@dataclass(frozen=True)
class Health:
    """Where a log stands: *lost* is set if it does not go on where it was left."""

    lost: Reason | None
    retained_bytes: int | None
    warning: str | None = None


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at; *fix* is what to do if it is not *ok*, SQL where there is any."""

    what: str
    ok: bool
    code: str = ""
    fix: str = ""


@runtime_checkable
class CapturedSource(Protocol):
    """A source that hands its changes over once, in commit order, and whose tables the warehouse copies.

    A *place* in its log is a number: what was committed before it has been handed over.
    """

    name: str
    kind: str

    def check(self) -> None:
        """Raise SourceError, with what to do, unless the source can be used as it is declared."""

    def tables(self) -> Mapping[str, TableInfo]:
        """The tables as they are now, by name."""

    def open_log(self, tables: Sequence[str]) -> Opened:
        """Make the source keep its changes of *tables* for us from now on."""

    def add_to_log(self, tables: Sequence[str], details: Mapping[str, Json]) -> None:
        """See to it that the log holds changes of *tables* too, all those that begin after this call."""

    def close_log(self, details: Mapping[str, Json]) -> None:
        """The source need keep nothing for us any more."""

    def health(self, place: int, details: Mapping[str, Json]) -> Health:
        """Whether the log goes on at *place*."""

    def end(self) -> int:
        """The newest place up to which changes can be read."""

    def captured(
        self, wanted: Mapping[str, Wanted], place: int, upto: int, details: Mapping[str, Json]
    ) -> Iterator[LogEvent]:
        """The transactions from *place* on that committed before *upto*, as far as they touch the tables wanted."""

    def pending(self, place: int, upto: int, details: Mapping[str, Json]) -> Mapping[str, Peek]:
        """What :meth:`captured` would give, by table, without the rows."""

    def acknowledge(self, place: int, details: Mapping[str, Json]) -> None:
        """All before *place* is durable here: the source may forget it."""

    def baseline(self, table: str, columns: Sequence[str]) -> AbstractContextManager[Baseline]:
        """The rows of a table, in the text form of its types, in a snapshot that lives as long as the context."""

    def sees(self, seen: str, xid: str) -> bool:
        """Whether a baseline that saw *seen* shows the transaction *xid* of the log."""

    def not_seen(self, seen: str) -> str:
        """The condition on log entries, by ``_xid``, that a baseline which saw *seen* does not show them."""

    def parsers(self, table: str) -> Mapping[str, Callable[[str], str]]:
        """By column: from an expression for its text form to an expression for its value, in Spark's SQL."""

    def changed_since(self, noted: Mapping[str, Wanted]) -> Mapping[str, Reason]:
        """Which tables, of whose baselines *details* were noted, have to be read anew though their log goes on."""

    def findings(self) -> Sequence[Finding]:
        """What ``source check`` tells: everything that the source must be and have, and whether it does."""

    def close(self) -> None:
        """Let go of connections."""
