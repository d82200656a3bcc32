"""Filling base views from the tables themselves, all of them in the same snapshot of each source."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from strandline.algebra.plan import Scan
from strandline.algebra.schema import names
from strandline.catalog import Catalog, Json, NewVersion
from strandline.engine.session import Engine
from strandline.ingest.baselines import jdbc_rows
from strandline.ingest.uncopied import FILLED, NOTED, UncopiedSource
from strandline.integrate.view import relation_of
from strandline.reasons import Reason
from strandline.sources.protocol import Position, Source
from strandline.sources.questions import HeldSnapshot
from strandline.sql.names import quoted_list
from strandline.sql.render import render
from strandline.store.node import Node
from strandline.store.tables import fill, make_ready


class Filling:
    """Fills base views; sources are held from their first use until it is closed."""

    def __init__(self, catalog: Catalog, engine: Engine, sources: Mapping[str, Source], keep_states: str) -> None:
        self._catalog = catalog
        self._engine = engine
        self._sources = sources
        self._keep_states = keep_states
        self._snapshots: dict[str, HeldSnapshot] = {}
        self._positions: dict[str, Position] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._let_go()

    def fill(self, node: Node, reason: Reason, step_id: str) -> NewVersion:
        """Compute the contents of *node* from its tables; what their logs hold from now on is applied to that.

        An error may end a snapshot, so that the base views after one that fails are filled in others.
        """
        try:
            return self._filled(node, reason, step_id)
        except BaseException:
            self._let_go()
            raise

    def _filled(self, node: Node, reason: Reason, step_id: str) -> NewVersion:
        assert node.block is not None
        base = self._catalog.versions.baseline(node.record.id)
        selects: dict[str, str] = {}
        positions: dict[str, Position] = {}
        noted: dict[str, Json] = {}
        make_ready(self._engine, node, None if base is None else base.version, step_id)
        with ExitStack() as stack:
            for number, leaf in enumerate(node.leaves):
                source, table = self._sources[leaf.split(".", 1)[0]], leaf.split(".", 1)[1]
                if isinstance(source, UncopiedSource):
                    copy = self._held(source).copy(table, names(node.uses(leaf)))
                    given = (
                        source.inner.parsers(table),
                        names(node.uses(leaf)),
                        f"{step_id.replace('-', '_')}_{number}",
                    )
                    selects[leaf] = stack.enter_context(jdbc_rows(self._engine, copy, *given))
                    noted[leaf] = source.noted(table, copy.details)
                    positions[leaf] = self._positions[source.name]
                else:
                    positions[leaf] = self._version(source, leaf)
                    selects[leaf] = source.snapshot(table, positions[leaf], node.uses(leaf))

            def bound(scan: Scan) -> str:
                return f"SELECT {quoted_list(names(scan.fields))} FROM ({selects[relation_of(scan)]})"

            version = fill(self._engine, node, render(node.block.contents, bound), self._keep_states, step_id)
        inputs: dict[str, Json] = {
            **positions,
            "@definition": node.record.fingerprint,
            NOTED: noted,
            FILLED: dict(reason.to_dict()),
        }
        return NewVersion(node.record.id, version, inputs, positions)

    def _held(self, source: UncopiedSource) -> HeldSnapshot:
        if source.name not in self._snapshots:
            self._snapshots[source.name] = source.inner.hold()
            self._positions[source.name] = source.start(self._snapshots[source.name].seen)
        return self._snapshots[source.name]

    def _let_go(self) -> None:
        for snapshot in self._snapshots.values():
            snapshot.close()
        self._snapshots.clear()
        self._positions.clear()

    def _version(self, source: Source, leaf: str) -> Position:
        if leaf not in self._positions:
            self._positions[leaf] = source.position(leaf.split(".", 1)[1])
        return self._positions[leaf]
