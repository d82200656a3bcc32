"""What the steps of a refresh work with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from strandline.catalog import Catalog, Json
from strandline.engine.session import Engine
from strandline.propagate.binding import Binding, Pins
from strandline.propagate.vdag import Vdag
from strandline.sources.protocol import Source
from strandline.sql.ddl import parse_select
from strandline.sql.references import replaced
from strandline.sql.relations import Relation, Relations
from strandline.sql.render import render
from strandline.store.node import Node, node_of, renamed_select


@dataclass(frozen=True)
class Context:
    """One warehouse as it stands."""

    catalog: Catalog
    engine: Engine
    vdag: Vdag
    sources: Mapping[str, Source]
    relations: Relations
    root: str
    keep_states: str

    @property
    def binding(self) -> Binding:
        """How operands are read."""
        return Binding(self.vdag, self.sources)

    def contents(self, node: Node, pins: Mapping[str, Json]) -> str:
        """The rows to store for *node*, from inputs at *pins*.

        A compiled node is filled by its compiled form, because only that yields the hidden columns; any other by the
        query as the user wrote it.
        """
        if node.block is not None:
            pinned = Pins(node, None, pins, pins, {}, {})
            return render(node.block.contents, lambda scan: self.binding.scan(scan, pinned))
        return renamed_select(self.as_written(node, pins), node.visible, node.stored)

    def as_written(self, node: Node, pins: Mapping[str, Json]) -> str:
        """The user's own query over inputs at *pins*."""
        query = parse_select(node.record.sql, node.record.origin or node.name)

        def pinned(relation: Relation) -> str:
            return f"({self._shown(relation.name, pins[relation.name])})"

        return replaced(query, self.relations, pinned)

    def _shown(self, relation: str, pin: Json) -> str:
        """What a pin shows; that of a node may name one that was defined anew since."""
        view = pin.get("view") if isinstance(pin, dict) else None
        record = self.catalog.views.by_id(view) if isinstance(view, int) else None
        if record is None:
            return self.binding.at(relation, pin, None)
        node = node_of(record, self.root)
        version = node.pinned_version(pin)
        assert version is not None
        return node.select(version)
