"""How the parts of a SELECT are put together as plans and blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from strandline.algebra.block import Block
from strandline.algebra.ordered import Ordered
from strandline.algebra.plan import Filter, Join, Output, Plan, Project, Scan, UnionAll
from strandline.algebra.scalar import Col, Scalar, Text
from strandline.algebra.scalar import columns as columns_of
from strandline.algebra.schema import Schema, names
from strandline.sql.aggregates import Partials
from strandline.sql.coverage import Uncovered, check_matchable


@dataclass(frozen=True)
class Shape:
    """A SELECT, compiled: a block without a name, whose outputs may be missing names and types.

    *loose* are the places of the columns whose values depend on the order of rows that tie. *in_place* is the same as
    one plan, where it can be computed twice with the same outcome.
    """

    body: Plan
    keys: tuple[Output, ...] = ()
    partials: Partials | None = None
    having: Scalar | None = None
    outputs: tuple[tuple[str, Scalar], ...] = ()
    times: Scalar | None = None
    ordered: Ordered | None = None
    loose: frozenset[int] = frozenset()
    in_place: Plan | None = None

    @property
    def linear(self) -> bool:
        """Whether the shape is a body and nothing more."""
        return self.partials is None and self.ordered is None


def joined(plans: list[Plan], conditions: list[Scalar]) -> Plan:
    """The join of *plans*; conditions on one input are applied there, before the join."""
    single: dict[int, list[Scalar]] = {}
    across: list[Scalar] = []
    for condition in conditions:
        read = columns_of(condition)
        owner = next((i for i, plan in enumerate(plans) if read and read <= set(names(plan.columns))), None)
        if owner is None:
            across.append(condition)
        else:
            single.setdefault(owner, []).append(condition)
    inputs = []
    for place, plan in enumerate(plans):
        for condition in single.get(place, []):
            plan = Filter(plan, condition)
        inputs.append(plan)
    if len(inputs) > 1:
        return Join(tuple(inputs), tuple(across))
    plan = inputs[0]
    for condition in across:
        plan = Filter(plan, condition)
    return plan


def distinct(plan: Plan) -> Shape:
    """DISTINCT: grouping by all columns with nothing but a count."""
    for column in plan.columns:
        check_matchable(column)
    if len({name.lower() for name in names(plan.columns)}) < len(plan.columns):
        raise Uncovered("CLAUSE", "DISTINCT over two columns of one name")
    keys = tuple(
        Output(replace(c, name=c.name if storable(c.name) else f"__key_{i + 1}"), Col(c.name))
        for i, c in enumerate(plan.columns)
    )
    outputs = tuple((c.name, Col(k.name)) for c, k in zip(plan.columns, keys, strict=True))
    return Shape(plan, keys, Partials(), None, outputs)


def plain_block(name: str, plan: Plan, columns: Schema) -> Block:
    """A block without grouping; names that Delta cannot store get stored ones."""
    if len(columns) != len(plan.columns):
        raise Uncovered("COMPILED_FORM_DIFFERS", "the number of columns differs")
    stored = [c.name if storable(c.name) else f"__column_{i + 1}" for i, c in enumerate(columns)]
    body = renamed(plan, tuple(replace(c, name=s) for c, s in zip(columns, stored, strict=True)))
    if stored == list(names(columns)):
        return Block(name, body)
    outputs = tuple(Output(c, Col(s)) for c, s in zip(columns, stored, strict=True))
    return Block(name, body, outputs=outputs)


def ordered_shape(
    body: Plan,
    outputs: Sequence[Output],
    sections: Sequence[Output] = (),
    windows: tuple[Output, ...] = (),
    *,
    order: tuple[Scalar, ...] = (),
    limit: int | None = None,
    offset: int = 0,
    loose: frozenset[int] = frozenset(),
) -> Shape:
    """Window functions over *body*, or its first rows; what is stored are *outputs* and what sections are told by."""
    taken: set[str] = set()
    stored: list[Output] = []
    for place, output in enumerate(outputs):
        fits = storable(output.name) and output.name.lower() not in taken
        name = output.name if fits else f"__column_{place + 1}"
        taken.add(name.lower())
        stored.append(Output(replace(output.column, name=name), output.value))
    apart: list[Output] = []
    for section in sections:
        check_matchable(section.column)
        apart.append(next((output for output in stored if output.value == section.value), section))
    shown = tuple(output for output in stored if output not in apart)
    named = tuple((output.name, Col(kept.name)) for output, kept in zip(outputs, stored, strict=True))
    ordered = Ordered(shown, tuple(apart), windows, order=order, limit=limit, offset=offset)
    return Shape(body, outputs=named, ordered=ordered, loose=loose)


def ordered_block(name: str, shape: Shape, columns: Schema) -> Block:
    """A block of windows or first rows, whose visible columns are *columns*."""
    outputs = tuple(Output(column, value) for column, (_, value) in zip(columns, shape.outputs, strict=True))
    return Block(name, shape.body, outputs=outputs, ordered=shape.ordered)


def unique(labels: tuple[str, ...]) -> tuple[str, ...]:
    """*labels*, with a number behind those that came before."""
    found: list[str] = []
    for label in labels:
        number, candidate = 1, label
        while candidate.lower() in {other.lower() for other in found}:
            number += 1
            candidate = f"{label}_{number}"
        found.append(candidate)
    return tuple(found)


def relabelled(plan: Plan, labels: tuple[str, ...]) -> Plan:
    """*plan* with its columns named *labels*."""
    return renamed(plan, tuple(replace(c, name=label) for c, label in zip(plan.columns, labels, strict=True)))


def renamed(plan: Plan, columns: Schema) -> Plan:
    """*plan* with its columns named and typed as *columns*."""
    if plan.columns == columns:
        return plan
    if isinstance(plan, Project):
        return Project(plan.input, tuple(Output(c, o.value) for c, o in zip(columns, plan.outputs, strict=True)))
    if isinstance(plan, UnionAll):
        return UnionAll(tuple(cast_to(part, columns) for part in plan.inputs))
    return Project(plan, tuple(Output(c, Col(old)) for c, old in zip(columns, names(plan.columns), strict=True)))


def cast_to(plan: Plan, columns: Schema) -> Plan:
    """*plan* with its columns named as *columns*, and its values cast to their types."""
    outputs = []
    for wanted, found in zip(columns, plan.columns, strict=True):
        value: Scalar = Col(found.name)
        if wanted.type != found.type:
            value = Text(("CAST(", value, f" AS {wanted.type})"), value)
        outputs.append(Output(wanted, value))
    return Project(plan, tuple(outputs))


def bare(plan: Plan) -> Plan:
    """*plan* with the columns of a scan named without its alias."""
    if isinstance(plan, Scan) and plan.alias:
        outputs = tuple(Output(f, Col(c.name)) for f, c in zip(plan.fields, plan.columns, strict=True))
        return Project(plan, outputs)
    return plan


def storable(name: str) -> bool:
    """Whether Delta takes *name* for a column without column mapping, and we do not use it ourselves."""
    return not set(name) & set(" ,;{}()\n\t=.`") and not name.startswith("__") and bool(name)
