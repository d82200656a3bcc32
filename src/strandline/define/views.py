"""Views registered, redefined and dropped in the catalog, each change whole or not at all.

Registering compiles the definition and notes it; it fills no table.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from sqlglot import exp

from strandline.algebra.block import Block
from strandline.algebra.codec import fingerprint, from_json, to_json
from strandline.algebra.plan import At, scans
from strandline.algebra.representation import representation
from strandline.algebra.schema import Schema, names
from strandline.catalog import AddView, Catalog, DropView, Json, RedefineView, ViewRecord
from strandline.cost.model import CostModel
from strandline.define.base_views import BaseViews
from strandline.define.hidden import placed
from strandline.define.multiplicity import multiplicity
from strandline.define.relations import KnownRelations
from strandline.define.storing import Multiplicity, check_settings, stored
from strandline.engine.delta_log import DeltaLog
from strandline.engine.session import Engine
from strandline.errors import Origin, SourceError, SqlError
from strandline.propagate.vdag import Vdag, sorted_by_inputs
from strandline.reasons import Reason
from strandline.sources.protocol import Source
from strandline.sql.compile import Compiled, compile_view
from strandline.sql.ddl import parse_select
from strandline.sql.names import choices
from strandline.sql.references import references
from strandline.sql.relations import Relation, Relations
from strandline.sql.schedule import Schedule
from strandline.sql.statements import CreateView, Query
from strandline.store.layout import new_location
from strandline.store.node import node_of


@dataclass(frozen=True)
class Definition:
    """A view as it is to be: its query, options and compiled form."""

    name: str
    sql: str
    options: Mapping[str, Json]
    compiled: Compiled
    origin: str | None
    base_views: Mapping[str, Mapping[str, Json]] = field(default_factory=dict)
    """What is noted of those blocks that are base views or auxiliary views of one."""
    whole: Mapping[str, Block] = field(default_factory=dict)
    """For a query that is run as written: by table that is not copied, the base view that stands for it."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """What the view's own block reads; hidden blocks stand between it and the relations they cover."""
        if self.compiled.blocks:
            return self.compiled.blocks[-1].inputs
        return tuple(self.whole[name].node if name in self.whole else name for name in self.compiled.inputs)

    @property
    def hidden(self) -> tuple[Block, ...]:
        """The blocks below the view's own."""
        return (*self.whole.values(), *self.compiled.blocks[:-1])

    @property
    def uses(self) -> dict[str, set[str]]:
        """The columns that the view reads, by source table."""
        found: dict[str, set[str]] = {name: set() for name in self.compiled.inputs if "." in name}
        for block in self.compiled.blocks:
            for scan in scans(block.body):
                if isinstance(scan.operand, At) and scan.operand.relation in found:
                    found[scan.operand.relation].update(names(scan.fields))
        noted: Any = self.options.get("uses", {})
        for name, columns in noted.items():
            found[name].update(column.name for column in map(from_json, columns))
        return found

    @property
    def relation(self) -> Relation:
        """The view as others read it."""
        key = self.compiled.blocks[-1].visible_key if self.compiled.blocks else ()
        return Relation(self.name, self.compiled.columns, key)

    @property
    def fingerprint(self) -> str:
        """Equal for definitions that compute the same from the same."""
        if self.compiled.blocks:
            return fingerprint(self.compiled.blocks[-1])
        text = json.dumps([self.sql, [to_json(c) for c in self.compiled.columns]])
        return hashlib.sha256(text.encode()).hexdigest()[:16]


