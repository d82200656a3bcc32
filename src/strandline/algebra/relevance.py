"""Changes that cannot matter to a view: rows that fail a selection which stands on their relation alone (WHIPS, 7.2).

They are told before any join: a relation whose changes are all of that kind did not change, as far as the view goes.
"""

from __future__ import annotations

from collections.abc import Iterator

from strandline.algebra.plan import At, Exists, Filter, Join, Plan, Scan, children
from strandline.algebra.scalar import Scalar, columns, conjuncts
from strandline.algebra.schema import names

Selection = tuple[Scan, tuple[Scalar, ...]]
"""A scan, and the conditions that each of its rows must meet to matter."""


def selections(body: Plan, relation: str) -> tuple[Selection, ...]:
    """For each occurrence of *relation* in a body its local selection; nothing if every row may matter somewhere."""
    found = tuple(
        selection
        for selection in _selections(body, ())
        if isinstance(selection[0].operand, At) and selection[0].operand.relation == relation
    )
    return found if all(conditions for _, conditions in found) else ()


def _selections(plan: Plan, above: tuple[Scalar, ...]) -> Iterator[Selection]:
    match plan:
        case Scan():
            own = set(names(plan.columns))
            yield plan, tuple(c for c in above if columns(c) and columns(c) <= own)
        case Filter(child, condition):
            yield from _selections(child, (*above, *conjuncts(condition)))
        case Join(inputs, conditions):
            for child in inputs:
                yield from _selections(child, (*above, *(c for given in conditions for c in conjuncts(given))))
        case Exists(left=left, right=right):
            yield from _selections(left, above)
            yield from _selections(right, ())
        case _:
            # What stands above may see rows that this operator made of others, or of none.
            for child in children(plan):
                yield from _selections(child, ())
