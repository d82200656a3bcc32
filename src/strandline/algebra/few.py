"""A join begins at its delta, and says how long it stays small.

An engine that knows only how large its files are takes a join of two inputs for a large one, and moves all of the third
to meet it. Here it is known how many rows a delta has, and how many rows of one table there are for each of another.
What is joined so far is nested and marked as few rows, so that it is sent to where the next table lies. The result is
the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from strandline.algebra.constraints import column_of
from strandline.algebra.plan import (
    At,
    Backing,
    Change,
    Exists,
    Filter,
    GroupBy,
    Join,
    MergeSummary,
    Negate,
    Output,
    Plan,
    Project,
    Scan,
    SemiJoin,
    UnionAll,
    map_children,
    scans,
)
from strandline.algebra.scalar import Call, Col, Scalar
from strandline.algebra.scalar import columns as columns_of
from strandline.algebra.schema import Column, names

MOST_ROWS = 500_000
"""So many joined rows are few."""

LARGE_ROWS = 100_000
"""A table of no more rows than these is met as an engine likes."""


@dataclass(frozen=True)
class Few(Join):
    """A join that gives few rows."""


@dataclass(frozen=True)
class Rows:
    """How many rows an input has, and how many the relation that they belong to."""

    own: int
    whole: int


RowsOf = Callable[[Scan], Rows | None]
"""The rows of a scanned delta or table, if they are known."""


def from_the_delta(plan: Plan, rows_of: RowsOf) -> Plan:
    """*plan* with each of its joins begun at a delta, and nested as long as it stays small.

    Where few rows are looked for in a large table, only those that may match go on.
    """
    found = map_children(plan, lambda child: from_the_delta(child, rows_of))
    if isinstance(found, Exists):
        return _asked(found, rows_of)
    if isinstance(found, MergeSummary):
        return _met(found, rows_of)
    if type(found) is not Join:
        return found
    found = _flat(found)
    nested = _nested(found, rows_of) if len(found.inputs) > 2 else None
    if nested is None:
        return found
    return Project(nested, tuple(Output(column, Col(column.name)) for column in found.columns))


def _asked(node: Exists, rows_of: RowsOf) -> Exists:
    """A semi or anti join whose right input, if it is large and the left one few rows, is reduced to what can match.

    An engine would move all of it: it can send the right input of such a join to the left one, and not the other way.
    """
    if not node.keys or not _small(node.left, rows_of) or not _large(node.right, rows_of):
        return node
    keys = tuple(Output(Column(f"asked {n + 1}", ""), ours) for n, (ours, _) in enumerate(node.keys))
    theirs = tuple(theirs for _, theirs in node.keys)
    return replace(node, right=SemiJoin(node.right, theirs, Project(node.left, keys)))


def _met(node: MergeSummary, rows_of: RowsOf) -> MergeSummary:
    """A summary delta merged with stored groups: of a large table only groups go on that changed rows belong to.

    An engine would move all of it: it cannot send the side of an outer join that stays to the other one.
    """
    group = node.summary.input if isinstance(node.summary, Filter) else node.summary
    if not node.keys or not isinstance(group, GroupBy) or not _stored(node.old):
        return node
    if not _small(group.input, rows_of) or not _large(node.old, rows_of):
        return node
    keys = tuple(Output(Column(f"met {n + 1}", ""), key.value) for n, key in enumerate(group.keys))
    return replace(node, old=SemiJoin(node.old, tuple(map(Col, node.keys)), Project(group.input, keys)))


def _stored(plan: Plan) -> bool:
    """Whether a plan reads the table of a node, and no more."""
    while isinstance(plan, Filter):
        plan = plan.input
    return isinstance(plan, Scan) and isinstance(plan.operand, Backing)


def _small(plan: Plan, rows_of: RowsOf) -> bool:
    """Whether a plan begins at deltas of few rows, and meets small tables alone."""
    found = [(isinstance(scan.operand, Change), rows_of(scan)) for scan in scans(plan)]
    return any(delta for delta, _ in found) and all(
        rows is not None and rows.own <= (MOST_ROWS if delta else LARGE_ROWS) for delta, rows in found
    )


def _large(plan: Plan, rows_of: RowsOf) -> bool:
    return any(rows is not None and rows.own > LARGE_ROWS for rows in map(rows_of, scans(plan)))


@dataclass(frozen=True)
class _Input:
    """An input of a join: rows of one relation, selected from scans with the same columns; and how many they are."""

    plan: Plan
    scans: tuple[Scan, ...]
    rows: Rows

    @property
    def changes(self) -> bool:
        """Whether all of it are changes."""
        return all(isinstance(scan.operand, Change) for scan in self.scans)

    @property
    def names(self) -> frozenset[str]:
        return frozenset(names(self.plan.columns))

    def keyed_by(self, columns: frozenset[str]) -> bool:
        """Whether *columns* hold a key of it; what is new of a table has the table's."""
        scan = max(self.scans, key=lambda scan: len(scan.key))
        fields = {field.name: column.name for field, column in zip(scan.fields, scan.columns, strict=True)}
        return bool(scan.key) and all(fields.get(name) in columns for name in scan.key)


