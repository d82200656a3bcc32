"""Plan nodes: immutable, typed, each a function from signed bags to a signed bag.

Columns of a scan are named ``alias.column``, so that every column of a join has a name of its own. Types are
those that the analyser recorded; no node derives a type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from operator import is_
from typing import Any, Literal, TypeVar

from strandline.algebra.scalar import Call, Col, Lit, Scalar, Text
from strandline.algebra.scalar import columns as scalar_columns
from strandline.algebra.schema import Column, Schema, names

State = Literal["current", "pre", "post"] | int
"""Of a relation: as it is now, before or after the changes at hand, or at a numbered version."""


@dataclass(frozen=True)
class At:
    """Operand: a relation (leaf, view or stored block) at a state."""

    relation: str
    state: State = "current"

    def __str__(self) -> str:
        return f"{self.relation}@{self.state}"


@dataclass(frozen=True)
class Change:
    """Operand: the delta of a relation over the interval (after, upto]."""

    relation: str
    after: State = "pre"
    upto: State = "post"

    def __str__(self) -> str:
        return f"Δ{self.relation}({self.after},{self.upto}]"


@dataclass(frozen=True)
class Backing:
    """Operand: the stored rows of a node's own table, hidden columns included, at a state."""

    node: str
    state: State = "pre"

    def __str__(self) -> str:
        return f"{self.node}.backing@{self.state}"


@dataclass(frozen=True)
class Bag:
    """Operand: a bag that was stored on the way, by its name."""

    name: str

    def __str__(self) -> str:
        return self.name


Operand = At | Change | Backing | Bag


@dataclass(frozen=True)
class Output:
    """A computed column."""

    column: Column
    value: Scalar

    @property
    def name(self) -> str:
        return self.column.name


@dataclass(frozen=True)
class Scan:
    """All rows of an operand.

    Its columns are *fields*, renamed to ``alias.field`` unless the alias is empty.
    """

    operand: Operand
    alias: str
    fields: Schema
    key: tuple[str, ...] = ()

    @cached_property
    def columns(self) -> Schema:
        if not self.alias:
            return self.fields
        return tuple(Column(f"{self.alias}.{f.name}", f.type, f.nullable) for f in self.fields)


@dataclass(frozen=True)
class Values:
    """Rows that are written out in the query: they never change."""

    rows: tuple[tuple[Scalar, ...], ...]
    columns: Schema


@dataclass(frozen=True)
class Filter:
    """The rows for which *condition* is true (not NULL)."""

    input: Plan
    condition: Scalar

    def __post_init__(self) -> None:
        _require(self.input, scalar_columns(self.condition), "filter")

    @property
    def columns(self) -> Schema:
        return self.input.columns


@dataclass(frozen=True)
class Project:
    """Computed columns; duplicates are kept."""

    input: Plan
    outputs: tuple[Output, ...]

    def __post_init__(self) -> None:
        for output in self.outputs:
            _require(self.input, scalar_columns(output.value), f"column {output.name}")

    @cached_property
    def columns(self) -> Schema:
        return tuple(output.column for output in self.outputs)


@dataclass(frozen=True)
class Join:
    """The n-way inner theta join: the product of *inputs*, restricted to *conditions*."""

    inputs: tuple[Plan, ...]
    conditions: tuple[Scalar, ...]

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for column in names(self.columns):
            if column in seen:
                raise ValueError(f"two inputs of a join have a column {column!r}")
            seen.add(column)
        for condition in self.conditions:
            _require(self, scalar_columns(condition), "join condition")

    @cached_property
    def columns(self) -> Schema:
        return tuple(column for plan in self.inputs for column in plan.columns)


@dataclass(frozen=True)
class UnionAll:
    """All rows of all inputs; columns go by place, names and types are those of the first."""

    inputs: tuple[Plan, ...]

    def __post_init__(self) -> None:
        widths = {len(plan.columns) for plan in self.inputs}
        if len(widths) > 1:
            raise ValueError(f"inputs of a union have {sorted(widths)} columns")

    @property
    def columns(self) -> Schema:
        return self.inputs[0].columns


@dataclass(frozen=True)
class Negate:
    """The input with every multiplicity negated."""

    input: Plan

    @property
    def columns(self) -> Schema:
        return self.input.columns


@dataclass(frozen=True)
class Net:
    """The net effect of the input: equal rows added up, zeros dropped."""

    input: Plan

    @property
    def columns(self) -> Schema:
        return self.input.columns


PartialKind = Literal["count", "sum", "min", "max", "opaque"]


@dataclass(frozen=True)
class Partial:
    """A partial aggregate as it is stored.

    ``count`` counts rows (no argument) or non-NULL arguments, ``sum`` adds them with 0 for nothing; both are
    invertible. ``min`` and ``max`` can absorb insertions only. ``opaque`` is any other aggregate call, kept
    as the user's text, and can only be recomputed.
    """

    column: Column
    kind: PartialKind
    argument: Scalar | None = None
    where: Scalar | None = None

    @property
    def name(self) -> str:
        return self.column.name

    @property
    def invertible(self) -> bool:
        return self.kind in ("count", "sum")


