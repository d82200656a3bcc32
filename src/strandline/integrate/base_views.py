"""Base views: the parts of a view that read tables which are not copied, cut out of it.

Each maximal select-project-join part over such tables becomes a hidden block of its own, which the algorithms of this
room maintain; what is above is an ordinary view over that block. A table of a versioned store that is joined with one
that is not copied goes along: it is asked at the version that was reported last. What such a block stores are columns
as they are; whatever is computed from them is computed above.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from strandline.algebra.block import Block
from strandline.algebra.codec import fingerprint
from strandline.algebra.plan import At, Filter, Join, Output, Plan, Project, Scan, map_children, map_scans, scans
from strandline.algebra.prune import pruned
from strandline.algebra.scalar import Call, Col, Scalar, Text, columns, conjunction, rename
from strandline.algebra.schema import Column, Schema, names
from strandline.ingest.uncopied import UncopiedSource
from strandline.integrate.algorithm import Algorithm
from strandline.integrate.algorithms import Options, create
from strandline.integrate.view import View, column_of, relation_of
from strandline.sources.arrow_types import has_arrow_type
from strandline.sources.protocol import Source
from strandline.sql.shapes import storable

BASE_PREFIX = "base "
"""Before the fingerprint in the name of a base view."""

Home = Literal["asked", "versioned"]
"""Where a table is: at a source that can be asked only about now, or in a store of versions."""

Homes = Callable[[str], Home | None]
"""The home of a relation; None for what the warehouse itself holds."""

Keys = Callable[[str], Schema]
"""The columns of a relation's key; none if it has no key."""


@dataclass(frozen=True)
class _Part:
    """Scans of a join that go into one base view, and the conditions among them."""

    scans: tuple[Scan, ...]
    conditions: tuple[Scalar, ...]


def cut(blocks: Sequence[Block], homes: Homes, keys: Keys, suffix: str = "") -> tuple[Block, ...]:
    """*blocks*, and before them the base views that they read now; *suffix* ends the names of these.

    A base view shows the keys of its tables if all of them have one: its rows are a set then.
    """
    found: dict[str, Block] = {}
    rest = []
    for block in blocks:
        parts: dict[str, _Part] = {}
        body = _cut(block.body, homes, keys, parts)
        reading = pruned(replace(block, body=body)) if parts else block
        bases = {name: _base_view(part, _read(reading.body, name), suffix) for name, part in parts.items()}
        found.update({base.node: base for base in bases.values()})
        named = {name: base.node for name, base in bases.items()}
        rest.append(replace(reading, body=_renamed(reading.body, named)))
    return (*found.values(), *rest)


def view_of(block: Block, source_of: Callable[[str], str]) -> View:
    """The block of a base view as the algorithms take it."""
    return View.of(block.body, {name: source_of(name) for name in block.inputs})


def algorithm_of(block: Block, noted: Mapping[str, Any], source_of: Callable[[str], str]) -> Algorithm[Any]:
    """The algorithm of a base view, as it was noted when it was defined."""
    groups = tuple(tuple(group) for group in noted["groups"])
    return create(noted["algorithm"], view_of(block, source_of), options=Options(groups=groups))


def home_of(relation: str, sources: Mapping[str, Source]) -> str:
    """Where an update of a relation comes from: a source, or a table that has versions of its own."""
    source = relation.split(".", 1)[0]
    return source if isinstance(sources.get(source), UncopiedSource) else relation


def _cut(plan: Plan, homes: Homes, keys: Keys, parts: dict[str, _Part]) -> Plan:
    def inside(child: Plan) -> Plan:
        return _cut(child, homes, keys, parts)

    if not isinstance(plan, Scan | Filter | Join):
        return map_children(plan, inside)
    inputs, conditions = _joined(plan)
    there = [scan for scan in inputs if isinstance(scan, Scan) and _home(scan, homes) is not None]
    groups = [group for group in _connected(there, conditions) if any(_home(scan, homes) == "asked" for scan in group)]
    if not groups:
        return map_children(plan, inside)
    readers: list[Plan] = []
    for group in groups:
        own = {name for scan in group for name in names(scan.columns)}
        within = tuple(condition for condition in conditions if columns(condition) and columns(condition) <= own)
        conditions = [condition for condition in conditions if condition not in within]
        readers.append(_reader(_Part(_with_keys(group, keys), within), parts))
    taken = [scan for group in groups for scan in group]
    others = [inside(child) for child in inputs if child not in taken]
    if len(readers) + len(others) > 1:
        return Join((*readers, *others), tuple(conditions))
    condition = conjunction(tuple(conditions))
    return readers[0] if condition is None else Filter(readers[0], condition)


def _home(scan: Scan, homes: Homes) -> Home | None:
    """Where a scan reads; what has columns that cannot be held in memory is joined above, if it has versions."""
    found = homes(scan.operand.relation) if isinstance(scan.operand, At) else None
    held = all(has_arrow_type(field.type) for field in scan.fields)
    return None if found == "versioned" and not held else found


