"""Random databases, view DAGs and change sequences, as Hypothesis strategies.

Everything is a ``bigint`` from a small domain with NULL, so that rows meet, collide and cancel often. A drawn
history is meant to be replayed: on the in-memory evaluator, or on any engine that can run blocks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from hypothesis import strategies as st

from strandline.algebra.bag import Row, SignedBag
from strandline.algebra.block import Block
from strandline.algebra.plan import (
    COUNT,
    At,
    Exists,
    Filter,
    Join,
    OuterJoin,
    Output,
    Partial,
    Plan,
    Project,
    Repeat,
    Scan,
    UnionAll,
)
from strandline.algebra.scalar import Call, Col, Lit, Scalar, Text
from strandline.algebra.schema import Column, Schema, names

T = TypeVar("T")
Step = Mapping[str, SignedBag]
"""The delta of each leaf that a transaction touched; it is empty where the touches cancel."""

VALUES = (0, 1, None, 2, -1)
WIDEST = 400
"""A body multiplies its inputs only up to about so many rows."""


@dataclass(frozen=True)
class Relation:
    """What a block may scan: a leaf, or the visible rows of an earlier block."""

    name: str
    fields: Schema
    key: tuple[str, ...] = ()
    weight: int = 6
    """About how many distinct rows there may be."""

    def scan(self, alias: str) -> Scan:
        return Scan(At(self.name), alias, self.fields, self.key)


@dataclass(frozen=True)
class History:
    """Leaves with their first rows, blocks over them in topological order, and what happens to the leaves."""

    leaves: tuple[Relation, ...]
    blocks: tuple[Block, ...]
    start: Mapping[str, SignedBag]
    steps: tuple[Step, ...]


@st.composite
def databases(draw: st.DrawFn) -> tuple[tuple[Relation, ...], dict[str, SignedBag]]:
    """One to three relations of one to three columns, with their rows: duplicates, NULLs, or none at all."""
    leaves = tuple(
        Relation(name, bigints(*"abc"[: draw(st.integers(1, 3))]))
        for name in ("r", "s", "t")[: draw(st.integers(1, 3))]
    )
    return leaves, {leaf.name: draw(_bags[len(leaf.fields)]) for leaf in leaves}


@st.composite
def blocks(draw: st.DrawFn, relations: Sequence[Relation], node: str = "v1") -> Block:
    """A block over some of *relations*."""
    return _block(draw, relations, node)[0]


@st.composite
def view_dags(draw: st.DrawFn, leaves: Sequence[Relation], most: int = 4) -> tuple[Block, ...]:
    """Up to *most* blocks in topological order, each over leaves and earlier ones (chains, diamonds)."""
    relations = list(leaves)
    found: list[Block] = []
    for place in range(draw(st.integers(1, most))):
        block, weight = _block(draw, relations, f"v{place + 1}")
        found.append(block)
        view = Relation(block.node, block.visible, block.visible_key, weight)
        # Twice, so that views above views are common.
        relations += [view, view]
    return tuple(found)


@st.composite
def histories(draw: st.DrawFn, *, insert_only: bool = False, most_blocks: int = 4) -> History:
    """A database, views over it, and one to three steps."""
    leaves, start = draw(databases())
    views = draw(view_dags(leaves, most_blocks))
    state = dict(start)
    steps: list[Step] = []
    for _ in range(draw(st.integers(1, 3))):
        step = _step(draw, leaves, state, insert_only)
        steps.append(step)
        state.update({name: state[name] + delta for name, delta in step.items()})
    return History(leaves, views, start, tuple(steps))


def bigints(*columns: str) -> Schema:
    """A schema of nullable ``bigint`` columns."""
    return tuple(Column(name, "bigint") for name in columns)


_rows: dict[int, st.SearchStrategy[Row]] = {width: st.tuples(*[st.sampled_from(VALUES)] * width) for width in (1, 2, 3)}
_bags = {width: st.lists(rows, max_size=5).map(SignedBag.of) for width, rows in _rows.items()}


def _one_of(draw: st.DrawFn, choices: Sequence[T]) -> T:
    return choices[draw(st.integers(0, len(choices) - 1))]


# Scalars


_NUMBERS = ("column",) * 4 + ("literal", "arithmetic", "remainder", "coalesce", "case", "text")
_CONDITIONS = ("constant", "columns", "constant", "is null", "is not null", "and", "or", "not", "text")
_COMPARISONS = ("=", "<", ">=", "<>", "<=", ">", "<=>")


def _number(draw: st.DrawFn, columns: Sequence[str]) -> Scalar:
    column = Col(_one_of(draw, columns))
    match _one_of(draw, _NUMBERS):
        case "literal":
            return Lit(_one_of(draw, VALUES))
        case "arithmetic":
            others: tuple[Scalar, ...] = (Lit(1), Lit(2), Col(_one_of(draw, columns)))
            other = _one_of(draw, others)
            return Call(_one_of(draw, "+-*"), (column, other))
        case "remainder":
            return Call("%", (column, Lit(2)))
        case "coalesce":
            return Call("coalesce", (column, Lit(0)))
        case "case":
            return Call("case", (_comparison(draw, columns), column, Lit(0)))
        case "text":
            return Text(("abs(", column, ") + 1"), _absolute_plus_one(column))
        case _:
            return column


def _absolute_plus_one(column: Col) -> Scalar:
    negated = Call("-", (Lit(0), column))
    absolute = Call("case", (Call("<", (column, Lit(0))), negated, column))
    return Call("+", (absolute, Lit(1)))


def _condition(draw: st.DrawFn, columns: Sequence[str]) -> Scalar:
    match _one_of(draw, _CONDITIONS):
        case "is null" | "is not null" as op:
            return Call(op, (Col(_one_of(draw, columns)),))
        case "and" | "or" as op:
            return Call(op, (_comparison(draw, columns), _comparison(draw, columns)))
        case "not":
            return Call("not", (_comparison(draw, columns),))
        case "text":
            column = Col(_one_of(draw, columns))
            return Text((column, " in (0, 1)"), _either(column, 0, 1))
        case "columns":
            left, right = Col(_one_of(draw, columns)), Col(_one_of(draw, columns))
            return Call(_one_of(draw, _COMPARISONS), (left, right))
        case _:
            return _comparison(draw, columns)


def _either(column: Col, one: int, two: int) -> Scalar:
    return Call("or", (Call("=", (column, Lit(one))), Call("=", (column, Lit(two)))))


def _comparison(draw: st.DrawFn, columns: Sequence[str]) -> Scalar:
    column = Col(_one_of(draw, columns))
    return Call(_one_of(draw, _COMPARISONS), (column, Lit(_one_of(draw, (1, 0, 2)))))


# Bodies


@dataclass
class _From:
    """What the FROM clause of a select has used up so far."""

    relations: Sequence[Relation]
    aliases: int = 0
    weight: int = 1
    fitting: list[Relation] = field(init=False)

    def __post_init__(self) -> None:
        self.fitting = list(self.relations)

    def alias(self) -> str:
        self.aliases += 1
        return f"x{self.aliases}"

    def relation(self, draw: st.DrawFn) -> Relation:
        relation = _one_of(draw, self.fitting)
        self.weight *= relation.weight
        self.fitting = [r for r in self.relations if r.weight * self.weight <= WIDEST]
        return relation


def _item(draw: st.DrawFn, clause: _From) -> Plan:
    """An input of a join: a table, a restricted table, or a derived table."""
    relation = clause.relation(draw)
    scan = relation.scan(clause.alias())
    kinds = ("scan", "scan", "scan", "scan", "filter", "project", "union", "join", "exists", "outer", "repeat")
    match _one_of(draw, kinds):
        case "filter":
            return Filter(scan, _condition(draw, names(scan.columns)))
        case "project":
            return _select(draw, scan, clause.alias(), draw(st.integers(1, 2)))
        case "union":
            # Both branches may read the same relation, or even be equal.
            other = _one_of(draw, [r for r in clause.relations if r.weight <= relation.weight])
            clause.weight *= 2
            width = draw(st.integers(1, 2))
            branches = (scan, other.scan(clause.alias()))
            return UnionAll(tuple(_select(draw, branch, clause.alias(), width) for branch in branches))
        case "join" if clause.fitting:
            inner = (scan, clause.relation(draw).scan(clause.alias()))
            return Join(inner, _join_conditions(draw, inner))
        case "exists":
            other_side = _one_of(draw, clause.relations).scan(clause.alias())
            keys, conditions = _matching(draw, scan, other_side)
            return Exists(scan, other_side, keys, conditions, negated=_one_of(draw, (True, False)))
        case "outer" if clause.fitting:
            right = _item(draw, clause)
            keys, conditions = _matching(draw, scan, right)
            return OuterJoin(scan, right, keys, conditions, full=_one_of(draw, (False, True)))
        case "repeat":
            clause.weight *= 2
            return Repeat(scan, _number(draw, names(scan.columns)))
        case _:
            return scan


def _matching(draw: st.DrawFn, left: Plan, right: Plan) -> tuple[tuple[tuple[Scalar, Scalar], ...], tuple[Scalar, ...]]:
    """Keys and further conditions by which rows of two plans match."""
    keys: tuple[tuple[Scalar, Scalar], ...] = tuple(
        (_number(draw, names(left.columns)), _number(draw, names(right.columns)))
        for _ in range(_one_of(draw, (1, 1, 2, 0)))
    )
    both = names(left.columns) + names(right.columns)
    return keys, (_condition(draw, both),) if _one_of(draw, (False, False, True)) else ()


def _select(draw: st.DrawFn, plan: Plan, alias: str, width: int) -> Project:
    """A projection of *plan* to *width* columns, named as those of a derived table."""
    columns = names(plan.columns)
    dot = f"{alias}." if alias else ""
    return Project(
        plan,
        tuple(Output(Column(f"{dot}c{i + 1}", "bigint"), _number(draw, columns)) for i in range(width)),
    )


def _join_conditions(draw: st.DrawFn, inputs: Sequence[Plan]) -> tuple[Scalar, ...]:
    found: list[Scalar] = []
    for place in range(1, len(inputs)):
        if _one_of(draw, (True, True, True, False)):
            left = Col(_one_of(draw, names(inputs[place - 1].columns)))
            right: Scalar = Col(_one_of(draw, names(inputs[place].columns)))
            if _one_of(draw, (False, False, True)):
                right = Call("+", (right, Lit(1)))
            op = _one_of(draw, ("=", "=", "=", *_COMPARISONS))
            found.append(Call(op, (left, right)))
    return tuple(found)


def _from_where(draw: st.DrawFn, relations: Sequence[Relation]) -> tuple[Plan, int]:
    clause = _From(relations)
    inputs = [_item(draw, clause)]
    for _ in range(_one_of(draw, (0, 1, 0, 1, 2))):
        if clause.fitting:
            inputs.append(_item(draw, clause))
    plan = inputs[0] if len(inputs) == 1 else Join(tuple(inputs), _join_conditions(draw, inputs))
    if _one_of(draw, (False, True, False)):
        plan = Filter(plan, _condition(draw, names(plan.columns)))
    return plan, clause.weight


def _query(draw: st.DrawFn, relations: Sequence[Relation]) -> tuple[Plan, int]:
    """A select, or a union of two selects, with one to three columns."""
    width = draw(st.integers(1, 3))
    first, weight = _from_where(draw, relations)
    result: Plan = _select(draw, first, "", width)
    if _one_of(draw, (False, False, False, True)):
        # Aliases start again in the second select; its columns may have other names than the first's.
        second, more = _from_where(draw, relations)
        result = UnionAll((result, _select(draw, second, _one_of(draw, ("", "z")), width)))
        weight += more
    return result, weight


# Blocks


def _block(draw: st.DrawFn, relations: Sequence[Relation], node: str) -> tuple[Block, int]:
    match _one_of(draw, ("plain", "group", "group", "group", "distinct", "set operation")):
        case "set operation":
            return _set_operation(draw, relations, node)
        case "plain":
            body, weight = _query(draw, relations)
            return _plain(draw, node, body), weight
        case "distinct":
            body, weight = _query(draw, relations)
            keys = tuple(Output(column, Col(column.name)) for column in body.columns)
            return Block(node, body, keys, (_count_of_rows(),), outputs=keys), weight
        case _:
            body, weight = _one_of(draw, (_from_where, _from_where, _query))(draw, relations)
            return _grouped(draw, node, body), weight


def _plain(draw: st.DrawFn, node: str, body: Plan) -> Block:
    """The body's rows; now and then a reader sees only some of them, or other columns."""
    columns = names(body.columns)
    having = _condition(draw, columns) if _one_of(draw, (False, False, False, True)) else None
    outputs = _select(draw, body, "", 2).outputs if _one_of(draw, (False, False, False, True)) else ()
    return Block(node, body, having=having, outputs=outputs)