@dataclass(frozen=True)
class GroupBy:
    """Partial aggregates of the input per key; without keys, one row even for an empty input.

    Over a signed input, counts and sums come out signed: that is a *summary delta*. ``keep_empty`` keeps
    groups whose row count is zero or less, which only a summary delta has.
    """

    input: Plan
    keys: tuple[Output, ...]
    partials: tuple[Partial, ...]
    keep_empty: bool = False

    def __post_init__(self) -> None:
        for output in self.keys:
            _require(self.input, scalar_columns(output.value), f"group key {output.name}")
        for partial in self.partials:
            for scalar in (partial.argument, partial.where):
                if scalar is not None:
                    _require(self.input, scalar_columns(scalar), f"aggregate {partial.name}")

    @property
    def columns(self) -> Schema:
        return tuple(k.column for k in self.keys) + tuple(p.column for p in self.partials)


@dataclass(frozen=True)
class MergeSummary:
    """What a summary delta does to stored partial aggregates, as explicit deletions and insertions (netted).

    For each group of *summary*: its old row, if there is one, is deleted, and the sum of both is inserted
    unless its count is 0. A count below zero is an error: the delta deletes what is not there. Without keys
    the one row stays.
    """

    old: Plan
    summary: Plan
    keys: tuple[str, ...]
    partials: tuple[Partial, ...]

    @property
    def columns(self) -> Schema:
        return self.old.columns


@dataclass(frozen=True)
class SemiJoin:
    """The rows of *input* whose *values* occur, NULL matching NULL, among the rows of *keys*."""

    input: Plan
    values: tuple[Scalar, ...]
    keys: Plan

    @property
    def columns(self) -> Schema:
        return self.input.columns


@dataclass(frozen=True)
class Exists:
    """The rows of *left* for which *right* has a row that matches; *negated*, those for which it has none.

    Rows match if all *keys*, pairs of a value of either side, are equal (NULL equals nothing) and all *conditions*
    hold. Multiplicities are those of *left*; of *right* only what is there counts.
    """

    left: Plan
    right: Plan
    keys: tuple[tuple[Scalar, Scalar], ...]
    conditions: tuple[Scalar, ...] = ()
    negated: bool = False

    def __post_init__(self) -> None:
        for ours, theirs in self.keys:
            _require(self.left, scalar_columns(ours), "semi join")
            _require(self.right, scalar_columns(theirs), "semi join")

    @property
    def columns(self) -> Schema:
        return self.left.columns


@dataclass(frozen=True)
class OuterJoin:
    """The join of two inputs with rows of *left*, and of *right* if it is *full*, that match nothing, beside NULLs."""

    left: Plan
    right: Plan
    keys: tuple[tuple[Scalar, Scalar], ...]
    conditions: tuple[Scalar, ...] = ()
    full: bool = False

    @property
    def columns(self) -> Schema:
        left = tuple(_nullable(c) for c in self.left.columns) if self.full else self.left.columns
        return left + tuple(_nullable(c) for c in self.right.columns)


@dataclass(frozen=True)
class Window:
    """The input with columns that are computed over the rows of the same *partition*."""

    input: Plan
    partition: tuple[Scalar, ...]
    outputs: tuple[Output, ...]

    @property
    def columns(self) -> Schema:
        return self.input.columns + tuple(output.column for output in self.outputs)


@dataclass(frozen=True)
class Repeat:
    """Each row of the input as many times as *times* says."""

    input: Plan
    times: Scalar

    @property
    def columns(self) -> Schema:
        return self.input.columns


@dataclass(frozen=True)
class Generate:
    """Each row of the input beside each row that *generator*, a call over its columns, makes of it.

    With *outer* a row for which there is none stays, beside NULLs.
    """

    input: Plan
    generator: Scalar
    made: Schema
    outer: bool = False

    @property
    def columns(self) -> Schema:
        return self.input.columns + self.made


@dataclass(frozen=True)
class Limit:
    """The first *count* rows of the input, after *offset* others, in an order; of rows that tie, any may come first.

    An item of *order* is a value with its direction.
    """

    input: Plan
    order: tuple[Scalar, ...]
    count: int | None
    offset: int = 0

    @property
    def columns(self) -> Schema:
        return self.input.columns


Plan = (
    Scan
    | Values
    | Filter
    | Project
    | Join
    | UnionAll
    | Negate
    | Net
    | GroupBy
    | MergeSummary
    | SemiJoin
    | Exists
    | OuterJoin
    | Window
    | Repeat
    | Generate
    | Limit
)

COUNT = "__count"
"""Name of the stored row count of a group."""


