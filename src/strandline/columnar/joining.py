"""Joins: in which order their inputs are read, and what each is met with by those before it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from strandline.algebra.plan import Filter, Plan
from strandline.algebra.scalar import Call, Col, Scalar, Text, conjuncts
from strandline.algebra.scalar import columns as columns_of
from strandline.algebra.schema import names
from strandline.columnar.matching import MOST_PAIRS, Flags, Keys, Numbers, keys_of, pairs
from strandline.columnar.rows import all_chosen, beside
from strandline.columnar.scalars import holds
from strandline.columnar.types import NotHere

Met = Mapping[str, pa.ChunkedArray]
"""Values of columns that others have to meet: rows with other values do not matter."""

MOST_BYTES = 2 << 30
"""What a join gives is left to Spark if it takes more than these."""

_LEFT, _RIGHT = "place in the left input", "place in the right input"

Sides = tuple[Scalar, Scalar]
"""A value of either of two inputs, which have to be equal."""


MANY_PAIRS = 1_000_000
MANY_TIMES = 2
"""A join that gives no more rows than these, or so many for each of the longer input, is made as soon as it can be."""


@dataclass(frozen=True)
class _Other:
    """An input that was read, beside what is joined already, and the conditions that equate values of the two."""

    joined: pa.Table
    rows: pa.Table
    equal: Mapping[Scalar, Sides]

    @cached_property
    def keys(self) -> Keys:
        """The keys of both, by these conditions."""
        ours, theirs = [one for one, _ in self.equal.values()], [other for _, other in self.equal.values()]
        return keys_of(self.joined, ours, self.rows, theirs, nulls_match=False)

    @cached_property
    def times(self) -> float:
        """How often a row of the longer input is expected to meet one of the shorter, if it meets any."""
        shorter = min(self.keys.left, self.keys.right, key=len)
        return len(shorter) / max(len(np.unique(shorter)), 1)

    @property
    def multiplies(self) -> bool:
        """Whether many more rows are expected than either input has."""
        shorter, longer = sorted((self.joined.num_rows, self.rows.num_rows))
        return shorter * longer > MANY_PAIRS and self.times > MANY_TIMES and longer * self.times > MANY_PAIRS


class Joining:
    """A join from its smallest input on.

    Inputs that were read are joined first, the smallest of those that an equality joins; then *large* ones, in the
    order in which they are given, each met by all that was read.
    """

    def __init__(
        self,
        small: Sequence[pa.Table],
        large: Sequence[Plan],
        conditions: Sequence[Scalar],
        meeting: Callable[[Plan, Met], pa.Table],
    ) -> None:
        self._waiting = list(conditions)
        self._small = sorted((self._own(rows) for rows in small), key=lambda rows: rows.num_rows)
        self._large = list(large)
        self._meeting = meeting
        self._joined = self._small.pop(0)

    def rows(self) -> pa.Table:
        """The rows of the join."""
        while self._small or self._large:
            other = self._next()
            self._waiting = [each for each in self._waiting if each not in other.equal]
            self._joined = self._own(_joined(other))
        return all_chosen(self._joined, self._waiting)

    def _next(self) -> _Other:
        """The input to be joined next: one that an equality joins, if there is any.

        One that multiplies rows waits as long as others can be joined or read: more conditions may hold of it then.
        """
        while True:
            others = [_Other(self._joined, rows, self._equal(self._joined, rows.schema.names)) for rows in self._small]
            equated = [other for other in others if other.equal]
            for other in equated:
                if not other.multiplies:
                    return self._taken(other)
            if not self._large:
                return self._taken(min(equated, key=lambda other: other.times, default=others[0]))
            try:
                self._small.insert(0, self._read())
            except NotHere:
                if not equated:
                    raise
                return self._taken(min(equated, key=lambda other: other.times))

    def _taken(self, other: _Other) -> _Other:
        self._small = [rows for rows in self._small if rows is not other.rows]
        return other

    def _read(self) -> pa.Table:
        """One of the large inputs: of those that are joined by an equality the first that can be read, else any."""
        why = NotHere("a join of large tables")
        for plan in sorted(self._large, key=lambda plan: not self._equal(self._joined, names(plan.columns))):
            try:
                rows = self._meeting(plan, self._met(plan))
            except NotHere as error:
                why = error
                continue
            self._large = [each for each in self._large if each is not plan]
            return self._own(rows)
        raise why

    def _met(self, plan: Plan) -> Met:
        """What the columns of an input are met with: the fewest rows that were read."""
        met: dict[str, pa.ChunkedArray] = {}
        for rows in (self._joined, *self._small):
            for name, values in met_by(rows, list(self._equal(rows, names(plan.columns)).values())).items():
                if name not in met or len(values) < len(met[name]):
                    met[name] = values
        return met

    def _own(self, rows: pa.Table) -> pa.Table:
        """The rows for which conditions hold that can be asked of them; they are asked once."""
        own = [condition for condition in self._waiting if columns_of(condition) <= set(rows.schema.names)]
        self._waiting = [condition for condition in self._waiting if condition not in own]
        return all_chosen(rows, own)

    def _equal(self, rows: pa.Table, columns: Collection[str]) -> dict[Scalar, Sides]:
        """The conditions that equate a value of *rows* with one of other *columns*, and the two, in that order."""
        ours, theirs = set(rows.schema.names), set(columns)
        found: dict[Scalar, Sides] = {}
        for condition in self._waiting:
            if isinstance(condition, Call) and condition.op == "=":
                one, other = condition.args
                a, b = columns_of(one), columns_of(other)
                if a and b and a <= ours and b <= theirs:
                    found[condition] = one, other
                elif a and b and b <= ours and a <= theirs:
                    found[condition] = other, one
        return found


def _joined(other: _Other) -> pa.Table:
    left, right = other.joined, other.rows
    if not other.equal and left.num_rows * right.num_rows > MOST_PAIRS:
        raise NotHere("a product of many rows")
    ours, theirs = pairs(other.keys)
    if len(ours) * (_width(left) + _width(right)) > MOST_BYTES:
        raise NotHere(f"a join of {len(ours)} long rows")
    return beside(left, right, ours, theirs)


def _width(rows: Any) -> float:
    """The bytes of a row."""
    return float(rows.nbytes / max(rows.num_rows, 1))


def unfiltered(plan: Plan) -> tuple[Plan, list[Scalar]]:
    """What filters stand above, and their conditions."""
    conditions: list[Scalar] = []
    while isinstance(plan, Filter):
        conditions = [*conjuncts(plan.condition), *conditions]
        plan = plan.input
    return plan, conditions


def selected_from(plan: Plan, conditions: Sequence[Scalar]) -> bool:
    """Whether something is asked of an input of a join, apart from conditions that are made up to read less."""
    own = [condition for condition in conditions if columns_of(condition) <= set(names(plan.columns))]
    return any(isinstance(condition, Text) for condition in (*unfiltered(plan)[1], *own))


def met_by(rows: pa.Table, sides: Sequence[Sides], *, nulls: bool = False) -> Met:
    """What columns of another input are met with by *rows*, which have the left ones of *sides*.

    Where NULL meets NULL, with *nulls*, nothing is said of a column that may be NULL.
    """
    columns = [(ours.name, theirs.name) for ours, theirs in sides if isinstance(ours, Col) and isinstance(theirs, Col)]
    return {theirs: rows.column(ours) for ours, theirs in columns if not (nulls and rows.column(ours).null_count)}


def pairs_where(left: pa.Table, right: pa.Table, found: Keys, conditions: Sequence[Scalar]) -> tuple[Numbers, Numbers]:
    """The places of rows that match by their keys, and for which all conditions hold."""
    ours, theirs = pairs(found)
    if not conditions:
        return ours, theirs
    read = frozenset(name for condition in conditions for name in columns_of(condition))
    one, other = ({name: rows.column(name) for name in rows.schema.names if name in read} for rows in (left, right))
    # A condition may read no column at all.
    numbered = (
        pa.table({**one, _LEFT: np.arange(left.num_rows)}),
        pa.table({**other, _RIGHT: np.arange(right.num_rows)}),
    )
    both = beside(*numbered, ours, theirs)
    there: Flags = np.ones(len(ours), np.bool_)
    for condition in conditions:
        there &= np.asarray(pc.fill_null(holds(condition, both), False), np.bool_)
    return ours[there], theirs[there]
