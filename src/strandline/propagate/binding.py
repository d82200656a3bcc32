"""What the operands of a node's terms stand for in one refresh, as SQL over pinned versions and stored deltas."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from strandline.algebra.few import Rows, from_the_delta
from strandline.algebra.near import Limits, Near, Origin, Ranges, near
from strandline.algebra.plan import At, Backing, Bag, Change, Net, Plan, Scan
from strandline.algebra.schema import Column, Schema, names
from strandline.catalog import Json
from strandline.engine import tables
from strandline.engine.delta_log import DeltaLog
from strandline.engine.opened import opened
from strandline.propagate.vdag import Vdag
from strandline.sources.protocol import Source
from strandline.sql.names import quoted, quoted_list
from strandline.sql.render import SIGN, render
from strandline.store.deltas import Delta
from strandline.store.node import Node, stored_limits
from strandline.store.ranges import stored_ranges


@dataclass(frozen=True)
class Pins:
    """For one node: what it has seen of its inputs (*pre*), and what it is to show (*post*)."""

    node: Node
    baseline: int | None
    pre: Mapping[str, Json]
    post: Mapping[str, Json]
    deltas: Mapping[str, Delta]
    bags: Mapping[str, str]
    shared: Mapping[str, Collection[str]] = field(default_factory=dict)
    """The relations of joins whose deltas are shared, and of plans whose deltas are stored before, by name."""


class Binding:
    """Binds scans of leaves, nodes, deltas and stored bags."""

    def __init__(self, vdag: Vdag, sources: Mapping[str, Source], storage_options: Mapping[str, str]) -> None:
        self._vdag = vdag
        self._sources = sources
        self._options = storage_options
        self._sizes: dict[tuple[str, str], int | None] = {}
        self._ranges: dict[tuple[str, Column], Ranges | None] = {}

    def sql(self, plan: Plan, pins: Pins, *, signed: bool = False) -> str:
        """*plan* as one SELECT that begins at its deltas, and reads of tables what lies near them."""
        narrowed = from_the_delta(self.near(plan, pins), lambda scan: self._rows(scan, pins))
        return render(narrowed, lambda scan: self.scan(scan, pins), signed=signed)

    def near(self, plan: Plan, pins: Pins) -> Plan:
        """*plan*, reading of tables only what its deltas can meet."""

        def ranges(scan: Scan, field: str) -> Ranges | None:
            where = self._stored(scan, field, pins)
            found = None if where is None or not where[0] else self._known_ranges(*where)
            return None if found is None else replace(found, among=(Origin(scan, field),))

        return near(plan, ranges)

    def rows_within(self, scan: Scan, limits: Limits, pins: Pins) -> int:
        """The rows of a table in files that may lie within *limits*, as far as they are known."""
        found = tables.pinned(self.selected(scan, pins))
        if found is None:
            return 0
        path, version = found
        within = stored_limits(scan, limits, self._table_of(scan))
        return opened(path, version, self._options).files.size_within(within).rows or 0

    def rows_near(self, scan: Scan, pins: Pins) -> int:
        """About how many rows of a table lie where a scan reads it; many where nobody knows."""
        found = tables.pinned(self.selected(scan, pins))
        if found is None:
            return sys.maxsize
        path, version = found
        within = stored_limits(scan, dict(scan.limits) if isinstance(scan, Near) else {}, self._table_of(scan))
        rows = opened(path, version, self._options).files.within(within).rows
        return sys.maxsize if rows is None else rows

    def _known_ranges(self, path: str, column: Column) -> Ranges | None:
        """The ranges of a column of stored rows; what is stored in a refresh stays as it is."""
        if (path, column) not in self._ranges:
            self._ranges[path, column] = stored_ranges(path, column, self._options)
        return self._ranges[path, column]

    def _rows(self, scan: Scan, pins: Pins) -> Rows | None:
        """How many rows a delta or table has, and the relation it belongs to."""
        match scan.operand:
            case Change(relation):
                joined = pins.shared.get(relation, (relation,))
                sizes = [self._whole(name, pins.post[name]) for name in joined if name in pins.post]
                known = [size for size in sizes if size is not None]
                return Rows(pins.deltas[relation].rows, max(known)) if len(known) == len(joined) else None
            case At(relation, state):
                whole = self._whole(relation, (pins.pre if state == "pre" else pins.post)[relation])
                return None if whole is None else Rows(whole, whole)
            case Backing() if pins.baseline is not None:
                whole = DeltaLog(pins.node.path, self._options).size(pins.baseline).rows
                return None if whole is None else Rows(whole, whole)
            case _:
                return None

    def _whole(self, relation: str, pinned: Json) -> int | None:
        key = (relation, json.dumps(pinned, sort_keys=True))
        if key not in self._sizes:
            self._sizes[key] = self._counted(relation, pinned)
        return self._sizes[key]

    def _counted(self, relation: str, pinned: Json) -> int | None:
        node = self._vdag.nodes.get(relation)
        if node is None:
            source, table = relation.split(".", 1)
            return self._sources[source].size(table, pinned).rows
        return DeltaLog(node.path, self._options).size(node.pinned_version(pinned)).rows

    def _stored(self, scan: Scan, field: str, pins: Pins) -> tuple[str, Column] | None:
        """The files that hold the rows of a delta or bag, and the column in them that is *field*."""
        column = next(column for column in scan.fields if column.name == field)
        match scan.operand:
            case Bag(name):
                return pins.bags[name], column
            case Change(relation):
                node, path = self._vdag.nodes.get(relation), pins.deltas[relation].path
                stored = field if node is None else node.stored_column(field)
                return None if stored is None else (path, replace(column, name=stored))
            case _:
                return None

    def scan(self, scan: Scan, pins: Pins) -> str:
        """The SELECT that yields the fields of *scan*, with ``__sign`` for a change."""
        match scan.operand:
            case At() | Backing():
                return tables.near(self.selected(scan, pins), self.told(scan, pins))
            case Change(relation):
                return self._change(relation, pins.deltas[relation], scan.fields)
            case Bag(name):
                return f"SELECT {quoted_list(names(scan.fields))} FROM parquet.{quoted(pins.bags[name])}"

    def selected(self, scan: Scan, pins: Pins) -> str:
        """The SELECT that yields the fields of a table."""
        if isinstance(scan.operand, At):
            pinned = pins.pre if scan.operand.state == "pre" else pins.post
            return self.at(scan.operand.relation, pinned[scan.operand.relation], scan.fields)
        assert pins.baseline is not None
        return tables.select(pins.node.path, pins.baseline, scan.fields)

    def told(self, scan: Scan, pins: Pins) -> tables.Told:
        """What is known of the rows of a table that matter, by the columns as they are stored."""
        if not isinstance(scan, Near):
            return {}
        node = self._table_of(scan)
        told: dict[str, Any] = {"within": stored_limits(scan, dict(scan.limits), node)}
        fields = {column.name: field.name for column, field in zip(scan.columns, scan.fields, strict=True)}
        among = {}
        for column, origins in scan.sought.items():
            stored = self._stored_column(scan, fields[column])
            values = [self._values(origin, pins) for origin in origins]
            if stored is not None and all(values):
                among[stored] = values
        if among:
            columns = scan.fields if node is None else node.stored
            told |= {"among": among, "columns": list(names(columns)), "other": self.other_version(scan, pins)}
        return told

    def other_version(self, scan: Scan, pins: Pins) -> int | None:
        """The version of a table on the other side of the change; files that are in both stay as they are.

        A node's own table has none yet: what stayed the last time will mostly stay.
        """
        if isinstance(scan.operand, Backing):
            return pins.baseline - 1 if pins.baseline else None
        if not isinstance(scan.operand, At) or not {scan.operand.relation} <= pins.pre.keys() & pins.post.keys():
            return None
        other = replace(scan, operand=replace(scan.operand, state="post" if scan.operand.state == "pre" else "pre"))
        return tables.pinned_version(self.selected(other, pins))

    def _values(self, origin: Origin, pins: Pins) -> tables.Told | None:
        """Where the values of an origin are to be found."""
        scan, field = origin.scan, origin.field
        if isinstance(scan.operand, Change | Bag):
            where = self._stored(scan, field, pins)
            return None if where is None else tables.stored_values(where[0], where[1].name)
        column = self._stored_column(scan, field)
        return None if column is None else tables.found_values(self.selected(scan, pins), self.told(scan, pins), column)

    def node(self, relation: str) -> Node | None:
        """The view, block or copy of that name; None of a table of a source, or what is stored inside a view."""
        return self._vdag.nodes.get(relation)

    def _table_of(self, scan: Scan) -> Node | None:
        """The node whose table is scanned as others see it; a source's table, or its own, is read as it is stored."""
        return self._vdag.nodes.get(scan.operand.relation) if isinstance(scan.operand, At) else None

    def _stored_column(self, scan: Scan, field: str) -> str | None:
        node = self._table_of(scan)
        return field if node is None else node.stored_column(field)

    def at(self, relation: str, pinned: Json, columns: Schema | None) -> str:
        """The rows of a leaf or node at a position or version: *columns*, or all."""
        node = self._vdag.nodes.get(relation)
        if node is None:
            source, table = relation.split(".", 1)
            return self._sources[source].snapshot(table, pinned, columns)
        version = node.pinned_version(pinned)
        assert version is not None
        if columns is None:
            return node.select(version)
        return f"SELECT {quoted_list(names(columns))} FROM ({node.select(version)})"

    def stored_names(self, relation: str, columns: Schema) -> tuple[str, ...]:
        """The columns of a table of a source under the names that a stored delta has them by; none of a view."""
        node = self._vdag.nodes.get(relation)
        if node is None:
            return names(columns)
        if not node.copied:
            return ()
        stored = {column.name: s.name for column, s in zip(node.visible, node.stored, strict=True)}
        return tuple(stored[column.name] for column in columns)

    def _change(self, relation: str, delta: Delta, columns: Schema) -> str:
        reading = self.reading_change(relation, delta)
        if reading is None:
            pairs = zip(self.stored_names(relation, columns), names(columns), strict=True)
            shown = ", ".join(f"{quoted(stored)} AS {quoted(name)}" for stored, name in pairs)
            return f"SELECT {shown}, {SIGN} FROM parquet.{quoted(delta.path)}"
        visible = render(reading, lambda scan: tables.stored_delta(delta.path, scan.fields))
        return f"SELECT {quoted_list((*names(columns), SIGN))} FROM ({visible})"

    def reading_change(self, relation: str, delta: Delta) -> Plan | None:
        """The visible changes of a view or block, from those of its stored rows; None of a table, which are stored."""
        node = self._vdag.nodes.get(relation)
        if node is None or node.copied:
            return None
        if delta.form == "copies":
            assert node.block is not None
            return Net(node.block.reading_copies(Scan(Change(relation), "", node.block.body.columns)))
        return Net(node.reading(Scan(Change(relation), "", node.stored)))
