"""Views of the warehouse as views in Spark's own catalog, for programs that know nothing of Strandline.

Once they were made in a schema, they follow: each shows the newest published state. A session whose catalog does not
have the schema, one that lives in memory only for instance, leaves them as they are.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from strandline.catalog import Catalog, StateRecord
from strandline.engine.session import Engine
from strandline.engine.start import first_sentence
from strandline.errors import RefreshError
from strandline.propagate.published import Published
from strandline.sql.names import quoted

_EXPORTED = "exported views"


class ExportedViews:
    """The views in a schema, and which table version each of them reads."""

    def __init__(self, catalog: Catalog, engine: Engine, published: Published) -> None:
        self._catalog = catalog
        self._engine = engine
        self._published = published

    def begin(self, schema: str, newest: StateRecord) -> list[str]:
        """Make the views of a state in *schema*, and remember to keep them up to date; the names made."""
        live = {record.name for record in self._catalog.views.all() if record.kind == "view"}
        shown = _shown(newest, sorted(live))
        for name in shown:
            self._make(schema, name, newest)
        self._note(schema, shown)
        return [f"{schema}.{name}" for name in shown]

    def follow(self, newest: StateRecord | None, views: Sequence[str]) -> None:
        """Replace the views that show an older state, and drop those of views that are gone, where they were made."""
        schema, before = self._noted()
        if schema is None or newest is None:
            return
        shown = _shown(newest, views)
        if shown == before or not self._engine.has_schema(schema):
            return
        try:
            for name in shown:
                if shown[name] != before.get(name):
                    self._make(schema, name, newest)
            for name in before:
                if name not in shown:
                    self._engine.run(f"DROP VIEW IF EXISTS {quoted(schema)}.{quoted(name)}")
        except Exception as error:
            raise RefreshError(
                "EXPORT_FAILED",
                f"state {newest.number} is published, but the views in schema {schema} cannot be replaced and may show "
                f"an earlier one: {first_sentence(error)}; once that is mended, the next change replaces them, or "
                "call export_views again.",
            ) from error
        self._note(schema, shown)

    def _make(self, schema: str, name: str, newest: StateRecord) -> None:
        select = self._published.select(newest.entries[name])
        self._engine.run(f"CREATE OR REPLACE VIEW {quoted(schema)}.{quoted(name)} AS {select}")

    def _noted(self) -> tuple[str | None, dict[str, list[int]]]:
        noted: Any = json.loads(self._catalog.settings.get(_EXPORTED) or "{}")
        return noted.get("schema"), noted.get("views", {})

    def _note(self, schema: str, shown: dict[str, list[int]]) -> None:
        self._catalog.settings.put(_EXPORTED, json.dumps({"schema": schema, "views": shown}))


def _shown(state: StateRecord, views: Sequence[str]) -> dict[str, list[int]]:
    """The table and version that a state shows of each view."""
    return {name: [entry.view_id, entry.version] for name in views if (entry := state.entries.get(name)) is not None}
