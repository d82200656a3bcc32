"""Joins that several views hold, whose delta is computed once and read by all of them.

A shared join is told by relations and their fields, whatever aliases the views give them and whatever else they ask of
the rows: it has no selections of its own. In the body of a view it becomes one input of the join that it was a part
of; so that ``Δ(E ⋈ S) = ΔE ⋈ S⁻ + E⁺ ⋈ ΔS`` with ΔS known.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from strandline.algebra.constraints import column_of, origins
from strandline.algebra.plan import At, Change, Filter, Join, Output, Plan, Project, Scan, children, map_children
from strandline.algebra.scalar import Call, Col, Scalar, conjunction
from strandline.algebra.schema import Column, Schema

Field = tuple[str, str]
"""A relation and one of its columns."""

Equality = tuple[Field, Field]
"""Two fields that are equal, in their order."""


@dataclass(frozen=True)
class Shape:
    """A join of *relations*, each of which stands in it once, on fields that are *equal*."""

    relations: frozenset[str]
    equal: frozenset[Equality]

    @property
    def connected(self) -> bool:
        """Whether the equalities lead from each relation to all others."""
        return len(_components(self.relations, self.equal)) == 1


@dataclass(frozen=True)
class SharedJoin:
    """A join under a name of its own; its columns are named after the relations that they come from."""

    name: str
    plan: Join
    empty: bool = False
    """Whether its delta is known to have no rows."""

    @cached_property
    def shape(self) -> Shape:
        return next(shapes(self.plan))

    @property
    def delta(self) -> Scan:
        """Its delta, once that is stored."""
        return Scan(Change(self.name), "", self.plan.columns)


def shared_join(name: str, shape: Shape, bodies: Collection[Plan]) -> SharedJoin:
    """The join of a shape, with the fields that *bodies* use."""
    scans = []
    for relation in sorted(shape.relations):
        used = {column.name: column for body in bodies for column in fields_of(body, relation)}
        scans.append(Scan(At(relation), relation, tuple(used.values())))
    equal = (Call("=", (Col(".".join(one)), Col(".".join(other)))) for one, other in sorted(shape.equal))
    return SharedJoin(name, Join(tuple(scans), tuple(equal)))


def shapes(body: Plan) -> Iterator[Shape]:
    """For each join of a body the relations that can be shared, and what it says of them."""
    if isinstance(body, Join):
        found = _told(body)
        if len(found.places) > 1:
            yield Shape(frozenset(found.places), frozenset(found.equal))
    for child in children(body):
        yield from shapes(child)


def common(one: Shape, other: Shape) -> Iterator[Shape]:
    """What two joins have in common: each connected part of it, and each pair of relations that is equal by it."""
    shared, equal = one.relations & other.relations, one.equal & other.equal
    parts = [part for part in _components(shared, equal) if len(part) > 1]
    pairs = [frozenset(pair) for part in parts for pair in combinations(sorted(part), 2)]
    for relations in dict.fromkeys([*parts, *pairs]):
        shape = Shape(relations, frozenset(e for e in equal if {e[0][0], e[1][0]} <= relations))
        if shape.connected:
            yield shape


def holds(body: Plan, shape: Shape) -> bool:
    """Whether one of the joins of a body is a join of this shape with others."""
    return any(shape.relations <= found.relations and shape.equal <= found.equal for found in shapes(body))


def fields_of(body: Plan, relation: str) -> Schema:
    """The fields of a relation that a body uses where it can be shared."""
    found: dict[str, Column] = {}
    if isinstance(body, Join):
        place = _told(body).places.get(relation)
        if place is not None:
            found.update((column.name, column) for column in _scan(body.inputs[place]).fields)
    for child in children(body):
        found.update((column.name, column) for column in fields_of(child, relation))
    return tuple(found.values())


def folded(body: Plan, shared: Collection[SharedJoin]) -> tuple[Plan, dict[Plan, Plan | None]]:
    """*body* with each shared join as a join of its own, and the deltas of these joins by what is stored, if any is."""
    known: dict[Plan, Plan | None] = {}

    def visit(plan: Plan) -> Plan:
        plan = map_children(plan, visit)
        if not isinstance(plan, Join):
            return plan
        columns, node = plan.columns, plan
        for each in shared:
            node = _with(node, each, known)
        if node.columns == columns:
            return node
        return Project(node, tuple(Output(column, Col(column.name)) for column in columns))

    return visit(body), known


def _with(node: Join, shared: SharedJoin, known: dict[Plan, Plan | None]) -> Join:
    """*node* with the inputs that a shared join is made of as one."""
    told = _told(node)
    if not (shared.shape.relations <= told.places.keys() and shared.shape.equal <= told.equal.keys()):
        return node
    places = sorted(told.places[relation] for relation in shared.shape.relations)
    inside = {told.equal[pair] for pair in shared.shape.equal}
    conditions = tuple(c for number, c in enumerate(node.conditions) if number in inside)
    inner = Join(tuple(node.inputs[place] for place in places), conditions)
    known[inner] = None if shared.empty else _read(inner, shared)
    others = tuple(child for place, child in enumerate(node.inputs) if place not in places)
    return Join((inner, *others), tuple(c for number, c in enumerate(node.conditions) if number not in inside))


def _read(inner: Join, shared: SharedJoin) -> Plan:
    """The delta of a join from the stored one: its columns under their names here, the rows that its inputs select."""
    found = origins(inner)
    outputs = (Output(c, Col(f"{found[c.name].table}.{found[c.name].field}")) for c in inner.columns)
    rows: Plan = Project(shared.delta, tuple(outputs))
    condition = conjunction(tuple(c for child in inner.inputs for c in _selection(child)))
    return rows if condition is None else Filter(rows, condition)


@dataclass(frozen=True)
class _Told:
    """Of a join: where relations stand that occur once, and which conditions make their fields equal."""

    places: dict[str, int]
    equal: dict[Equality, int]


def _told(node: Join) -> _Told:
    plain = [(place, relation) for place, child in enumerate(node.inputs) for relation in _relation(child)]
    often = [relation for _, relation in plain]
    places = {relation: place for place, relation in plain if often.count(relation) == 1}
    found = origins(Join(tuple(node.inputs[place] for place in places.values()), ()))
    equal: dict[Equality, int] = {}
    for number, condition in enumerate(node.conditions):
        sides = _sides(condition)
        if all(side in found for side in sides) and sides:
            one, other = sorted((found[side].table, found[side].field) for side in sides)
            if one[0] != other[0]:
                equal.setdefault((one, other), number)
    return _Told(places, equal)


def _sides(condition: Scalar) -> Sequence[str]:
    if not isinstance(condition, Call) or condition.op != "=":
        return ()
    sides = [column_of(side) for side in condition.args]
    return [side for side in sides if side is not None] if None not in sides else ()


def _relation(child: Plan) -> Sequence[str]:
    """The relation of an input that does nothing but select rows of one; else none."""
    while isinstance(child, Filter):
        child = child.input
    return [child.operand.relation] if isinstance(child, Scan) and isinstance(child.operand, At) else []


def _scan(child: Plan) -> Scan:
    while isinstance(child, Filter):
        child = child.input
    assert isinstance(child, Scan)
    return child


def _selection(child: Plan) -> Iterator[Scalar]:
    while isinstance(child, Filter):
        yield child.condition
        child = child.input


def _components(relations: Collection[str], equal: Collection[Equality]) -> list[frozenset[str]]:
    """The parts of *relations* that equalities connect."""
    parts = {relation: frozenset([relation]) for relation in relations}
    for (one, _), (other, _) in equal:
        if one in parts and other in parts:
            merged = parts[one] | parts[other]
            parts.update({relation: merged for relation in merged})
    return sorted(set(parts.values()), key=sorted)