def _joined(plan: Plan) -> tuple[list[Plan], list[Scalar]]:
    """What is joined, and the conditions, of joins and selections on top of each other."""
    match plan:
        case Filter(child, condition):
            inputs, conditions = _joined(child)
            return inputs, [*conditions, condition]
        case Join(children, own):
            below = [_joined(child) for child in children]
            conditions = [condition for _, found in below for condition in found]
            return [each for found, _ in below for each in found], [*conditions, *own]
        case _:
            return [plan], []


def _connected(found: Sequence[Scan], conditions: Sequence[Scalar]) -> list[list[Scan]]:
    """*found* in groups that conditions among them tie together."""
    groups = [[scan] for scan in found]
    for condition in conditions:
        read = columns(condition)
        touched = [group for group in groups if any(read & set(names(scan.columns)) for scan in group)]
        own = {name for group in touched for scan in group for name in names(scan.columns)}
        if len(touched) > 1 and read <= own:
            groups = [*(g for g in groups if g not in touched), [scan for group in touched for scan in group]]
    return [[scan for scan in found if scan in group] for group in groups]


def _with_keys(group: Sequence[Scan], keys: Keys) -> tuple[Scan, ...]:
    """The scans of a group, with their keys if all have one."""
    known = [keys(relation_of(scan)) for scan in group]
    if not all(known):
        return tuple(replace(scan, key=()) for scan in group)
    return tuple(
        replace(scan, fields=(*scan.fields, *(c for c in key if c not in scan.fields)), key=names(key))
        for scan, key in zip(group, known, strict=True)
    )


def _reader(part: _Part, parts: dict[str, _Part]) -> Plan:
    """What stands for a part in its view: the base view's rows under the names that they had."""
    name = f"{BASE_PREFIX}{len(parts)}"
    parts[name] = part
    was = [column for scan in part.scans for column in scan.columns]
    fields = tuple(replace(column, name=stored) for column, stored in zip(was, _stored_names(part), strict=True))
    outputs = [Output(column, Col(field.name)) for column, field in zip(was, fields, strict=True)]
    return Project(Scan(At(name), "", fields), tuple(outputs))


def _stored_names(part: _Part) -> list[str]:
    """Names that do not depend on what the view calls its tables."""
    found = [f"t{place}_{field.name}" for place, scan in enumerate(part.scans, 1) for field in scan.fields]
    lower = [name.lower() for name in found]
    return [
        name if storable(name) and lower.count(name.lower()) == 1 else f"c{number}"
        for number, name in enumerate(found, 1)
    ]


def _read(body: Plan, name: str) -> set[str]:
    return {field.name for scan in scans(body) if scan.operand == At(name) for field in scan.fields}


def _base_view(part: _Part, read: set[str], suffix: str) -> Block:
    """The block of a base view that shows the columns *read*, named after what it holds."""
    aliased = [replace(scan, alias=f"t{place}") for place, scan in enumerate(part.scans, 1)]
    was, now = ([column for scan in each for column in scan.columns] for each in (part.scans, aliased))
    by = {old.name: new.name for old, new in zip(was, now, strict=True)}
    keys = {column_of(scan, name) for scan in aliased for name in scan.key}
    outputs = [
        Output(Column(stored, new.type, new.nullable), Col(new.name))
        for stored, new in zip(_stored_names(part), now, strict=True)
        if stored in read or new.name in keys
    ]
    conditions = tuple(rename(_written_out(condition), by) for condition in part.conditions)
    body = Project(Join(tuple(aliased), conditions), tuple(outputs))
    block = _with_same_fields(pruned(Block("", body)))
    return replace(block, node=f"{BASE_PREFIX}{fingerprint(block)}{suffix}")


def _with_same_fields(block: Block) -> Block:
    """*block*, reading the same columns of a table wherever that occurs."""
    fields: dict[str, dict[str, Column]] = {}
    for scan in scans(block.body):
        fields.setdefault(relation_of(scan), {}).update({field.name: field for field in scan.fields})
    return replace(
        block, body=map_scans(block.body, lambda s: replace(s, fields=tuple(fields[relation_of(s)].values())))
    )


def _renamed(body: Plan, named: Mapping[str, str]) -> Plan:
    """*body* reading relations by other names."""

    def renamed(scan: Scan) -> Scan:
        if isinstance(scan.operand, At) and scan.operand.relation in named:
            return replace(scan, operand=replace(scan.operand, relation=named[scan.operand.relation]))
        return scan

    return map_scans(body, renamed)


def _written_out(condition: Scalar) -> Scalar:
    """A condition that equates two columns as such, whatever text it came from."""
    match condition:
        case Text(meaning=Call("=", (Col(), Col())) as equation):
            return equation
        case _:
            return condition
