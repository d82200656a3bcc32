"""Deltas inside a body that are computed, netted and stored before its own.

Of two inputs that are matched one changes, and the other is read near the keys of that change. The delta of a scan is
stored, and its keys are known. That of any other input is a plan: its keys are those of all that it is computed from,
and its rows may be many that cancel out, as with an average that every row is compared with. Netted and stored under a
name, as if the input were a relation, it is few rows whose keys are known, and what they meet can be sought.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from strandline.algebra.plan import (
    Change,
    Exists,
    Filter,
    OuterJoin,
    Output,
    Plan,
    Project,
    Scan,
    SemiJoin,
    children,
    relations,
)
from strandline.algebra.scalar import Scalar
from strandline.algebra.schema import Column, comparable

_UNSTORED = ("void", "interval")
"""Types that files have no place for."""


@dataclass(frozen=True)
class Inner:
    """An input inside a body, under the name that its delta is stored by."""

    name: str
    plan: Plan
    empty: bool = False
    """Whether its delta is known to have no rows."""

    @property
    def delta(self) -> Scan | None:
        """Its delta, once that is stored."""
        return None if self.empty else Scan(Change(self.name), "", self.plan.columns)


@dataclass(frozen=True)
class Candidate:
    """An input whose delta could be stored, and what it *meets*: rows of other plans that have values of its delta."""

    plan: Plan
    meets: tuple[tuple[Plan, tuple[Scalar, ...], tuple[Scalar, ...]], ...]
    """Plans, with values of their rows that equal values of its own."""

    def asked(self, delta: Plan) -> Iterator[SemiJoin]:
        """The rows that its *delta* meets."""
        for other, theirs, ours in self.meets:
            keys = tuple(Output(Column(f"met {n + 1}", ""), value) for n, value in enumerate(ours))
            yield SemiJoin(other, theirs, Project(delta, keys))


def candidates(body: Plan, changed: Collection[str]) -> Iterator[Candidate]:
    """The inputs of outer, semi and anti joins that change and are computed; those below others first.

    The rows of a changed right input are asked whether there were others with the same key.
    """
    for child in children(body):
        yield from candidates(child, changed)
    if isinstance(body, Exists | OuterJoin) and body.keys:
        ours, theirs = (tuple(values) for values in zip(*body.keys, strict=True))
        if _computed(body.left, changed):
            yield Candidate(body.left, ((body.right, theirs, ours),))
        if _computed(body.right, changed):
            yield Candidate(body.right, ((body.left, ours, theirs), (body.right, theirs, theirs)))


def _computed(plan: Plan, changed: Collection[str]) -> bool:
    """Whether a plan changes, is more than a selection of rows, and gives rows that can be netted and stored."""
    there = all(comparable(column) and not column.type.startswith(_UNSTORED) for column in plan.columns)
    return there and not _selected(plan) and any(relation in changed for relation in relations(plan))


def _selected(plan: Plan) -> bool:
    """Whether a plan does nothing but select rows of one scan, and name their columns."""
    while isinstance(plan, Filter | Project):
        plan = plan.input
    return isinstance(plan, Scan)
