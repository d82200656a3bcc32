"""A node of the view DAG with its table: a user's view, a hidden block, a base view, or a copy of a source table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from strandline.algebra.block import Block
from strandline.algebra.codec import from_json
from strandline.algebra.constraints import origins
from strandline.algebra.near import Limits, Pairs
from strandline.algebra.plan import At, Backing, Output, Plan, Project, Scan, scans
from strandline.algebra.scalar import Col
from strandline.algebra.schema import Schema, names
from strandline.catalog import Json, ViewRecord, understanding
from strandline.engine import tables
from strandline.reasons import Reason
from strandline.sql.names import quoted
from strandline.sql.render import render
from strandline.sql.schedule import Schedule
from strandline.sql.shapes import storable


@dataclass(frozen=True)
class Node:
    """What the catalog says of a view, block or copy.

    A view without a *block* cannot be maintained incrementally, for *reason*: its query is run as written, and its rows
    are stored as they come. A copy is named like the table it is a copy of, and has no block either.
    """

    record: ViewRecord
    block: Block | None
    reason: Reason | None
    path: str

    @property
    def name(self) -> str:
        return self.record.name

    @property
    def hidden(self) -> bool:
        return self.record.kind != "view"

    @property
    def copied(self) -> bool:
        """Whether the node is the copy of a source table."""
        return self.record.kind == "copy"

    @property
    def base(self) -> bool:
        """Whether the node is a base view over tables that are not copied, or an auxiliary view of one."""
        return self.record.kind == "base"

    @property
    def auxiliary(self) -> dict[str, str]:
        """The auxiliary views of a base view, by the names of the bags that they hold."""
        found: Any = self.record.options.get("auxiliary", {})
        return dict(found)

    @property
    def whole_tables(self) -> dict[str, str]:
        """Of a query that is run as written: the tables that are not copied, and the base views that stand for them."""
        found: Any = self.record.options.get("whole", {})
        return dict(found)

    @property
    def leaves(self) -> tuple[str, ...]:
        """The tables of sources that the node reads itself."""
        return tuple(name for name in self.inputs if "." in name)

    @property
    def key(self) -> tuple[str, ...]:
        """Stored columns that identify a stored row; empty for a bag."""
        if self.copied:
            visible: Any = self.record.options["key"]
            stored = {column.name: s.name for column, s in zip(self.visible, self.stored, strict=True)}
            return tuple(stored[name] for name in visible)
        return self.block.key if self.block is not None else ()

    @property
    def log_path(self) -> str:
        """Where the change log of a copy is."""
        root, _, name = self.path.rpartition("/copies/")
        return f"{root}/logs/{name}"

    @property
    def inputs(self) -> tuple[str, ...]:
        return self.record.inputs

    @property
    def visible(self) -> Schema:
        return self.record.columns

    @property
    def stored(self) -> Schema:
        return self.block.stored if self.block is not None else stored_as_written(self.visible)

    @property
    def policy(self) -> str:
        return str(self.record.options.get("policy", "AUTO"))

    @property
    def schedule(self) -> Schedule | None:
        """How often the view is to be refreshed; None if it follows changes as they arrive."""
        return Schedule.parse(str(self.record.options.get("schedule") or ""))

    @property
    def loose(self) -> tuple[str, ...]:
        """Visible columns whose values two correct computations may give differently."""
        definition: Any = self.record.definition
        return tuple(definition.get("loose", ()))

    @property
    def notes(self) -> tuple[Reason, ...]:
        """What a reader should know of the way the view is maintained."""
        definition: Any = self.record.definition
        return tuple(Reason(note["code"], note["text"]) for note in definition.get("notes", ()))

    @property
    def cluster_by(self) -> tuple[str, ...]:
        listed: Any = self.record.options.get("cluster_by", [])
        return tuple(listed)

    @property
    def properties(self) -> dict[str, str]:
        """The table properties that the user asked for; those of our own say how the table is made."""
        asked: Any = self.record.options.get("properties", {})
        return {name: value for name, value in asked.items() if not name.lower().startswith("strandline.")}

    def setting(self, name: str) -> str | None:
        """What the user asked for by the property ``strandline.<name>``."""
        asked: Any = self.record.options.get("properties", {})
        return next((str(v).lower() for k, v in asked.items() if k.lower() == f"strandline.{name}"), None)

    @property
    def stored_as(self) -> str:
        """The representation of the view's rows and why it was chosen, as noted at CREATE; empty if it was not."""
        noted: Any = self.record.options.get("stored", {})
        return "; ".join(text for text in (noted.get("as"), noted.get("why")) if text)

    def uses(self, leaf: str) -> Schema:
        """The columns of a leaf that the node reads, with the types they had when it was defined."""
        if self.block is None:
            noted: Any = self.record.options.get("uses", {})
            return tuple(from_json(column) for column in noted.get(leaf, []))
        read = [s for s in scans(self.block.body) if isinstance(s.operand, At) and s.operand.relation == leaf]
        return tuple({f.name: f for scan in read for f in scan.fields}.values())

    def pin(self, version: int) -> Json:
        """A version of this very table: a view that is defined anew has another one."""
        return {"view": self.record.id, "version": version}

    def pinned_version(self, pin: Json) -> int | None:
        """The version that *pin* names, or None if it is one of another table."""
        if not isinstance(pin, dict) or pin["view"] != self.record.id:
            return None
        version = pin["version"]
        assert isinstance(version, int)
        return version

    def backing(self, state: int) -> Scan:
        """All stored rows at a version."""
        return Scan(Backing(self.name, state), "", self.stored)

    def select(self, version: int) -> str:
        """The visible rows at a version."""
        return render(self.reading(self.backing(version)), lambda scan: tables.select(self.path, version, scan.fields))

    def stored_column(self, name: str) -> str | None:
        """The stored column that a visible one is; None if it is computed."""
        if self.copied:
            return next(s.name for column, s in zip(self.visible, self.stored, strict=True) if column.name == name)
        found = origins(self.reading(Scan(At(self.name), "", self.stored))).get(name)
        return None if found is None else found.field

    def reading(self, stored: Plan) -> Plan:
        """The visible rows, from stored ones."""
        if self.block is not None:
            return self.block.reading(stored)
        return renaming(stored, self.visible)


