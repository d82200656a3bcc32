"""The relations of a warehouse: tables of its sources, and its views."""

from __future__ import annotations

from collections.abc import Mapping

from strandline.catalog import Catalog
from strandline.sources.protocol import Source, TableInfo
from strandline.sql.relations import Relation
from strandline.store.node import node_of


class KnownRelations:
    """Names are looked up without regard to case. *defined* stands in front of the catalog."""

    def __init__(
        self, catalog: Catalog, sources: Mapping[str, Source], defined: Mapping[str, Relation] | None = None
    ) -> None:
        self._sources = sources
        self._tables: dict[str, Mapping[str, TableInfo]] = {}
        self._views: dict[str, Relation] = {}
        for record in catalog.views.all():
            if record.kind == "copy":
                continue
            node = node_of(record, "")
            key = node.block.visible_key if node.block is not None else ()
            self._views[record.name.lower()] = Relation(record.name, record.columns, key)
        for relation in (defined or {}).values():
            self._views[relation.name.lower()] = relation

    def find(self, name: str) -> Relation | None:
        """The view or table of that name."""
        if "." not in name:
            return self._views.get(name.lower())
        source_name, table = name.split(".", 1)
        source = next((s for s in self._sources if s.lower() == source_name.lower()), None)
        if source is None:
            return None
        info = next((i for t, i in self._known(source).items() if t.lower() == table.lower()), None)
        return None if info is None else Relation(f"{source}.{info.name}", info.columns, info.key)

    def names(self) -> list[str]:
        """All views and tables."""
        views = [relation.name for relation in self._views.values() if not relation.name.startswith("block ")]
        return views + [f"{source}.{table}" for source in self._sources for table in self._known(source)]

    def _known(self, source: str) -> Mapping[str, TableInfo]:
        if source not in self._tables:
            self._tables[source] = self._sources[source].tables()
        return self._tables[source]