class Definitions:
    """The definitions of one warehouse."""

    def __init__(
        self, catalog: Catalog, engine: Engine, sources: Mapping[str, Source], cost: CostModel, root: str
    ) -> None:
        self._catalog = catalog
        self._engine = engine
        self._sources = sources
        self._cost = cost
        self._root = root

    def compile(self, create: CreateView, defined: Mapping[str, Relation] | None = None) -> Definition:
        """What *create* defines; nothing is registered."""
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
            "schedule": _shown_schedule(create),
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

    def reschedule(self, create: CreateView) -> None:
        """Give a view the schedule of *create*, which is its definition otherwise; nothing is compiled."""
        record = self._catalog.views.get(create.name)
        assert record is not None
        options = {**record.options, "schedule": _shown_schedule(create)}
        self._catalog.views.replace(record.name, options=options, origin=create.origin.file)

    def apply(self, create: CreateView) -> None:
        """Make what *create* defines what the catalog has: a new view, another definition, or other options."""
        definition = self.compile(create)
        record = self._catalog.views.get(create.name)
        if record is None:
            self.register(definition)
        elif record.fingerprint == definition.fingerprint and record.inputs == definition.inputs:
            self._catalog.views.replace(
                record.name, sql=definition.sql, options=definition.options, origin=definition.origin
            )
        else:
            self.redefine(definition)

    def created(self, name: str) -> CreateView | None:
        """The statement that a view came from."""
        record = self._catalog.views.get(name)
        return None if record is None else create_of(record)

    def register(self, definition: Definition) -> ViewRecord:
        """Add a new view, with the hidden blocks and the copies of source tables that it needs."""
        self._note_leaves(definition)
        records = self._catalog.views.apply(
            [*self._copies([definition]), *self._new_blocks(definition), _added(definition)]
        )
        return records[definition.name]

    def redefine(self, definition: Definition) -> ViewRecord:
        """Give an existing view another definition; views on top of it are checked first and follow it."""
        before = self._catalog.views.get(definition.name)
        assert before is not None
        followers = self._followers(before.name, definition)
        self._note_leaves(definition)
        changes: list[AddView | RedefineView | DropView] = [*self._copies([definition, *followers])]
        changes.extend(self._new_blocks(definition))
        changes.append(RedefineView(**vars(_added(definition))))
        for follower in followers:
            changes.extend(self._new_blocks(follower))
            changes.append(RedefineView(**vars(_added(follower))))
        records = self._catalog.views.apply(changes)
        self._drop_orphans()
        return records[definition.name]

    def follow_tables(self) -> None:
        """Begin copies anew whose tables have another key now, or lost a column that no view reads any more."""
        changes: list[RedefineView] = []
        records = self._catalog.views.all()
        for record in records:
            source, _, table = record.name.partition(".")
            info = self._sources[source].tables().get(table) if source in self._sources else None
            if record.kind != "copy" or info is None:
                continue
            read = {c.name for r in records if record.name in r.inputs for c in node_of(r, "").uses(record.name)}
            lost = set(names(record.columns)) - set(names(info.columns))
            if list(info.key) != record.options["key"] or (lost and not lost & read):
                wanted = {*names(record.columns), *info.key}
                columns = tuple(c for c in info.columns if c.name in wanted) or info.columns[:1]
                changes.append(_added_copy(RedefineView, record.name, columns, info.key))
        self._catalog.views.apply(changes)

    def note_columns(self) -> None:
        """Note of each leaf which columns its table has that it did not have when a view was last defined over it."""
        for leaf in self._catalog.leaves.all():
            info = self._sources[leaf.source].tables().get(leaf.table) if leaf.source in self._sources else None
            added = [] if info is None else [n for n in names(info.columns) if n not in names(leaf.columns)]
            note = f"columns that were added later and that no view reads: {', '.join(added)}" if added else None
            if note != leaf.note:
                self._catalog.leaves.put(
                    leaf.source,
                    leaf.table,
                    location=leaf.location,
                    columns=leaf.columns,
                    key=leaf.key,
                    position=leaf.position,
                    note=note,
                )

    def drop(self, name: str) -> None:
        """Drop a view that nothing reads."""
        record = self._catalog.views.get(name)
        if record is None:
            raise unknown_view(name, self.names())
        used = self.users_of(record.name)
        if used:
            raise SqlError(
                "VIEW_IN_USE", f"view {record.name} is read by {', '.join(used)}; drop or redefine what reads it first."
            )
        self._catalog.views.drop(record.name)
        self._drop_orphans()

    def users_of(self, name: str) -> list[str]:
        """The user's views that read *name*, be it through a hidden block."""
        found: list[str] = []
        for dependant in self._catalog.views.dependants(name):
            record = self._catalog.views.get(dependant)
            if record is not None and record.kind != "view":
                found.extend(self.users_of(dependant))
            else:
                found.append(dependant)
        return sorted(set(found))

    def names(self) -> list[str]:
        """The user's views."""
        return [record.name for record in self._catalog.views.all() if record.kind == "view"]

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

    def _followers(self, name: str, definition: Definition) -> list[Definition]:
        """The views on top of a redefined view, compiled against its new columns."""
        defined = {definition.name: definition.relation}
        followers: list[Definition] = []
        for user in self._ordered_users(name):
            record = self._catalog.views.get(user)
            assert record is not None
            create = create_of(record)
            try:
                follower = self.compile(create, defined)
            except SqlError as error:
                raise SqlError(
                    "VIEW_IN_USE",
                    f"view {name} cannot be redefined so: {user}, which reads it, would fail: {error.message}",
                    origin=error.origin,
                ) from error
            defined[user] = follower.relation
            followers.append(follower)
        return followers

    def _ordered_users(self, name: str) -> list[str]:
        users = {name: {name}}
        ordered: list[str] = []
        waiting = [name]
        while waiting:
            for user in self.users_of(waiting.pop(0)):
                if user not in users:
                    users[user] = {user}
                    ordered.append(user)
                    waiting.append(user)
        inputs = {record.name: record.inputs for record in self._catalog.views.all()}
        order = sorted_by_inputs(inputs)
        return sorted(ordered, key=order.index)

    def _new_blocks(self, definition: Definition) -> list[AddView]:
        known = {record.name for record in self._catalog.views.all()}
        return [
            _added_block(block, definition.base_views.get(block.node))
            for block in definition.hidden
            if block.node not in known
        ]

    def _copies(self, definitions: Sequence[Definition]) -> list[AddView | RedefineView]:
        """The copies that views need and that are not there yet, or lack a column of what the views read."""
        used: dict[str, set[str]] = {}
        for definition in definitions:
            for leaf, columns in definition.uses.items():
                if leaf.split(".", 1)[0] in self._sources and self._sources[leaf.split(".", 1)[0]].copied:
                    used.setdefault(leaf, set()).update(columns)
        changes: list[AddView | RedefineView] = []
        for leaf, columns in used.items():
            source, table = leaf.split(".", 1)
            info = self._sources[source].tables()[table]
            known = self._catalog.views.get(leaf)
            held = {column.name for column in known.columns} if known else set()
            wanted = tuple(c for c in info.columns if c.name in columns | held or c.name in info.key)
            # A query such as SELECT count(*) names no column, but rows without columns cannot be stored.
            wanted = wanted or info.columns[:1]
            if known is None:
                changes.append(_added_copy(AddView, leaf, wanted, info.key))
            elif known.columns != wanted or known.options["key"] != list(info.key):
                changes.append(_added_copy(RedefineView, leaf, wanted, info.key))
        return changes

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

    def _drop_orphans(self) -> None:
        """Hidden blocks and copies that no view reads any more."""
        while True:
            records = self._catalog.views.all()
            read = {name for record in records for name in record.inputs}
            orphans = [r.name for r in records if r.kind != "view" and r.name not in read]
            if not orphans:
                return
            self._catalog.views.apply([DropView(name) for name in orphans])

    def _note_leaves(self, definition: Definition) -> None:
        """Remember the tables that views read, as they are now."""
        for name in definition.compiled.inputs:
            source_name, _, table = name.partition(".")
            if not table:
                continue
            info = self._sources[source_name].tables()[table]
            known = self._catalog.leaves.get(name)
            self._catalog.leaves.put(
                source_name,
                table,
                location=info.location,
                columns=info.columns,
                key=info.key,
                position=known.position if known else None,
            )


