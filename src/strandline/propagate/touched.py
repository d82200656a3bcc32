"""Which columns a view's joins set equal, and so which files of a table may hold keys that changes touch.

A file is said to hold touched keys if its range of a column has a value in it that changed rows have in that column, or
in one that a join sets equal to it. Changes that reach a table only by way of other rows are not looked at: which keys
these have is not known before they are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from strandline.algebra.constraints import column_of, origins
from strandline.algebra.plan import Exists, Join, OuterJoin, Plan, children
from strandline.algebra.scalar import Call, Scalar, Text, conjuncts

Place = tuple[str, str]
"""A table and a column of it."""


def equal_columns(body: Plan) -> tuple[frozenset[Place], ...]:
    """The columns of tables that joins of *body* set equal, all that are equal to each other together."""
    found: list[set[Place]] = []
    for pair in _pairs(body):
        joined = [places for places in found if places & pair]
        found = [places for places in found if not places & pair]
        found.append(pair.union(*joined))
    return tuple(map(frozenset, found))


def meeting(equal: Iterable[frozenset[Place]], table: str, changed: Sequence[str]) -> Iterator[tuple[str, Place]]:
    """The columns of *table* by which rows meet those of *changed* tables, each with the column over there."""
    for places in equal:
        for ours, column in places:
            if ours == table:
                yield from ((column, place) for place in sorted(places) if place[0] in changed and place[0] != table)


def _pairs(plan: Plan) -> Iterator[set[Place]]:
    for child in children(plan):
        yield from _pairs(child)
    match plan:
        case Join(inputs=inputs, conditions=conditions):
            named = {name: origin for child in inputs for name, origin in origins(child).items()}
            equalities = [sides for each in conditions for sides in _equalities(each)]
        case OuterJoin(left=left, right=right, keys=keys) | Exists(left=left, right=right, keys=keys):
            named = {**origins(right), **origins(left)}
            equalities = list(keys)
        case _:
            return
    for sides in equalities:
        places = [named[column] for column in map(column_of, sides) if column in named]
        if len(places) == 2:
            yield {(place.table, place.field) for place in places}


def _equalities(condition: Scalar) -> Iterator[tuple[Scalar, Scalar]]:
    for each in conjuncts(condition.meaning or condition if isinstance(condition, Text) else condition):
        if isinstance(each, Call) and each.op in ("=", "<=>"):
            yield each.args[0], each.args[1]
