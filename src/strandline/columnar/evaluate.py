"""A plan evaluated over Arrow's columns: unit rows, with a column for the sign where they are signed.

It is one of three evaluators of the same algebra. The reference (:mod:`strandline.algebra.evaluate`) says what plans
mean, Spark evaluates any of them over any amount of rows, and this one those that are made of operators with results
that are known exactly, over rows that fit into memory. Whatever it is not sure of, it leaves to Spark.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from strandline.algebra.plan import (
    At,
    Backing,
    Change,
    Exists,
    Filter,
    GroupBy,
    Join,
    Limit,
    MergeSummary,
    Negate,
    Net,
    OuterJoin,
    Plan,
    Project,
    Repeat,
    Scan,
    SemiJoin,
    UnionAll,
    Values,
    decomposed,
    scans,
)
from strandline.algebra.scalar import Col, Scalar, conjuncts
from strandline.algebra.schema import names
from strandline.columnar.conversions import cast
from strandline.columnar.grouping import grouped, netted
from strandline.columnar.joining import Joining, Met, met_by, pairs_where, selected_from, unfiltered
from strandline.columnar.matching import MOST_PAIRS, Keys, keys_of, matched
from strandline.columnar.merging import merged
from strandline.columnar.ordering import limited
from strandline.columnar.rows import all_chosen, in_order, negated, projected, signed, united, with_sign
from strandline.columnar.scalars import column, computed
from strandline.columnar.types import NotHere, arrow_type
from strandline.columnar.values import Array
from strandline.sql.render import SIGN


class Reading(Protocol):
    """What the scans of a plan stand for."""

    def rows(self, scan: Scan, met: Met) -> pa.Table:
        """The rows of a scan under the names of its fields, with a column for the sign if its operand is a change.

        Of rows that are not *met*, by the names of fields, some may be left out.
        """

    def size(self, scan: Scan) -> int:
        """About how many rows a scan has."""


LARGE_ROWS = 100_000
"""An input of more rows is read when it is known what it is met with."""


def evaluate(plan: Plan, reading: Reading, *, sign: bool = False) -> pa.Table:
    """The rows of *plan*, in the types that its columns have in Spark; with *sign* they have one in any case."""
    found = _Evaluation(reading).rows(plan)
    return with_sign(found, 1) if sign and not signed(found) else found


class _Evaluation:
    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._known: dict[int, tuple[Plan, pa.Table]] = {}

    def rows(self, plan: Plan) -> pa.Table:
        """The rows of a plan; those of a part that stands in several places are computed once."""
        known = self._known.get(id(plan))
        if known is None:
            known = self._known[id(plan)] = plan, self._rows(plan)
        return known[1]

    def _rows(self, plan: Plan) -> pa.Table:
        match plan:
            case Scan():
                return self._scan(plan, {})
            case Values():
                return _values(plan)
            case Filter():
                return self._filter(plan, {})
            case Project(child, outputs):
                return projected(self.rows(child), outputs)
            case Join():
                return self._join(plan, plan.conditions, {})
            case UnionAll(inputs):
                return united([self.rows(child) for child in inputs], plan.columns)
            case Negate(child):
                return negated(self.rows(child))
            case Net(child):
                below = self.rows(child)
                return netted(below) if signed(below) else below
            case GroupBy(child):
                return grouped(plan, self.rows(child))
            case MergeSummary():
                return self._merge_summary(plan)
            case SemiJoin():
                return self._semi_join(plan, {})
            case Exists():
                return self._exists(plan)
            case OuterJoin():
                return self._outer_join(plan)
            case Repeat(child, times):
                return _repeated(self.rows(child), times)
            case Limit():
                return limited(plan, self.rows(plan.input))
            case _:
                raise NotHere(type(plan).__name__)

    def _scan(self, scan: Scan, met: Met) -> pa.Table:
        if not scan.fields:
            raise NotHere("rows without columns")
        found = self._reading.rows(scan, met)
        columns = [_typed(found.column(field.name), field.type) for field in scan.fields]
        sign = [SIGN] if signed(found) else []
        return pa.table([*columns, *(found.column(name) for name in sign)], names=[*names(scan.columns), *sign])

    def _filter(self, plan: Filter, met: Met) -> pa.Table:
        below, conditions = unfiltered(plan)
        if isinstance(below, Join):
            return self._join(below, (*below.conditions, *conditions), met)
        return all_chosen(self._meeting(below, met), conditions)

    def _meeting(self, plan: Plan, met: Met) -> pa.Table:
        """The rows of a plan that are *met*, by the names of its columns; perhaps more."""
        if not met or id(plan) in self._known or not self._is_large(plan):
            return self.rows(plan)
        match plan:
            case Scan():
                fields = {column.name: field.name for column, field in zip(plan.columns, plan.fields, strict=True)}
                return self._scan(plan, {fields[name]: values for name, values in met.items() if name in fields})
            case Filter():
                return self._filter(plan, met)
            case Join():
                return self._join(plan, plan.conditions, met)
            case Project(child, outputs):
                passed = {o.value.name: met[o.name] for o in outputs if isinstance(o.value, Col) and o.name in met}
                return projected(self._meeting(child, passed), outputs)
            case UnionAll(inputs):
                parts = []
                for child in inputs:
                    named = zip(names(plan.columns), names(child.columns), strict=True)
                    parts.append(self._meeting(child, {theirs: met[ours] for ours, theirs in named if ours in met}))
                return united(parts, plan.columns)
            case SemiJoin():
                return self._semi_join(plan, met)
            case _:
                return self.rows(plan)

    def _is_large(self, plan: Plan) -> bool:
        """Whether a plan selects from a table, or several, so large that it is worth knowing what it is met with."""
        match plan:
            case Scan(operand=At() | Backing()):
                return id(plan) not in self._known and self._reading.size(plan) > LARGE_ROWS
            case Filter(input=child) | Project(input=child) | SemiJoin(input=child):
                return self._is_large(child)
            case UnionAll(inputs) | Join(inputs):
                return any(map(self._is_large, inputs))
            case _:
                return False

    def _join(self, plan: Join, conditions: Sequence[Scalar], met: Met) -> pa.Table:
        """Large inputs are read when others are joined: first those that are selected from, then the smallest.

        Those of which values are *met* from outside, or chosen by keys, need not wait.
        """
        asked = [each for condition in conditions for each in conjuncts(condition)]
        large = [child for child in plan.inputs if self._is_large(child)]
        read: dict[int, pa.Table] = {}
        for child in large:
            told = {name: met[name] for name in names(child.columns) if name in met}
            with suppress(NotHere):
                if told or isinstance(child, SemiJoin):
                    read[id(child)] = self._meeting(child, told)
        large = [child for child in large if id(child) not in read]
        large.sort(key=lambda child: (not selected_from(child, asked), self._size(child)))
        if len(large) == len(plan.inputs):
            large.remove(min(large, key=self._size))
        there = [child for child in plan.inputs if not any(child is each for each in large)]
        small = [read[id(child)] if id(child) in read else self.rows(child) for child in there]
        return in_order(Joining(small, large, asked, self._meeting).rows(), plan.columns)

    def _size(self, plan: Plan) -> int:
        return sum(self._reading.size(scan) for scan in scans(plan))

    def _merge_summary(self, plan: MergeSummary) -> pa.Table:
        summary = self.rows(plan.summary)
        by = [(Col(key), Col(key)) for key in plan.keys]
        return merged(plan, self._meeting(plan.old, met_by(summary, by, nulls=True)), summary)

    def _semi_join(self, plan: SemiJoin, met: Met) -> pa.Table:
        theirs = self.rows(plan.keys)
        by = [Col(name) for name in names(plan.keys.columns)]
        asked = met_by(theirs, list(zip(by, plan.values, strict=True)), nulls=True)
        ours = self._meeting(plan.input, {**met, **asked})
        return ours.filter(matched(keys_of(ours, plan.values, theirs, by, nulls_match=True)))

    def _exists(self, plan: Exists) -> pa.Table:
        left, right = self._sides(plan)
        if signed(right):
            raise NotHere("a semi join with a delta")
        found = _matching(plan, left, right)
        there = matched(found)
        if plan.conditions:
            there[:] = False
            there[pairs_where(left, right, found, plan.conditions)[0]] = True
        return left.filter(~there if plan.negated else there)

    def _sides(self, plan: Exists) -> tuple[pa.Table, pa.Table]:
        """The rows of both inputs of a semi or anti join: what is read first says what matters of the other.

        That is the left one. But of a large one that nothing is selected from, only rows that meet the right one stay.
        """
        if not plan.negated and self._all_wait_for(plan.right, plan.left):
            right = self.rows(plan.right)
            return self._meeting(plan.left, met_by(right, [(theirs, ours) for ours, theirs in plan.keys])), right
        left = self.rows(plan.left)
        return left, self._meeting(plan.right, met_by(left, plan.keys))

    def _all_wait_for(self, other: Plan, plan: Plan) -> bool:
        """Whether tables are joined as a whole by a *plan*, of more rows than those that another is made of."""
        below, conditions = unfiltered(plan)
        inputs, asked = (below.inputs, below.conditions) if isinstance(below, Join) else ((below,), ())
        whole = self._is_large(below) and not any(selected_from(each, (*asked, *conditions)) for each in inputs)
        changes = any(isinstance(scan.operand, Change) for scan in scans(plan))
        return whole and not changes and self._size(other) <= self._size(plan)

    def _outer_join(self, plan: OuterJoin) -> pa.Table:
        if plan.full or any(isinstance(scan.operand, Change) for scan in scans(plan)):
            return self.rows(decomposed(plan))
        left = self.rows(plan.left)
        right = self._meeting(plan.right, met_by(left, plan.keys))
        ours, theirs = pairs_where(left, right, _matching(plan, left, right), plan.conditions)
        alone = np.setdiff1d(np.arange(left.num_rows), ours)
        missing = np.repeat([False, True], [len(theirs), len(alone)])
        nowhere = pa.array(np.concatenate([theirs, np.zeros(len(alone), np.int64)]), mask=missing)
        both = left.take(pa.array(np.concatenate([ours, alone])))
        for name, values in zip(right.schema.names, right.take(nowhere).columns, strict=True):
            both = both.append_column(name, values)
        return in_order(both, plan.columns)


def _matching(plan: Exists | OuterJoin, left: pa.Table, right: pa.Table) -> Keys:
    ours, theirs = [ours for ours, _ in plan.keys], [theirs for _, theirs in plan.keys]
    return keys_of(left, ours, right, theirs, nulls_match=False)


def _repeated(rows: pa.Table, times: Scalar) -> pa.Table:
    counts = np.maximum(pc.fill_null(column(times, rows).cast(pa.int64()), 0).to_numpy(), 0)
    if int(counts.sum()) > MOST_PAIRS:
        raise NotHere("many copies of rows")
    return rows.take(pa.array(np.repeat(np.arange(rows.num_rows), counts)))


def _typed(values: Array, kind: str) -> Array:
    """Values as they are read, in the type that they have in Spark."""
    wanted = arrow_type(kind)
    if values.type == wanted:
        return values
    alike = [
        pa.types.is_decimal(wanted) and pa.types.is_decimal(values.type) and values.type.scale == wanted.scale,
        pa.types.is_signed_integer(wanted) and pa.types.is_signed_integer(values.type),
        pa.types.is_string(wanted) and (pa.types.is_large_string(values.type) or pa.types.is_string_view(values.type)),
        pa.types.is_binary(wanted) and (pa.types.is_large_binary(values.type) or pa.types.is_binary_view(values.type)),
        pa.types.is_timestamp(wanted) and pa.types.is_timestamp(values.type) and values.type.tz == wanted.tz,
        pa.types.is_dictionary(values.type) and values.type.value_type == wanted,
    ]
    if not any(alike):
        raise NotHere(f"{values.type} for {kind}")
    return values.cast(wanted)


def _values(plan: Values) -> pa.Table:
    one = pa.table({"row": [0]})
    columns = []
    for place, each in enumerate(plan.columns):
        kind = arrow_type(each.type)
        written = [cast(computed(row[place], one), each.type) for row in plan.rows]
        if not all(value.constant for value in written):
            raise NotHere("rows that are computed one by one")
        columns.append(pa.array([value.data.as_py() for value in written], kind))
    return pa.table(columns, names=list(names(plan.columns)))
