"""UNION, INTERSECT and EXCEPT, with and without ALL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from strandline.algebra.plan import Output, Plan, Project, UnionAll
from strandline.algebra.scalar import Call, Col, Lit, Scalar
from strandline.algebra.schema import Column, names
from strandline.sql.aggregates import Partials
from strandline.sql.coverage import Uncovered, only
from strandline.sql.relations import empty_select
from strandline.sql.render import render
from strandline.sql.shapes import Shape, bare, cast_to, distinct, relabelled, unique

if TYPE_CHECKING:
    from strandline.sql.select import Ctes, SelectCompiler


def set_operation(compiler: SelectCompiler, tree: exp.SetOperation, ctes: Ctes) -> Shape:
    """A set operation; ORDER BY and LIMIT of the whole stand around it."""
    only(tree, "with_", "this", "expression", "distinct", "by_name", "order", "limit", "offset")
    if isinstance(tree, exp.Union) and not tree.args.get("by_name"):
        union = side_by_side(compiler, [bare(compiler.plan(side, ctes)) for side in _united(tree)])
        return distinct(union) if tree.args.get("distinct") else Shape(union)
    sides = [bare(compiler.plan(side, ctes)) for side in (tree.this, tree.expression)]
    if tree.args.get("by_name"):
        sides[1] = _by_name(sides[0], sides[1])
    if isinstance(tree, exp.Union):
        union = side_by_side(compiler, sides)
        return distinct(union) if tree.args.get("distinct") else Shape(union)
    return _by_counts(compiler, tree, sides)


def _united(tree: exp.Union) -> list[exp.Expr]:
    """The sides of a union of unions; what is made distinct inside stays so, unless the whole is made distinct."""
    found: list[exp.Expr] = []
    waiting: list[exp.Expr] = [tree]
    while waiting:
        side = waiting.pop()
        plain = isinstance(side, exp.Union) and not any(
            side.args.get(part) for part in ("by_name", "with_", "order", "limit", "offset")
        )
        if side is tree or (plain and (tree.args.get("distinct") or not side.args.get("distinct"))):
            waiting += [side.expression, side.this]
        else:
            found.append(side)
    return found


def side_by_side(compiler: SelectCompiler, sides: Sequence[Plan]) -> UnionAll:
    """All rows of all sides, under the names of the first, in types that hold the values of each."""
    labels = unique(names(sides[0].columns))
    if any(len(side.columns) != len(labels) for side in sides):
        raise Uncovered("CLAUSE", "the sides of a set operation have different numbers of columns")
    union = UnionAll(tuple(relabelled(side, labels) for side in sides))
    if len({tuple(c.type for c in side.columns) for side in sides}) > 1:
        columns = compiler.analyse(render(union, lambda scan: empty_select(scan.fields)))
        return UnionAll(tuple(cast_to(side, columns) for side in union.inputs))
    return union


def _by_name(first: Plan, second: Plan) -> Plan:
    """The second side with its columns in the order of the first."""
    places = {name.lower(): name for name in names(second.columns)}
    wanted = names(first.columns)
    if {name.lower() for name in wanted} != set(places):
        raise Uncovered("CLAUSE", "BY NAME with columns that one side lacks is not maintained incrementally")
    columns = {column.name: column for column in second.columns}
    found = [replace(columns[places[name.lower()]], name=name) for name in wanted]
    return Project(second, tuple(Output(c, Col(places[c.name.lower()])) for c in found))


def _by_counts(compiler: SelectCompiler, tree: exp.SetOperation, inputs: Sequence[Plan]) -> Shape:
    """INTERSECT and EXCEPT: each row with how often either side has it."""
    both = side_by_side(compiler, inputs)
    sides = tuple(
        Project(
            side,
            (
                *(Output(c, Col(old)) for c, old in zip(both.columns, names(side.columns), strict=True)),
                Output(Column("__side", "int"), Lit(number)),
            ),
        )
        for number, side in enumerate(both.inputs)
    )
    shape = distinct(Project(UnionAll(sides), tuple(Output(c, Col(c.name)) for c in both.columns)))
    counts = Partials()
    first, second = (counts.side(number) for number in range(2))
    without = isinstance(tree, exp.Except)
    if tree.args.get("distinct"):
        having = Call("and", (Call(">", (first, Lit(0))), Call("=" if without else ">", (second, Lit(0)))))
        return replace(shape, body=UnionAll(sides), partials=counts, having=having)
    if without:
        times: Scalar = Call("-", (first, second))
    else:
        times = Call("case", (Call("<", (first, second)), first, second))
    return replace(shape, body=UnionAll(sides), partials=counts, times=times)
