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
    """*plan*, choosing rows by keys before they are joined."""
    found = map_children(plan, early)
    if not isinstance(found, SemiJoin):
        return found
    columns = [column_of(value) for value in found.values]
    known = [column for column in columns if column is not None]
    return (_below(found, known) if len(known) == len(columns) else None) or found


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
            if all(_below(_of(asked, child, c), c) is None for child, c in zip(inputs, own, strict=True)):
                return None
            chosen_of = (_chosen(asked, child, c) for child, c in zip(inputs, own, strict=True))
            return with_inputs(asked.input, inputs=tuple(chosen_of))
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
