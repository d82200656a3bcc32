"""Views registered, redefined and dropped in the catalog, each change whole or not at all.

Registering notes a definition; it fills no table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from strandline.algebra.schema import names
from strandline.catalog import AddView, Catalog, DropView, RedefineView, ViewRecord
from strandline.define.compiling import Compiler
from strandline.define.definition import Definition, create_of, shown_schedule
from strandline.define.noted import added, added_block, added_copy
from strandline.errors import SqlError
from strandline.propagate.vdag import sorted_by_inputs
from strandline.sources.protocol import Source
from strandline.sql.names import choices
from strandline.sql.statements import CreateView
from strandline.store.node import node_of


class Definitions:
    """The definitions of one warehouse."""

    def __init__(self, catalog: Catalog, sources: Mapping[str, Source], compiler: Compiler) -> None:
        self._catalog = catalog
        self._sources = sources
        self._compiler = compiler

    def reschedule(self, create: CreateView) -> None:
        """Give a view the schedule of *create*, which is its definition otherwise; nothing is compiled."""
        record = self._catalog.views.get(create.name)
        assert record is not None
        options = {**record.options, "schedule": shown_schedule(create)}
        self._catalog.views.replace(record.name, options=options, origin=create.origin.file)

    def apply(self, create: CreateView) -> None:
        """Make what *create* defines what the catalog has: a new view, another definition, or other options."""
        definition = self._compiler.compile(create)
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
            [*self._copies([definition]), *self._new_blocks(definition), added(definition)]
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
        changes.append(RedefineView(**vars(added(definition))))
        for follower in followers:
            changes.extend(self._new_blocks(follower))
            changes.append(RedefineView(**vars(added(follower))))
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
                changes.append(added_copy(RedefineView, record.name, columns, info.key))
        self._catalog.views.apply(changes)

    def note_columns(self) -> None:
        """Note of each leaf which columns its table has that it did not have when a view was last defined over it."""
        for leaf in self._catalog.leaves.all():
            info = self._sources[leaf.source].tables().get(leaf.table) if leaf.source in self._sources else None
            later = [] if info is None else [n for n in names(info.columns) if n not in names(leaf.columns)]
            note = f"columns that were added later and that no view reads: {', '.join(later)}" if later else None
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

    def _followers(self, name: str, definition: Definition) -> list[Definition]:
        """The views on top of a redefined view, compiled against its new columns."""
        defined = {definition.name: definition.relation}
        followers: list[Definition] = []
        for user in self._ordered_users(name):
            record = self._catalog.views.get(user)
            assert record is not None
            create = create_of(record)
            try:
                follower = self._compiler.compile(create, defined)
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
            added_block(block, definition.base_views.get(block.node))
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
                changes.append(added_copy(AddView, leaf, wanted, info.key))
            elif known.columns != wanted or known.options["key"] != list(info.key):
                changes.append(added_copy(RedefineView, leaf, wanted, info.key))
        return changes

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


def unknown_view(name: str, known: Sequence[str]) -> SqlError:
    """The error for a view that is not there."""
    return SqlError("UNKNOWN_VIEW", f"there is no view {name}; there are: {choices(known, name)}.")
