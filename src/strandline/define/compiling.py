"""Statements compiled to definitions: what they ask for is checked against what there is; nothing is registered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from sqlglot import exp

from strandline.algebra.codec import to_json
from strandline.algebra.representation import representation
from strandline.algebra.schema import Schema
from strandline.catalog import Catalog, Json
from strandline.cost.model import CostModel
from strandline.define.base_views import BaseViews
from strandline.define.definition import Definition, shown_schedule
from strandline.define.hidden import placed
from strandline.define.multiplicity import multiplicity
from strandline.define.relations import KnownRelations
from strandline.define.storing import Multiplicity, check_settings, stored
from strandline.engine.delta_log import DeltaLog
from strandline.engine.session import Engine
from strandline.errors import SourceError, SqlError
from strandline.propagate.vdag import Vdag, sorted_by_inputs
from strandline.sources.protocol import Source
from strandline.sql.compile import Compiled, compile_view
from strandline.sql.names import choices
from strandline.sql.references import references
from strandline.sql.relations import Relation, Relations
from strandline.sql.statements import CreateView, Query
from strandline.store.node import node_of


class Compiler:
    """Compiles for one warehouse."""

    def __init__(
        self, catalog: Catalog, engine: Engine, sources: Mapping[str, Source], cost: CostModel, root: str
    ) -> None:
        self._catalog = catalog
        self._engine = engine
        self._sources = sources
        self._cost = cost
        self._root = root

    def compile(self, create: CreateView, defined: Mapping[str, Relation] | None = None) -> Definition:
        """What *create* defines; views of *defined* are read as they are to be, not as the catalog has them."""
        relations = KnownRelations(self._catalog, self._sources, defined)
        self._check_cycle(create, relations)
        self._check_columns(create, relations)
        settings = check_settings(create)
        exact = settings.get("strandline.exact_floats") == "true"
        compiled = compile_view(create.name, create.query, relations, self._engine.analyse, exact_floats=exact)
        _check_clustering(create, compiled)
        if compiled.reason is not None and create.policy == "INCREMENTAL STRICT":
            raise SqlError(
                "NOT_INCREMENTAL",
                f"view {create.name} is declared INCREMENTAL STRICT, and its query is not maintained incrementally: "
                f"{compiled.reason}; change the query, or declare it INCREMENTAL.",
                origin=create.origin,
            )
        options: dict[str, Json] = {
            "policy": create.policy,
            "consistency": create.consistency,
            "comment": create.comment,
            "cluster_by": list(create.cluster_by),
            "properties": dict(create.properties),
            "schedule": shown_schedule(create),
        }
        based = BaseViews(self._catalog, self._sources, relations).of(
            create, compiled, settings.get("strandline.algorithm", "auto"), lambda: _uses(create.query, relations)
        )
        compiled = based.compiled
        if not compiled.blocks:
            used = _uses(create.query, relations)
            options["uses"] = {name: [to_json(column) for column in columns] for name, columns in used.items()}
            options["whole"] = {name: block.node for name, block in based.whole.items()}
        if compiled.blocks:
            asked = settings.get("strandline.hidden", "auto")
            hidden = placed(compiled.blocks, asked, self._state_of(create), self._rows, self._cost)
            compiled = replace(compiled, blocks=hidden.blocks, notes=(*compiled.notes, *hidden.notes))
        kept = self._representation(create)
        found = stored(create, compiled, kept, lambda: self._multiplicity(create, compiled), self._cost)
        options["stored"] = {"as": found.chosen, "why": found.why}
        origin = create.origin.file
        return Definition(create.name, create.query.sql, options, found.compiled, origin, based.options, based.whole)

    def _state_of(self, create: CreateView) -> Callable[[str], str | None]:
        """Where a hidden block of the view is now, if that is settled: only another definition changes it."""
        record = self._catalog.views.get(create.name)
        same = record is not None and record.sql == create.query.sql

        def state(block: str) -> str | None:
            if self._catalog.views.get(block) is not None:
                return "stored"
            return "in place" if same else None

        return state

    def _rows(self, name: str) -> int | None:
        """About how many rows a relation has now."""
        record = self._catalog.views.get(name)
        if record is not None:
            log = DeltaLog(node_of(record, self._root).path, self._engine.storage_options)
            return log.size().rows if log.exists() else None
        source, _, table = name.partition(".")
        if source not in self._sources or self._sources[source].copied:
            return None
        try:
            return self._sources[source].size(table, self._sources[source].position(table)).rows
        except SourceError:
            return None

    def _representation(self, create: CreateView) -> tuple[str, str] | None:
        """How the view is stored now and why, if it is the same query: only another definition changes that."""
        record = self._catalog.views.get(create.name)
        if record is None or record.sql != create.query.sql:
            return None
        node = node_of(record, self._root)
        if node.block is None or representation(node.block) not in ("dup", "count"):
            return None
        return representation(node.block), node.stored_as.partition("; ")[2]

    def _multiplicity(self, create: CreateView, compiled: Compiled) -> Multiplicity | None:
        """The rows of a new view, counted where it is filled now, from inputs that can be read and are not small."""
        if create.with_no_data:
            return None
        nodes = Vdag(node_of(record, self._root) for record in self._catalog.views.all())
        return multiplicity(self._engine, self._catalog, nodes, self._sources, compiled.blocks[-1])

    def _check_cycle(self, create: CreateView, relations: Relations) -> None:
        inputs = {record.name: list(record.inputs) for record in self._catalog.views.all()}
        own = [name for name in inputs if name.lower() == create.name.lower()] or [create.name]
        try:
            read = [reference.relation.name for reference in references(create.query, relations)]
        except SqlError:
            if not _reads_itself(create):
                raise
            read = own
        sorted_by_inputs({**inputs, own[0]: read})

    def _check_columns(self, create: CreateView, relations: Relations) -> None:
        """What cannot be followed, or held by Spark, is refused here, not in the middle of a refresh."""
        words = {token.name.lower() for token in create.query.tree.find_all(exp.Identifier)}
        star = _reads_everything(create.query)
        for reference in references(create.query, relations):
            source, _, table = reference.relation.name.partition(".")
            if not table:
                continue
            info = self._sources[source].tables()[table]
            if info.problem is not None:
                raise SqlError(
                    "NO_REPLICA_IDENTITY", f"{reference.relation.name}: {info.problem}", origin=create.origin
                )
            for column, why in info.unusable.items():
                if column.lower() in words or star or column in info.key:
                    raise SqlError("UNSUPPORTED_TYPE", why, origin=create.origin)


def _check_clustering(create: CreateView, compiled: Compiled) -> None:
    known = {column.name.lower() for column in compiled.columns}
    for name in create.cluster_by:
        if name.lower() not in known:
            raise SqlError(
                "UNKNOWN_COLUMN",
                f"CLUSTER BY names {name}, and the view has: {choices((c.name for c in compiled.columns), name)}.",
                origin=create.origin,
            )


def _uses(query: Query, relations: Relations) -> dict[str, Schema]:
    """For a query that is run as written: the columns of its leaves that it can be seen to name."""
    words = {token.name.lower() for token in query.tree.find_all(exp.Identifier)}
    everything = _reads_everything(query)
    found: dict[str, Schema] = {}
    for reference in references(query, relations):
        relation = reference.relation
        if "." in relation.name:
            found[relation.name] = tuple(c for c in relation.columns if everything or c.name.lower() in words)
    return found


def _reads_everything(query: Query) -> bool:
    """Whether the query has a ``*`` for columns; that of ``count(*)`` stands for rows."""
    return any(not isinstance(star.parent, exp.Count) for star in query.tree.find_all(exp.Star))


def _reads_itself(create: CreateView) -> bool:
    return any(
        table.name.lower() == create.name.lower() and not table.db for table in create.query.tree.find_all(exp.Table)
    )
