"""A maintenance query over the current state of a source whose tables can be pinned."""

from __future__ import annotations

from collections.abc import Callable

from strandline.algebra.plan import At, Plan, Scan, relations
from strandline.sources.protocol import Answer, Position, Source
from strandline.sql.render import render


def pinned_query(source: Source, plan: Plan, position: Callable[[str], Position]) -> Answer:
    """*plan* over the tables it names, each at its newest *position*; the answer shows exactly those."""
    tables = {relation: relation.split(".", 1)[1] for relation in relations(plan)}
    positions = {relation: position(table) for relation, table in tables.items()}

    def bind(scan: Scan) -> str:
        assert isinstance(scan.operand, At)
        relation = scan.operand.relation
        return source.snapshot(tables[relation], positions[relation], scan.fields)

    return Answer(render(plan, bind), positions)
