"""A source whose tables are copied, as the rest of the warehouse sees it: with a past.

The source itself gives its changes once and can be asked only about now. Its change logs and the versions of its copies
in the warehouse make up for that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from strandline.algebra.schema import Schema, names
from strandline.catalog import Catalog, VersionRecord
from strandline.engine import tables
from strandline.engine.session import Engine
from strandline.errors import SourceError
from strandline.ingest.capture import logged
from strandline.ingest.copies import Copies, never_at, place_of
from strandline.ingest.fold import Stretch, delta
from strandline.ingest.logged import SourceLog, log_of, seen_of
from strandline.sources.protocol import CapturedSource, Peek, Position, TableInfo
from strandline.sql.names import quoted_list
from strandline.sql.render import SIGN
from strandline.store.node import Node


class CopiedSource(Copies):
    """The tables of *inner*, as their copies and change logs hold them. Positions are places in its log."""

    def __init__(self, inner: CapturedSource, catalog: Catalog, engine: Engine, root: str) -> None:
        super().__init__(inner.name, inner.kind, catalog, engine, root)
        self.inner = inner
        self.log = SourceLog(inner, catalog)

    def check(self) -> None:
        """Raise SourceError unless the source can be used as it is declared."""
        self.inner.check()

    def tables(self) -> Mapping[str, TableInfo]:
        """The tables as they are now; while the source does not answer, those that are known, as they were."""
        try:
            return self.inner.tables()
        except SourceError:
            if not self.known():
                raise
            return self.known()

    def position(self, table: str) -> Position:
        """The newest position, captured or not."""
        self.require(table)
        return self.log.end()

    def peek(self, table: str, after: Position, upto: Position) -> Peek:
        """The transactions between two positions; those that are not captured yet are only counted."""
        return self.log.peek(table, after, upto)

    def changes(self, table: str, after: Position, upto: Position, columns: Schema) -> str:
        """A SELECT of the net changes from the position of a version of the copy."""
        rows = self._folded(table, after, upto, names(self.node(table).visible), None)
        if rows is None:
            return tables.no_changes(columns)
        return f"SELECT {quoted_list((*names(columns), SIGN))}, {place_of(upto)} AS _position FROM ({rows})"

    def stored_changes(self, table: str, after: Position, upto: Position, *, only: str | None = None) -> str:
        """The same of all columns of the copy, under the names they are stored by; *only* is a condition on entries."""
        stored = self.node(table).stored
        return self._folded(table, after, upto, names(stored), only) or tables.no_changes(stored)

    def _folded(
        self, table: str, after: Position, upto: Position, named: Sequence[str], only: str | None
    ) -> str | None:
        node = self.node(table)
        record = self._catalog.captures.get(self.name)
        version = None if record is None else logged(record, table, node.log_path)
        transactions = self.log.transactions(table, after, place_of(upto))
        if version is None or not transactions:
            return None
        counts = {what for t in transactions for what in t.summary}
        unseen = None if seen_of(after) is None else self.inner.not_seen(str(seen_of(after)))
        stretch = Stretch(
            node.log_path,
            version,
            log_of(after),
            place_of(after),
            place_of(upto),
            " AND ".join(filter(None, (unseen, only))) or None,
            truncated="truncated" in counts,
            unchanged="unchanged" in counts,
            only_inserts=counts == {"inserted"},
        )
        key = tuple(str(name) for name in _list(node.record.options["key"]))
        old = self.snapshot(table, after, node.visible)
        return delta(stretch, node.visible, key, self.inner.parsers(table), old, named)

    def version_at(self, node: Node, at: Position) -> VersionRecord:
        """The version of a copy that shows a position: none of the transactions between the two changed the table."""
        table = node.name.split(".", 1)[1]
        for version in reversed(self._catalog.versions.all(node.record.id)):
            since = version.positions[node.name]
            if since == at:
                return version
            if log_of(since) == log_of(at) and place_of(since) <= place_of(at):
                if self.log.transactions(table, since, place_of(at)):
                    break
                return version
        raise never_at(node, at)


def _list(value: object) -> list[object]:
    assert isinstance(value, list)
    return value
