"""What a plan is made from: leaves as they are now, what was peeked of their changes, and how much lies where.

All of it comes from positions, logs and statistics: no Spark job runs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from strandline.algebra.near import Ranges
from strandline.algebra.schema import Column, Schema, names
from strandline.cost.charges import Extent
from strandline.engine.delta_log import DeltaLog, NoSuchTable
from strandline.engine.seeking import LEAST_ROWS
from strandline.engine.statistics import LEAST_SHARE, Ends, Files, TableSize
from strandline.errors import SourceError
from strandline.propagate.look_ahead import Taken
from strandline.propagate.plan import key_of
from strandline.propagate.vdag import Vdag
from strandline.reasons import Reason
from strandline.sources.protocol import InFiles, Peek, Position, Source, TableInfo
from strandline.store.marking import can_be_marked
from strandline.store.netting import anything_left
from strandline.store.node import Node
from strandline.store.ranges import ranges_between, stored_ranges
from strandline.store.replacing import replaceable

UNKNOWN_ROWS = 1_000
"""What is taken for the size of a change whose source keeps no statistics."""


@dataclass
class Leaf:
    """A leaf as it is now, and what was peeked of its changes."""

    position: Position
    columns: Schema
    problem: Reason | None
    size: TableSize
    files: Files | None = None
    peeks: dict[str, Peek] = field(default_factory=dict)


class Inputs:
    """The tables that the nodes of one plan read."""

    def __init__(
        self,
        vdag: Vdag,
        sources: Mapping[str, Source],
        storage_options: Mapping[str, str],
        order: Collection[str],
        shown: Mapping[str, Position],
        *,
        seeks: bool = False,
        marks: bool = False,
    ) -> None:
        """Nodes of *order* are to be planned; *shown* says where base views have leaves that others read too.

        The engine *seeks* few rows of large tables, or reads all files that may hold them; it *marks* those that go, or
        writes files anew.
        """
        self.taken = Taken()
        self.seeks = seeks
        self._marks = marks
        self._vdag = vdag
        self._sources = sources
        self._options = storage_options
        self._listed: dict[str, Mapping[str, TableInfo]] = {}
        self._tables: dict[str, Files | None] = {}
        self._left: dict[tuple[str, str, tuple[str, ...]], bool] = {}
        self._earlier: dict[tuple[str, str], Files | None] = {}
        self._ranges: dict[tuple[str, str, Column], Ranges | None] = {}
        # What base views read is theirs to follow.
        nodes = [vdag.nodes[name] for name in order if not vdag.nodes[name].base]
        read = dict.fromkeys(i for node in nodes for i in node.inputs if i not in vdag.nodes)
        self.leaves = {name: self._leaf(name, shown.get(name)) for name in read}

    def _leaf(self, name: str, shown: Position) -> Leaf:
        source_name, table = name.split(".", 1)
        source, nothing = self._sources.get(source_name), TableSize(0, 0, 0)
        if source is None:
            gone = Reason("SOURCE_TABLE_GONE", f"source {source_name} is not declared any more")
            return Leaf(None, (), gone, nothing)
        try:
            position = shown or source.position(table)
            if source_name not in self._listed:
                self._listed[source_name] = source.tables()
            columns = self._listed[source_name][table].columns
            if isinstance(source, InFiles):
                files = source.files(table, position)
                return Leaf(position, columns, None, files.size, files)
            size = source.size(table, position)
        except SourceError as error:
            return Leaf(None, (), Reason("SOURCE_TABLE_GONE", error.message), nothing)
        return Leaf(position, columns, None, TableSize(size.rows, size.bytes, 0))

    @property
    def bytes(self) -> int:
        """How much the leaves hold."""
        return sum(leaf.size.bytes for leaf in self.leaves.values())

    @property
    def rows(self) -> int:
        """The same in rows, as far as they are counted."""
        return sum(leaf.size.rows or 0 for leaf in self.leaves.values())

    def peek(self, name: str, after: Position) -> Peek:
        """What happened to a leaf since *after*; asked once for all nodes that have seen the same of it."""
        leaf = self.leaves[name]
        found = leaf.peeks.get(key_of(after))
        if found is None:
            source, table = name.split(".", 1)
            found = self._sources[source].peek(table, after, leaf.position)
            leaf.peeks[key_of(after)] = found
        return found

    def changed_rows(self, name: str, after: Position) -> int:
        """How many rows of a leaf changed since *after*, as far as can be told."""
        if (delta := self.taken.delta(name, after)) is not None:
            return delta.rows
        rows, size = self.peek(name, after).rows, self.leaves[name].size.rows
        found = UNKNOWN_ROWS if rows is None else rows
        return found if size is None else min(found, 2 * max(size, 1))

    def insert_only(self, name: str, after: Position) -> bool:
        """Whether rows of a leaf only came since *after*."""
        delta = self.taken.delta(name, after)
        return self.peek(name, after).insert_only if delta is None else not delta.deleted

    def matters(self, name: str, after: Position, columns: Schema) -> bool:
        """Whether changes of a leaf since *after* touch one of *columns*, as far as can be told."""
        delta = self.taken.delta(name, after)
        if delta is None:
            return True
        key = (name, key_of(after), names(columns))
        if key not in self._left:
            self._left[key] = anything_left(delta, names(columns), self._options)
        return self._left[key]

    def growth(self, name: str, after: Position) -> int:
        """How many rows more a leaf has since *after*."""
        if (delta := self.taken.delta(name, after)) is not None:
            return delta.inserted - delta.deleted
        if self.peek(name, after).insert_only:
            return self.changed_rows(name, after)
        before, now = self._rows_then(name, after), self.leaves[name].size.rows
        return 0 if before is None or now is None else now - before

    def _rows_then(self, name: str, at: Position) -> int | None:
        files = self._files_then(name, at)
        if files is not None:
            return files.size.rows
        source, table = name.split(".", 1)
        return self._sources[source].size(table, at).rows

    def size(self, name: str) -> TableSize:
        """How much a leaf or the table of a node holds."""
        if name in self.leaves:
            return self.leaves[name].size
        found = self._files(self._vdag.nodes[name])
        return TableSize(0, 0, 0) if found is None else found.size

    def rows_of(self, name: str) -> int:
        return self.size(name).rows or 0

    def extent(self, name: str, columns: int, limits: Mapping[str, Collection[Ends]] | None = None) -> Extent:
        """What reading so many *columns* of a leaf or node takes, if only files are read that may lie in *limits*."""
        files = self._files_of(name)
        size = files.within(limits) if limits and files is not None else self.size(name)
        return self._columns_of(name, columns, size)

    def sought(self, name: str, columns: int, limits: Mapping[str, Collection[Ends]]) -> Extent:
        """What seeking few rows in the same takes: about as much as reading a small part of them."""
        files = self._files_of(name)
        size = files.size_within(limits) if files is not None else self.size(name)
        if files is None or (size.rows or 0) <= LEAST_ROWS:
            return self.extent(name, columns, limits)
        part = replace(size, rows=int((size.rows or 0) * LEAST_SHARE), bytes=int(size.bytes * LEAST_SHARE))
        return self._columns_of(name, columns, part)

    def _files_of(self, name: str) -> Files | None:
        leaf, node = self.leaves.get(name), self._vdag.nodes.get(name)
        return leaf.files if leaf is not None else self._files(node) if node is not None else None

    def _columns_of(self, name: str, columns: int, size: TableSize) -> Extent:
        """So many *columns* of a part of a table."""
        leaf, node = self.leaves.get(name), self._vdag.nodes.get(name)
        width = len(leaf.columns if leaf is not None else node.stored if node is not None else ())
        return Extent(size.rows or 0, int(size.bytes * min(columns / max(width, 1), 1.0)), size.files)

    def replaceable(self, node: Node) -> bool:
        """Whether rows of a node's table can be replaced in its files."""
        return self._files(node) is not None and replaceable(node, self._options)

    def can_be_marked(self, node: Node) -> bool:
        """Whether rows of a node's table can be marked as deleted where they are sought."""
        return self._marks and self._files(node) is not None and can_be_marked(node, self._options)

    def holding(self, name: str, limits: Mapping[str, Collection[Ends]]) -> Extent:
        """The files of the table of a node that may have rows in *limits*, whole."""
        files = self._files(self._vdag.nodes[name])
        size = TableSize(0, 0, 0) if files is None else files.size_within(limits)
        return Extent(size.rows or 0, size.bytes, size.files)

    def ranges(self, name: str, after: Position, column: Column) -> Ranges | None:
        """The ranges in which a column of those rows of a leaf lies that changed since *after*."""
        key = (name, key_of(after), column)
        if key not in self._ranges:
            self._ranges[key] = self._ranged(name, after, column)
        return self._ranges[key]

    def _ranged(self, name: str, after: Position, column: Column) -> Ranges | None:
        if (delta := self.taken.delta(name, after)) is not None:
            return stored_ranges(delta.path, column, self._options) if delta.rows else None
        now, then, paths = self.leaves[name].files, self._files_then(name, after), self.peek(name, after).files
        if now is None or then is None or not paths:
            return None
        # A file that was added and then compacted away is in neither, but what became of it is.
        paths = paths | (set(now.paths) ^ set(then.paths))
        spans = [files.spans(column.name, paths) for files in (now, then)]
        known = [span for span in spans if span is not None]
        if len(known) < len(spans):
            return None
        return ranges_between(column, [e for ends, _ in known for e in ends], nulls=any(nulls for _, nulls in known))

    def _files_then(self, name: str, at: Position) -> Files | None:
        """The files of a leaf at a position, if it is one in files."""
        key = (name, key_of(at))
        if key not in self._earlier:
            source_name, table = name.split(".", 1)
            source = self._sources[source_name]
            self._earlier[key] = source.files(table, at) if isinstance(source, InFiles) else None
        return self._earlier[key]

    def _files(self, node: Node) -> Files | None:
        if node.name not in self._tables:
            try:
                self._tables[node.name] = DeltaLog(node.path, self._options).files()
            except NoSuchTable:
                self._tables[node.name] = None
        return self._tables[node.name]
