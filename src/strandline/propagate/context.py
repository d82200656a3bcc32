"""What the steps of a refresh work with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from strandline.algebra.plan import Project
from strandline.algebra.scalar import Col
from strandline.catalog import Catalog, Json
from strandline.engine.session import Engine
from strandline.ingest.uncopied import UncopiedSource
from strandline.propagate.binding import Binding, Pins
from strandline.propagate.groups import Groups
from strandline.propagate.vdag import Vdag
from strandline.sources.protocol import Source
from strandline.sql.ddl import parse_select
from strandline.sql.names import quoted
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
    groups: Groups = field(default_factory=dict)
    parallel: int = 1
    """How many steps may run at the same time."""

    @cached_property
    def binding(self) -> Binding:
        """How operands are read."""
        return Binding(self.vdag, self.sources, self.engine.storage_options)

    def contents(self, node: Node, pins: Mapping[str, Json]) -> str:
        """The rows to store for *node*, from inputs at *pins*.

        A compiled node is filled by its compiled form, because only that yields the hidden columns; any other by the
        query as the user wrote it.
        """
        if node.block is not None:
            pinned = Pins(node, None, pins, pins, {}, {})
            return render(node.block.contents, lambda scan: self.binding.scan(scan, pinned))
        return renamed_select(self.as_written(node, pins), node.visible, node.stored)

    def as_written(self, node: Node, pins: Mapping[str, Json], instead: Mapping[str, str] | None = None) -> str:
        """The user's own query over inputs at *pins*; *instead* has a SELECT of those that are read otherwise."""
        query = parse_select(node.record.sql, node.record.origin or node.name)

        given = {**self._whole_tables(node, pins), **(instead or {})}

        def pinned(relation: Relation) -> str:
            return f"({given.get(relation.name) or self._shown(relation.name, pins[relation.name])})"

        return replaced(query, self.relations, pinned)

    def asked_by(self, node: Node) -> tuple[str, ...]:
        """The tables without copies that a view's own query names: base views hold what is needed of them."""
        below = [self.vdag.nodes[name] for name in node.inputs if name in self.vdag.nodes]
        own = [leaf for each in below if each.base for leaf in each.leaves if self._is_asked(leaf)]
        hidden = [leaf for each in below if each.record.kind == "block" for leaf in self.asked_by(each)]
        return tuple(dict.fromkeys((*own, *hidden)))

    def _whole_tables(self, node: Node, pins: Mapping[str, Json]) -> dict[str, str]:
        """The tables for which base views stand, in a query that is run as written."""
        found = {}
        for leaf, name in node.whole_tables.items():
            base = self.vdag.nodes[name]
            assert base.block is not None and isinstance(base.block.body, Project)
            shown = [
                f"{quoted(output.name)} AS {quoted(output.value.name.partition('.')[2])}"
                for output in base.block.body.outputs
                if isinstance(output.value, Col)
            ]
            found[leaf] = f"SELECT {', '.join(shown)} FROM ({self._shown(name, pins[name])})"
        return found

    def _is_asked(self, leaf: str) -> bool:
        return isinstance(self.sources.get(leaf.split(".", 1)[0]), UncopiedSource)

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