def _set_operation(draw: st.DrawFn, relations: Sequence[Relation], node: str) -> tuple[Block, int]:
    """INTERSECT or EXCEPT, of distinct rows or of all: each row with how often either side has it."""
    width = draw(st.integers(1, 2))
    sides, weights = [], 0
    for number in range(2):
        body, weight = _from_where(draw, relations)
        columns = names(body.columns)
        outputs = [Output(Column(f"c{i + 1}", "bigint"), _number(draw, columns)) for i in range(width)]
        sides.append(Project(body, (*outputs, Output(Column("side", "int"), Lit(number)))))
        weights += weight
    keys = tuple(Output(column, Col(column.name)) for column in sides[0].columns[:-1])
    counts = tuple(
        Partial(Column(f"n{number}", "bigint", False), "count", None, Call("=", (Col("side"), Lit(number))))
        for number in range(2)
    )
    first, second = Col("n0"), Col("n1")
    operation = _one_of(draw, ("intersect", "except", "intersect all", "except all"))
    having: Scalar | None = None
    times: Scalar | None = None
    match operation:
        case "intersect":
            having = Call("and", (Call(">", (first, Lit(0))), Call(">", (second, Lit(0)))))
        case "except":
            having = Call("and", (Call(">", (first, Lit(0))), Call("=", (second, Lit(0)))))
        case "intersect all":
            times = Call("case", (Call("<", (first, second)), first, second))
        case _:
            times = Call("-", (first, second))
    block = Block(node, UnionAll(tuple(sides)), keys, (_count_of_rows(), *counts), having, keys, times)
    return block, weights


