"""Keys are asked for early: before a join, of the input of it that has them.

Where groups are computed anew, rows are kept whose keys are among few. Asked of the rows of a join, that comes too
late: all of a table would have met all of another. Where one input has all columns of the key, its rows are chosen
before they are joined, and are few enough to say what is to be sought in the next table. The result is the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from strandline.algebra.constraints import column_of
from strandline.algebra.plan import (
    Exists,
    Filter,
    Join,
    OuterJoin,
    Plan,
    Project,
    SemiJoin,
    UnionAll,
    map_children,
    with_inputs,
)
from strandline.algebra.scalar import Col
from strandline.algebra.schema import names


def early(plan: Plan) -> Plan:
    """*plan*, choosing rows by keys before they are joined; a part that stands in several places still does."""
    known: dict[int, tuple[Plan, Plan]] = {}

    def visit(part: Plan) -> Plan:
        if id(part) not in known:
            known[id(part)] = part, _asked_early(map_children(part, visit))
        return known[id(part)][1]

    return visit(plan)


def _asked_early(plan: Plan) -> Plan:
    if not isinstance(plan, SemiJoin):
        return plan
    columns = [column_of(value) for value in plan.values]
    known = [column for column in columns if column is not None]
    return (_below(plan, known) if len(known) == len(columns) else None) or plan


def _below(asked: SemiJoin, columns: list[str]) -> Plan | None:
    """The rows of its input that the keys match, by *columns*; None if there is no join to come before."""
    match asked.input:
        case Filter(child):
            found = _below(replace(asked, input=child), columns)
            return None if found is None else with_inputs(asked.input, input=found)
        case Project(child, outputs):
            passed = _renamed(columns, {output.name: column_of(output.value) for output in outputs})
            found = None if passed is None else _below(_of(asked, child, passed), passed)
            return None if found is None else with_inputs(asked.input, input=found)
        case Join(inputs):
            holding = next((child for child in inputs if {*names(child.columns)}.issuperset(columns)), None)
            if holding is None or len(inputs) < 2:
                return None
            chosen = _chosen(asked, holding, columns)
            return with_inputs(asked.input, inputs=tuple(chosen if child is holding else child for child in inputs))
        case UnionAll(inputs):
            placed = [dict(zip(names(asked.columns), names(child.columns), strict=True)) for child in inputs]
            own = [[there[column] for column in columns] for there in placed]
            asks = [_of(asked, child, theirs) for child, theirs in zip(inputs, own, strict=True)]
            sunk = [_below(ask, theirs) for ask, theirs in zip(asks, own, strict=True)]
            if not any(sunk):
                return None
            return with_inputs(asked.input, inputs=tuple(one or ask for one, ask in zip(sunk, asks, strict=True)))
        case Exists(left) | OuterJoin(left, full=False) if {*names(left.columns)}.issuperset(columns):
            return with_inputs(asked.input, left=_chosen(asked, left, columns))
        case _:
            return None


def _chosen(asked: SemiJoin, child: Plan, columns: list[str]) -> Plan:
    """The rows of an input that the keys match."""
    own = _of(asked, child, columns)
    return _below(own, columns) or own


def _of(asked: SemiJoin, child: Plan, columns: list[str]) -> SemiJoin:
    return replace(asked, input=child, values=tuple(map(Col, columns)))


def _renamed(columns: list[str], passed: Mapping[str, str | None]) -> list[str] | None:
    """What *columns* are called below a projection; None if one is computed there."""
    found = [passed[column] for column in columns]
    known = [column for column in found if column is not None]
    return known if len(known) == len(found) else None
