"""Which changes of its inputs matter to a node, found out before anything is joined.

Changes of columns that it does not read do not, nor do rows that its selections drop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from strandline.algebra.plan import Change, Filter, Plan, Scan, scans
from strandline.algebra.relevance import Selection, selections
from strandline.algebra.scalar import Call, rename
from strandline.engine.session import Engine
from strandline.propagate.binding import Binding, Pins
from strandline.propagate.here import Here
from strandline.sql.names import literal, quoted
from strandline.sql.render import scalar_sql
from strandline.store.deltas import Delta
from strandline.store.netting import in_columns
from strandline.store.node import Node


def in_own_columns(
    node: Node, deltas: Mapping[str, Delta], binding: Binding, path: str, engine: Engine
) -> dict[str, Delta]:
    """*deltas* of tables as far as they change columns that *node* reads; what gets smaller is stored at *path*."""
    found = dict(deltas)
    for number, (name, delta) in enumerate(deltas.items()):
        columns = binding.stored_names(name, node.uses(name))
        if columns:
            found[name] = in_columns(delta, columns, f"{path}-{number}", engine.storage_options)
    return found


@dataclass(frozen=True)
class Relevant:
    """The inputs whose changes matter, and how many changed rows do not, as far as they were counted."""

    changed: tuple[str, ...]
    dropped: int


def relevant(engine: Engine, binding: Binding, here: Here, pins: Pins, deltas: Mapping[str, Delta]) -> Relevant:
    """What is left of *deltas* after the local selections of a node.

    It is counted only before a join of some size: over little data the join itself costs no more than the question.
    """
    assert pins.node.block is not None
    body = pins.node.block.body
    changed = [name for name, delta in deltas.items() if delta.rows]
    selected = {name: selections(body, name) for name in changed}
    if engine.small or sum(1 for _ in scans(body)) < 2 or not any(selected.values()):
        return Relevant(tuple(changed), 0)
    matter = _matter(engine, binding, here, pins, {name: found for name, found in selected.items() if found})
    dropped = sum(deltas[name].rows - number for name, number in matter.items())
    return Relevant(tuple(name for name in changed if matter.get(name, 1)), dropped)


def _matter(
    engine: Engine, binding: Binding, here: Here, pins: Pins, selected: Mapping[str, Sequence[Selection]]
) -> dict[str, int]:
    """How many changed rows pass one of the selections on each relation."""
    passed = {name: here.rows(_passing(name, found), pins) for name, found in selected.items()}
    matter = {name: rows.num_rows for name, rows in passed.items() if rows is not None}
    counts = [_counted(binding, pins, name, found) for name, found in selected.items() if name not in matter]
    counted = {name: int(number) for name, number in engine.rows(" UNION ALL ".join(counts))} if counts else {}
    return {**matter, **counted}


def _passing(relation: str, found: Sequence[Selection]) -> Plan:
    """The changed rows that pass one of the selections."""
    fields = {field.name: field for scan, _ in found for field in scan.fields}
    tests = []
    for scan, conditions in found:
        own = {column.name: field.name for column, field in zip(scan.columns, scan.fields, strict=True)}
        tests.append(Call("and", tuple(rename(condition, own) for condition in conditions)))
    return Filter(Scan(Change(relation), "", tuple(fields.values())), Call("or", tuple(tests)))


def _counted(binding: Binding, pins: Pins, relation: str, found: Sequence[Selection]) -> str:
    fields = {field.name: field for scan, _ in found for field in scan.fields}
    rows = binding.scan(Scan(Change(relation), "", tuple(fields.values())), pins)
    tests = []
    for scan, conditions in found:
        places = {c.name: quoted(f.name) for c, f in zip(scan.columns, scan.fields, strict=True)}
        tests.append(" AND ".join(f"({scalar_sql(condition, places)})" for condition in conditions))
    anywhere = " OR ".join(f"({test})" for test in tests)
    return f"SELECT {literal(relation)} AS relation, count_if({anywhere}) AS rows FROM ({rows})"
