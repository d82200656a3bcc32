"""What the operands of a node's terms stand for in one refresh, as SQL over pinned versions and stored deltas."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from strandline.algebra.plan import At, Backing, Bag, Change, Net, Scan
from strandline.algebra.schema import Schema, names
from strandline.catalog import Json
from strandline.engine import tables
from strandline.propagate.vdag import Vdag
from strandline.sources.protocol import Source
from strandline.sql.names import quoted, quoted_list
from strandline.sql.render import SIGN, render
from strandline.store.deltas import Delta
from strandline.store.node import Node


@dataclass(frozen=True)
class Pins:
    """For one node: what it has seen of its inputs (*pre*), and what it is to show (*post*)."""

    node: Node
    baseline: int | None
    pre: Mapping[str, Json]
    post: Mapping[str, Json]
    deltas: Mapping[str, Delta]
    bags: Mapping[str, str]


class Binding:
    """Binds scans of leaves, nodes, deltas and stored bags."""

    def __init__(self, vdag: Vdag, sources: Mapping[str, Source]) -> None:
        self._vdag = vdag
        self._sources = sources

    def scan(self, scan: Scan, pins: Pins) -> str:
        """The SELECT that yields the fields of *scan*, with ``__sign`` for a change."""
        match scan.operand:
            case At(relation, state):
                pinned = pins.pre if state == "pre" else pins.post
                return self.at(relation, pinned[relation], scan.fields)
            case Change(relation):
                return self._change(relation, pins.deltas[relation], scan.fields)
            case Backing():
                assert pins.baseline is not None
                return tables.select(pins.node.path, pins.baseline, scan.fields)
            case Bag(name):
                return f"SELECT {quoted_list(names(scan.fields))} FROM parquet.{quoted(pins.bags[name])}"

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

    def _change(self, relation: str, delta: Delta, columns: Schema) -> str:
        node = self._vdag.nodes.get(relation)
        if node is None:
            return tables.stored_delta(delta.path, columns)
        if delta.form == "copies":
            assert node.block is not None
            scan = Scan(Change(relation), "", node.block.body.columns)
            reading = node.block.reading_copies(scan)
        else:
            scan = Scan(Change(relation), "", node.stored)
            reading = node.reading(scan)
        visible = render(Net(reading), lambda _: tables.stored_delta(delta.path, scan.fields))
        return f"SELECT {quoted_list((*names(columns), SIGN))} FROM ({visible})"