def _flat(join: Join) -> Join:
    """*join* with the inputs of those of its inputs that are joins themselves, as of relations that views share."""
    inputs: list[Plan] = []
    conditions = list(join.conditions)
    for child in join.inputs:
        if type(child) is Join:
            inputs.extend(child.inputs)
            conditions.extend(child.conditions)
        else:
            inputs.append(child)
    return join if len(inputs) == len(join.inputs) else Join(tuple(inputs), tuple(conditions))


def _nested(join: Join, rows_of: RowsOf) -> Join | None:
    """The join from its smallest delta on; None if it has none, or not all of its inputs are known."""
    inputs = [_input(child, rows_of) for child in join.inputs]
    known = [each for each in inputs if each is not None]
    deltas = [each for each in known if each.changes]
    if len(known) < len(inputs) or not deltas:
        return None
    start = min(deltas, key=lambda each: each.rows.own)
    left = [each for each in known if each is not start]
    pairs = list(_equalities(join.conditions))
    current: Plan = start.plan
    joined, rows, waiting = [start], float(start.rows.own), list(join.conditions)
    flat: list[Plan] = [current]
    nested = False
    while left:
        grown = [(_growth(joined, each, pairs), each) for each in left]
        met = [(growth, each) for growth, each in grown if growth is not None]
        if not met:
            return None
        growth, nearest = min(met, key=lambda found: found[0])
        if len(flat) > 1 and rows <= MOST_ROWS and nearest.rows.own > LARGE_ROWS:
            current, waiting = _joined(Few, flat, waiting)
            flat, nested = [current], True
        flat.append(nearest.plan)
        joined.append(nearest)
        left.remove(nearest)
        rows *= growth
    return Join(tuple(flat), tuple(waiting)) if nested else None


def _joined(kind: type[Join], inputs: Sequence[Plan], waiting: Sequence[Scalar]) -> tuple[Join, list[Scalar]]:
    """A join of *inputs* by those conditions that they can be asked, and the others."""
    there = frozenset(name for each in inputs for name in names(each.columns))
    own = tuple(condition for condition in waiting if columns_of(condition) <= there)
    return kind(tuple(inputs), own), [condition for condition in waiting if condition not in own]


def _growth(joined: Sequence[_Input], other: _Input, pairs: Sequence[tuple[str, str]]) -> float | None:
    """How many rows of *other* there are for each row of what is joined so far; None if nothing joins them."""
    met = [(a, b) for a, b in (*pairs, *((b, a) for a, b in pairs)) if b in other.names]
    by = [(each, b) for a, b in met for each in joined if a in each.names]
    if not by:
        return None
    if other.keyed_by(frozenset(column for _, column in by)):
        return 1.0
    share = other.rows.own / max(other.rows.whole, 1)
    return max(1.0, share * min(other.rows.whole / max(each.rows.whole, 1) for each, _ in by))


def _input(plan: Plan, rows_of: RowsOf) -> _Input | None:
    found = _selected(plan)
    rows = [rows_of(scan) for scan in found]
    known = [each for each in rows if each is not None]
    alike = len({(scan.columns, _relation(scan)) for scan in found}) == 1
    if not alike or len(known) < len(rows):
        return None
    return _Input(plan, found, Rows(sum(each.own for each in known), max(each.whole for each in known)))


def _selected(plan: Plan) -> tuple[Scan, ...]:
    """The scans whose rows *plan* selects from, renames and unites; none if it does anything else."""
    match plan:
        case Scan():
            return (plan,)
        case Filter(input=child) | Project(input=child) | SemiJoin(input=child) | Negate(input=child):
            return _selected(child)
        case UnionAll(inputs):
            below = [_selected(child) for child in inputs]
            return tuple(scan for each in below for scan in each) if all(below) else ()
        case _:
            return ()


def _relation(scan: Scan) -> str | None:
    return scan.operand.relation if isinstance(scan.operand, At | Change) else None


def _equalities(conditions: Sequence[Scalar]) -> Iterator[tuple[str, str]]:
    for condition in conditions:
        if isinstance(condition, Call) and condition.op == "=":
            a, b = map(column_of, condition.args)
            if a is not None and b is not None:
                yield a, b
