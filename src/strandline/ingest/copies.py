"""Source tables that the warehouse keeps copies of: whatever the source cannot tell of its past, the copies can."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from strandline.algebra.plan import Plan
from strandline.algebra.schema import Schema
from strandline.catalog import Catalog, TransactionRecord, VersionRecord
from strandline.engine.delta_log import DeltaLog, NoSuchTable
from strandline.engine.session import Engine
from strandline.errors import SourceError
from strandline.sources.protocol import Answer, Peek, Position, Size, SourceTransaction, TableInfo
from strandline.sources.query import pinned_query
from strandline.sql.names import choices, quoted_list
from strandline.store.node import Node, node_of

COPIED = "@copied"
"""Among the inputs of a copy's version: why it was last read anew, and what the source noted of the table then."""


class Copies(ABC):
    """The copies of one source's tables, read at the positions that their versions show."""

    copied = True

    def __init__(self, name: str, kind: str, catalog: Catalog, engine: Engine, root: str) -> None:
        self.name = name
        self.kind = kind
        self._catalog = catalog
        self._engine = engine
        self._root = root

    @abstractmethod
    def check(self) -> None:
        """Raise SourceError unless the source can be used as it is declared."""

    @abstractmethod
    def position(self, table: str) -> Position:
        """The newest position of a table."""

    @abstractmethod
    def peek(self, table: str, after: Position, upto: Position) -> Peek:
        """The transactions in (after, upto], in commit order, without their rows."""

    @abstractmethod
    def changes(self, table: str, after: Position, upto: Position, columns: Schema) -> str:
        """A SELECT of the changed rows in (after, upto]."""

    @abstractmethod
    def tables(self) -> Mapping[str, TableInfo]:
        """The tables as they are now, by name."""

    @abstractmethod
    def version_at(self, node: Node, at: Position) -> VersionRecord:
        """The version of a copy that shows a position."""

    def known(self) -> dict[str, TableInfo]:
        """The tables that views read, as they were when a view was last defined over them."""
        leaves = [leaf for leaf in self._catalog.leaves.all() if leaf.source == self.name]
        return {leaf.table: TableInfo(leaf.table, leaf.columns, leaf.key, leaf.location) for leaf in leaves}

    def require(self, table: str) -> None:
        """Raise SourceError unless there is such a table."""
        if self._catalog.views.get(f"{self.name}.{table}") is None and table not in self.tables():
            there = choices(self.tables(), table)
            raise SourceError("UNKNOWN_TABLE", f"source {self.name} has no table {table}; it has {there}.")

    def snapshot(self, table: str, at: Position, columns: Schema | None) -> str:
        """A SELECT of the copy at a position."""
        node = self.node(table)
        select = node.select(self.version_at(node, at).version)
        return select if columns is None else f"SELECT {quoted_list(c.name for c in columns)} FROM ({select})"

    def size(self, table: str, at: Position) -> Size:
        """How much the copy holds."""
        node = self.node(table)
        try:
            size = DeltaLog(node.path, self._engine.storage_options).size(self.version_at(node, at).version)
        except NoSuchTable:
            return Size(0, 0)
        return Size(size.rows, size.bytes)

    def query(self, plan: Plan) -> Answer:
        """A query over the copies, as they are."""
        return pinned_query(self, plan, self._shown)

    def acknowledge(self, table: str, position: Position) -> None:  # noqa: B027
        """Nobody waits for it: capturing acknowledges what is in the log, and dumps are not ours to remove."""

    def node(self, table: str) -> Node:
        """The copy of a table."""
        record = self._catalog.views.get(f"{self.name}.{table}")
        if record is None:
            raise SourceError(
                "NOT_COPIED",
                f"{self.name}.{table} is copied when a view first reads it, and none does; create a view over it.",
            )
        return node_of(record, self._root)

    def _shown(self, table: str) -> Position:
        """The position of the copy."""
        node = self.node(table)
        base = self._catalog.versions.baseline(node.record.id)
        if base is None:
            raise SourceError("NOT_COPIED", f"{node.name} is not copied yet; refresh a view over it first.")
        return base.positions[node.name]


def never_at(node: Node, at: Position) -> SourceError:
    """The error for a position that no version of a copy shows."""
    return SourceError(
        "NOT_COPIED",
        f"the copy of {node.name} was never at {at}; refresh a view over it, then read what a state shows.",
    )


def summed_up(transactions: list[TransactionRecord]) -> Peek:
    """What logged transactions amount to."""
    counts = {what for t in transactions for what in t.summary}
    rows = sum(n for t in transactions for what, n in t.summary.items() if what not in ("unchanged", "truncated"))
    return Peek(
        tuple(SourceTransaction(t.position, t.txid, t.committed_at) for t in transactions),
        insert_only=counts <= {"inserted"},
        rows=None if "truncated" in counts else rows,
    )


def place_of(position: Position) -> int:
    """How far a position reaches in its log."""
    assert isinstance(position, dict)
    found = position["place"]
    assert isinstance(found, int)
    return found
