"""ROLLUP, CUBE and GROUPING SETS: each row is taken once for every set of keys, with the other keys NULL."""

from __future__ import annotations

from itertools import product

from sqlglot import exp

from strandline.algebra.plan import Join, Output, Plan, Project, Values
from strandline.algebra.scalar import Call, Col, Lit, Scalar, Text
from strandline.algebra.schema import Column
from strandline.sql.coverage import Uncovered, only

Set = tuple[exp.Expr, ...]

MOST = 4_096
"""More sets than that Spark itself does not take."""


def grouping_sets(group: exp.Group) -> list[Set] | None:
    """The sets of keys of a GROUP BY, or None if it has just one, as it stands."""
    only(group, "expressions", "rollup", "cube", "grouping_sets", "all")
    plain: list[exp.Expr] = list(group.expressions)
    trailing = [sets for name in ("rollup", "cube", "grouping_sets") for sets in group.args.get(name) or ()]
    if trailing:
        # GROUP BY a, b WITH ROLLUP; GROUP BY a, b GROUPING SETS (...): what stands before names the keys.
        (last,) = trailing
        return _sets(last if last.expressions else type(last)(expressions=plain))
    if not any(isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets) for node in plain):
        return None
    found = [tuple(key for part in chosen for key in part) for chosen in product(*(_sets(node) for node in plain))]
    if len(found) > MOST:
        raise Uncovered("GROUPING_SETS", f"{len(found)} grouping sets")
    return found


def _sets(node: exp.Expr) -> list[Set]:
    match node:
        case exp.Rollup():
            parts = [_keys(part) for part in node.expressions]
            return [_all(parts[:size]) for size in range(len(parts), -1, -1)]
        case exp.Cube():
            parts = [_keys(part) for part in node.expressions]
            return [
                _all([part for part, taken in zip(parts, chosen, strict=True) if taken])
                for chosen in product((True, False), repeat=len(parts))
            ]
        case exp.GroupingSets():
            return [keys for part in node.expressions for keys in _sets(part)]
        case _:
            return [_keys(node)]


def _keys(node: exp.Expr) -> Set:
    if isinstance(node, exp.Tuple):
        return tuple(node.expressions)
    return (node.this,) if isinstance(node, exp.Paren) else (node,)


def _all(parts: list[Set]) -> Set:
    return tuple(key for part in parts for key in part)


SET = "__set"
"""The stored column that says which of the sets a group belongs to."""


class Expanded:
    """The rows of a body, each once for every set, under keys that are NULL where the set is without them."""

    def __init__(self, body: Plan, keys: list[Output], sets: list[frozenset[int]], alias: str) -> None:
        """*sets* holds the places of the keys of each set."""
        self._sets = sets
        self._number = Col(f"{alias}.{SET}")
        column = Column(self._number.name, "int", nullable=False)
        numbers = Values(tuple((Lit(number),) for number in range(len(sets))), (column,))
        self.values = [Col(f"{alias}.{place}") for place in range(len(keys))]
        outputs = [Output(c, Col(c.name)) for c in (*body.columns, column)]
        for place, (key, value) in enumerate(zip(keys, self.values, strict=True)):
            shown = Call("case", (self._among({n for n, found in enumerate(sets) if place in found}), key.value))
            outputs.append(Output(Column(value.name, key.column.type), shown))
        self.body = Project(Join((body, numbers), ()), tuple(outputs))
        self.key = Output(Column(SET, "int", nullable=False), self._number)

    def _among(self, numbers: set[int], number: Scalar | None = None) -> Scalar:
        tests = [Call("=", (number or self._number, Lit(n))) for n in sorted(numbers)]
        found: Scalar = Lit(False)
        for place, test in enumerate(tests):
            found = test if place == 0 else Call("or", (found, test))
        return found

    def grouping(self, place: int, stored: Scalar) -> Scalar:
        """GROUPING(key): 1 where the key is not one of the group's, which column *stored* says."""
        without = self._among({n for n, found in enumerate(self._sets) if place not in found}, stored)
        return Text(("CAST(CASE WHEN ", without, " THEN 1 ELSE 0 END AS TINYINT)"))

    def grouping_id(self, places: list[int], stored: Scalar) -> Scalar:
        """GROUPING_ID(keys): their GROUPING values as the digits of one number."""
        chosen: list[Scalar] = []
        for number, found in enumerate(self._sets):
            value = 0
            for place in places:
                value = value * 2 + (place not in found)
            chosen += [Call("=", (stored, Lit(number))), Lit(value)]
        return Text(("CAST(", Call("case", tuple(chosen)), " AS BIGINT)"))