def stored_limits(scan: Scan, limits: Limits, node: Node | None) -> dict[str, Pairs]:
    """Within what columns lie that are asked of a table, as it is stored: that of *node*, or of a source."""
    fields = {column.name: field.name for column, field in zip(scan.columns, scan.fields, strict=True)}
    found = {}
    for column, ranges in limits.items():
        stored = fields[column] if node is None else node.stored_column(fields[column])
        if stored is not None and ranges.pairs:
            found[stored] = ranges.values
    return found


def passing_node(name: str, body: Plan) -> Node:
    """A node for the length of one refresh: it has no table, and the catalog does not know it."""
    block = Block(name, body)
    record = ViewRecord(0, name, "block", "", {}, None, "", block.visible, block.inputs, "", None, datetime.now(UTC))
    return Node(record, block, None, "")


def stored_as_written(columns: Schema) -> Schema:
    """Columns under names that Delta takes, for a query that is run as written."""
    return tuple(c if storable(c.name) else replace(c, name=f"__column_{i + 1}") for i, c in enumerate(columns))


def renaming(stored: Plan, columns: Schema) -> Plan:
    """Stored rows under the names that the user gave."""
    if names(stored.columns) == names(columns):
        return stored
    outputs = tuple(Output(c, Col(s.name)) for c, s in zip(columns, stored.columns, strict=True))
    return Project(stored, outputs)


def renamed_select(sql: str, columns: Schema, stored: Schema) -> str:
    """The rows of *sql*, which has *columns*, under the names they are stored by."""
    items = [f"{quoted(c.name)} AS {quoted(s.name)}" for c, s in zip(columns, stored, strict=True)]
    return f"SELECT {', '.join(items)} FROM ({sql})"


def node_of(record: ViewRecord, root: str) -> Node:
    """The node that a catalog record describes; its table lies below *root*."""
    definition: Any = record.definition
    with understanding("views", f"the definition in row {record.id} (the {record.kind} {record.name})"):
        block = None if definition["block"] is None else from_json(definition["block"])
        told = definition["reason"]
        reason = None if told is None else Reason(told["code"], told["text"])
    return Node(record, block, reason, f"{root.rstrip('/')}/{record.location}")