def children(plan: Plan) -> tuple[Plan, ...]:
    """The inputs of a node, in order."""
    match plan:
        case Scan() | Values():
            return ()
        case Join(inputs=inputs) | UnionAll(inputs=inputs):
            return inputs
        case SemiJoin(input=child, keys=keys):
            return (child, keys)
        case MergeSummary(old=old, summary=summary):
            return (old, summary)
        case Exists(left=left, right=right) | OuterJoin(left=left, right=right):
            return (left, right)
        case _:
            return (plan.input,)


def scans(plan: Plan) -> Iterator[Scan]:
    """The scans of a plan, left to right."""
    if isinstance(plan, Scan):
        yield plan
    for child in children(plan):
        yield from scans(child)


def map_scans(plan: Plan, on_scan: Callable[[Scan], Plan]) -> Plan:
    """*plan* with every scan replaced."""
    return on_scan(plan) if isinstance(plan, Scan) else map_children(plan, lambda child: map_scans(child, on_scan))


_P = TypeVar("_P", bound=Plan)


def map_children(plan: Plan, on_child: Callable[[Plan], Plan]) -> Plan:
    """*plan* with each of its inputs replaced; the very same one if all stay."""
    match plan:
        case Scan() | Values():
            return plan
        case Join() | UnionAll():
            return with_inputs(plan, inputs=tuple(on_child(child) for child in plan.inputs))
        case SemiJoin():
            return with_inputs(plan, input=on_child(plan.input), keys=on_child(plan.keys))
        case MergeSummary():
            return with_inputs(plan, old=on_child(plan.old), summary=on_child(plan.summary))
        case Exists() | OuterJoin():
            return with_inputs(plan, left=on_child(plan.left), right=on_child(plan.right))
        case _:
            return with_inputs(plan, input=on_child(plan.input))


def with_inputs(plan: _P, **inputs: Any) -> _P:
    """*plan* with other inputs, by the names of its fields; the very same one if they are its own."""
    same = all(_same(getattr(plan, name), found) for name, found in inputs.items())
    return plan if same else replace(plan, **inputs)


def _same(one: object, other: object) -> bool:
    """Whether two inputs, or tuples of them, are the same objects."""
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(is_, one, other))
    return one is other


def decomposed(join: OuterJoin) -> UnionAll:
    """An outer join as what it is made of: the inner join, and rows that match nothing beside NULLs."""
    equal = tuple(Call("=", pair) for pair in join.keys)
    parts: list[Plan] = [Join((join.left, join.right), (*equal, *join.conditions))]
    alone = Exists(join.left, join.right, join.keys, join.conditions, negated=True)
    parts.append(beside_nulls(alone, join.columns))
    if join.full:
        swapped = tuple((theirs, ours) for ours, theirs in join.keys)
        parts.append(beside_nulls(Exists(join.right, join.left, swapped, join.conditions, negated=True), join.columns))
    return UnionAll(tuple(parts))


def beside_nulls(plan: Plan, columns: Schema) -> Plan:
    """The rows of *plan* as rows of *columns*, NULL being in those that it does not have."""
    there = set(names(plan.columns))
    outputs = [
        Output(c, Col(c.name) if c.name in there else Text((f"CAST(NULL AS {c.type})",), Lit(None))) for c in columns
    ]
    return Project(plan, tuple(outputs))


def relations(plan: Plan) -> tuple[str, ...]:
    """The relations that a plan reads, each once, in order of first use."""
    found = (s.operand.relation for s in scans(plan) if isinstance(s.operand, At | Change))
    return tuple(dict.fromkeys(found))


def key(plan: Plan) -> frozenset[str] | None:
    """Columns that are unique among the rows of *plan*, as far as the declared keys of its scans tell."""
    match plan:
        case Scan(key=()) | Scan(operand=Change()):
            # A delta names the key of an updated row twice.
            return None
        case Scan(alias=alias, key=declared):
            return frozenset(f"{alias}.{name}" if alias else name for name in declared)
        case Filter(input=child) | SemiJoin(input=child) | Net(input=child) | Limit(input=child):
            return key(child)
        case Project(child, outputs):
            below = key(child)
            passed = {o.value.name: o.name for o in outputs if isinstance(o.value, Col)}
            if below is None or not below <= passed.keys():
                return None
            return frozenset(passed[name] for name in below)
        case Join(inputs=inputs):
            keys = [key(child) for child in inputs]
            if any(k is None for k in keys):
                return None
            return frozenset(name for k in keys if k is not None for name in k)
        case GroupBy(keys=key_outputs):
            return frozenset(output.name for output in key_outputs)
        case Exists(left=child) | Window(input=child):
            return key(child)
        case OuterJoin(full=False):
            return key(Join((plan.left, plan.right), ()))
        case Values() | UnionAll() | Negate() | MergeSummary() | OuterJoin() | Repeat() | Generate():
            return None


def _nullable(column: Column) -> Column:
    return replace(column, nullable=True)


def _require(plan: Plan, wanted: frozenset[str], user: str) -> None:
    missing = wanted - set(names(plan.columns))
    if missing:
        raise ValueError(f"{user} reads {', '.join(sorted(missing))}; its input has {', '.join(names(plan.columns))}")
