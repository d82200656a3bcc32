"""A view as it is to be, and the statement that one came from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from strandline.algebra.block import Block
from strandline.algebra.codec import fingerprint, from_json, to_json
from strandline.algebra.plan import At, scans
from strandline.algebra.schema import names
from strandline.catalog import Json, ViewRecord
from strandline.errors import Origin
from strandline.sql.compile import Compiled
from strandline.sql.ddl import parse_select
from strandline.sql.relations import Relation
from strandline.sql.schedule import Schedule
from strandline.sql.statements import CreateView


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


def shown_schedule(create: CreateView) -> str | None:
    """When a view is to be refreshed, as the catalog has it."""
    return None if create.schedule is None else str(create.schedule)