def create_of(record: ViewRecord) -> CreateView:
    """The statement that a record came from."""
    options: Any = record.options
    origin = Origin(record.origin or "<sql>")
    return CreateView(
        record.name,
        parse_select(record.sql, origin.file),
        origin,
        comment=options["comment"],
        cluster_by=tuple(options["cluster_by"]),
        properties=tuple(options["properties"].items()),
        policy=options["policy"],
        consistency=options["consistency"],
        schedule=Schedule.parse(options.get("schedule") or ""),
    )


def _shown_schedule(create: CreateView) -> str | None:
    return None if create.schedule is None else str(create.schedule)


def unknown_view(name: str, known: Sequence[str]) -> SqlError:
    """The error for a view that is not there."""
    return SqlError("UNKNOWN_VIEW", f"there is no view {name}; there are: {choices(known, name)}.")


def _check_clustering(create: CreateView, compiled: Compiled) -> None:
    known = {column.name.lower() for column in compiled.columns}
    for name in create.cluster_by:
        if name.lower() not in known:
            raise SqlError(
                "UNKNOWN_COLUMN",
                f"CLUSTER BY names {name}, and the view has: {choices((c.name for c in compiled.columns), name)}.",
                origin=create.origin,
            )


def _added(definition: Definition) -> AddView:
    compiled = definition.compiled
    return AddView(
        name=definition.name,
        kind="view",
        sql=definition.sql,
        options=definition.options,
        definition={
            **_noted(compiled.blocks[-1] if compiled.blocks else None, compiled.reason),
            "loose": list(compiled.loose),
            "notes": [{"code": note.code, "text": note.text} for note in compiled.notes],
        },
        fingerprint=definition.fingerprint,
        columns=compiled.columns,
        inputs=definition.inputs,
        location=new_location(definition.name, "view"),
        origin=definition.origin,
    )


_Change = TypeVar("_Change", AddView, RedefineView)


def _added_copy(change: type[_Change], leaf: str, columns: Schema, key: Sequence[str]) -> _Change:
    text = json.dumps([leaf, [to_json(c) for c in columns], list(key)])
    return change(
        name=leaf,
        kind="copy",
        sql="",
        options={"policy": "AUTO", "key": list(key)},
        definition=_noted(None, None),
        fingerprint=hashlib.sha256(text.encode()).hexdigest()[:16],
        columns=columns,
        inputs=(),
        location=new_location(leaf, "copy"),
        origin=None,
    )


def _added_block(block: Block, base_view: Mapping[str, Json] | None) -> AddView:
    """A hidden block, or, with what is noted of it, a base view; that comes after the auxiliary views it keeps."""
    kept = (base_view or {}).get("auxiliary", {})
    assert isinstance(kept, dict)
    return AddView(
        name=block.node,
        kind="block" if base_view is None else "base",
        sql="",
        options={"policy": "AUTO"} if base_view is None else base_view,
        definition=_noted(block, None),
        fingerprint=fingerprint(block),
        columns=block.visible,
        inputs=(*block.inputs, *(str(name) for name in kept.values())),
        location=new_location(block.node, "block"),
        origin=None,
    )


def _noted(block: Block | None, reason: Reason | None) -> dict[str, Json]:
    return {
        "layout": LAYOUT,
        "block": None if block is None else to_json(block),
        "reason": None if reason is None else {"code": reason.code, "text": reason.text},
    }


LAYOUT = 1
"""Version of the way nodes are stored; noted with each definition."""


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