def _count_of_rows() -> Partial:
    return Partial(Column(COUNT, "bigint", False), "count")


def _grouped(draw: st.DrawFn, node: str, body: Plan) -> Block:
    columns = names(body.columns)
    keys = tuple(
        Output(Column(f"k{i + 1}", "bigint"), _number(draw, columns)) for i in range(_one_of(draw, (1, 0, 2, 1)))
    )
    partials = [_count_of_rows()]
    visible = [Output(key.column, Col(key.name)) for key in keys]
    visible.append(Output(Column("n", "bigint"), Col(COUNT)))
    for place in range(draw(st.integers(0, 3))):
        added, value = _aggregate(draw, columns, f"p{place + 1}")
        partials += added
        visible.append(Output(Column(f"o{place + 1}", "bigint"), value))
    if _one_of(draw, (False, True)):
        partials = [*partials[1:], partials[0]]
    stored = [key.name for key in keys] + [partial.name for partial in partials]
    having = _condition(draw, stored) if _one_of(draw, (False, False, True)) else None
    kept = [output for output in visible if _one_of(draw, (True, True, True, False))]
    return Block(node, body, keys, tuple(partials), having, tuple(kept[:3]))


def _aggregate(draw: st.DrawFn, columns: Sequence[str], name: str) -> tuple[list[Partial], Scalar]:
    """The partials of one aggregate, and its value."""
    column = Column(name, "bigint")
    argument = _number(draw, columns)
    where = _condition(draw, columns) if _one_of(draw, (False, False, True)) else None
    match _one_of(draw, ("sum", "min", "max", "count", "count(*)")):
        case "sum":
            # The sum of no value is NULL, so a sum needs a count of its own.
            number = Column(f"{name}_n", "bigint", False)
            partials = [Partial(column, "sum", argument, where), Partial(number, "count", argument, where)]
            return partials, Call("case", (Call(">", (Col(number.name), Lit(0))), Col(name)))
        case "min":
            return [Partial(column, "min", argument, where)], Col(name)
        case "max":
            return [Partial(column, "max", argument, where)], Col(name)
        case "count":
            return [Partial(column, "count", argument, where)], Col(name)
        case _:
            return [Partial(column, "count", None, where)], Col(name)


# Changes


def _step(draw: st.DrawFn, leaves: Sequence[Relation], state: Mapping[str, SignedBag], insert_only: bool) -> Step:
    step: dict[str, SignedBag] = {}
    for leaf in leaves:
        touches = _one_of(draw, (1, 0, 2, 3))
        now = state[leaf.name]
        for _ in range(touches):
            now = now + _touch(draw, now, len(leaf.fields), insert_only)
        if touches:
            step[leaf.name] = now - state[leaf.name]
    return step


_TOUCHES = ("insert", "delete", "update", "insert twice", "delete all copies", "clear", "nothing")


def _touch(draw: st.DrawFn, now: SignedBag, width: int, insert_only: bool) -> SignedBag:
    kind = _one_of(draw, _TOUCHES)
    if kind == "nothing":
        return SignedBag()
    if insert_only or not now or kind.startswith("insert"):
        return SignedBag([(draw(_rows[width]), 2 if kind == "insert twice" else 1)])
    if kind == "clear":
        return -now
    row = _one_of(draw, list(now))
    match kind:
        case "update":
            return SignedBag([(row, -1), (draw(_rows[width]), 1)])
        case "delete all copies":
            return SignedBag([(row, -now[row])])
        case _:
            return SignedBag([(row, -1)])
