"""Subqueries made into joins: EXISTS and IN as semi and anti joins, values as outer joins with groups.

A condition of WHERE or HAVING that only asks whether there are rows becomes a semi or anti join. Anywhere else (under
OR, in CASE, in the SELECT list) the query inside is grouped by what it has in common with the query around it, and the
rows outside are joined with those groups: a missing group is an empty answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from strandline.algebra.block import Block
from strandline.algebra.equality import kept_apart
from strandline.algebra.plan import COUNT, Exists, Filter, Join, OuterJoin, Output, Partial, Plan, Project, UnionAll
from strandline.algebra.scalar import Call, Col, Lit, Scalar, Text
from strandline.algebra.scalar import columns as columns_of
from strandline.algebra.scalar import replace as replaced_columns
from strandline.algebra.schema import Column, Schema, names
from strandline.sql.coverage import Uncovered, check_matchable, only
from strandline.sql.from_clause import FromClause
from strandline.sql.functions import is_aggregate
from strandline.sql.grouping import Grouping
from strandline.sql.matching import Keys, matching
from strandline.sql.names import places, quoted
from strandline.sql.render import scalar_sql
from strandline.sql.scopes import Scope, conjuncts
from strandline.sql.shapes import joined, relabelled
from strandline.sql.subqueries import Inner, InnerRows, Predicate, asking, predicate

if TYPE_CHECKING:
    from strandline.sql.select import Ctes, SelectCompiler

_ROWS = Partial(Column(COUNT, "bigint"), "count")


class Decorrelator:
    """The subqueries of one SELECT, which sees *ctes*."""

    def __init__(self, compiler: SelectCompiler, ctes: Ctes) -> None:
        self.compiler = compiler
        self.ctes = ctes

    def joined(self, plans: list[Plan], conditions: Sequence[exp.Expr | Scalar], scope: Scope) -> Plan:
        """The join of *plans* under *conditions*, those with subqueries last."""
        asked = [c for c in conditions if isinstance(c, exp.Expr) and asking(c)]
        plain = [c for c in conditions if not any(c is other for other in asked)]
        body = joined(plans, [self.compiler.condition(condition, scope) for condition in plain])
        return self.restricted(body, asked, scope)

    def restricted(self, body: Plan, conditions: Sequence[exp.Expr], scope: Scope) -> Plan:
        """The rows of *body* for which *conditions*, which may ask queries, hold."""
        for condition in conditions:
            found = predicate(condition)
            if found is not None and self._joins(found):
                body = self._semi_join(body, found, scope)
            else:
                body = self.beside(body, [condition], scope)
                body = Filter(body, self.compiler.condition(condition, scope))
        return body

    def beside(self, body: Plan, nodes: Sequence[exp.Expr], scope: Scope, *, shown: bool = False) -> Plan:
        """*body* beside the answers of the subqueries in *nodes*, which *scope* then knows; users see those *shown*."""
        for part in [found for node in nodes for found in asking(node)]:
            if id(part) in scope.values:
                continue
            found = predicate(part)
            if found is None and not isinstance(part, exp.Subquery):
                raise Uncovered("SUBQUERY", "ANY and ALL over a query")
            if found is None:
                body, value = self._value(body, part.this, scope)
            elif found.values is None:
                body, value = self._exists(body, found, scope)
            elif shown and (negation := part.find_ancestor(exp.Not, exp.Select)) and isinstance(negation, exp.Not):
                raise Uncovered("SUBQUERY", "IN inside NOT in a SELECT list; Spark itself is of two minds about NULL")
            else:
                body, value = self._in(body, found, scope, shown=shown)
            scope.values[id(part)] = value
        return body

    def _joins(self, found: Predicate) -> bool:
        """Whether a condition is a semi or anti join; NOT IN is one only for a single column."""
        return not (found.negated and found.values is not None and len(found.values) > 1)

    def _semi_join(self, body: Plan, found: Predicate, scope: Scope) -> Plan:
        """The rows of *body* that a condition with EXISTS or IN keeps."""
        inner = self._inner(found.query, scope)
        if found.values is None:
            keys, rest = matching(inner.correlated, body, inner.body)
            return Exists(body, inner.body, keys, rest, found.negated)
        values, equal = self._compared(found.values, inner, scope)
        keys, rest = matching([*equal, *inner.correlated], body, inner.body)
        if not found.negated:
            return Exists(body, inner.body, keys, rest)
        if inner.correlated:
            body, value = self._in(body, found, scope)
            return Filter(body, value)
        return self._not_in(body, values[0], inner, keys, rest)

    def _compared(self, nodes: tuple[exp.Expr, ...], inner: Inner, scope: Scope) -> tuple[list[Scalar], list[Scalar]]:
        """The values on the left of IN, and each equal to what the query inside gives."""
        if len(nodes) != len(inner.outputs):
            raise Uncovered("SUBQUERY", "IN compares other numbers of columns")
        values = [self.compiler.condition(node, scope) for node in nodes]
        return values, [Call("=", pair) for pair in zip(values, inner.outputs, strict=True)]

    def _not_in(self, body: Plan, value: Scalar, inner: Inner, keys: Keys, rest: tuple[Scalar, ...]) -> Plan:
        """``NOT IN``: true for all rows if there is nothing inside; else never true beside a NULL on either side."""
        scan = self.compiler.stored_scan(Block("", inner.body, (), (_ROWS, _nulls(inner.outputs[0]))), "inside")
        counted, null = Col(f"{scan.alias}.{COUNT}"), Col(f"{scan.alias}.__nulls")
        both = Join((body, scan), ())
        nothing = Filter(both, Call("=", (counted, Lit(0))))
        some = Filter(both, Call("and", (Call(">", (counted, Lit(0))), Call("=", (null, Lit(0))))))
        known = Filter(some, Call("is not null", (value,)))
        shown = tuple(Output(c, Col(c.name)) for c in body.columns)
        without = Exists(known, inner.body, keys, rest, negated=True)
        return UnionAll((Project(nothing, shown), Project(without, shown)))

    def _exists(self, body: Plan, found: Predicate, scope: Scope) -> tuple[Plan, Scalar]:
        inner = self._inner(found.query, scope)
        body, values = self._grouped(body, inner.body, inner.correlated, (_ROWS,))
        return body, Call("=" if found.negated else ">", (values[COUNT], Lit(0)))

    def _in(self, body: Plan, found: Predicate, scope: Scope, *, shown: bool = False) -> tuple[Plan, Scalar]:
        """IN as a value: true if there is a match; else NULL if a NULL stands in the way of saying no.

        Where the value is *shown* Spark says false instead of NULL, be it for IN or for NOT IN.
        """
        assert found.values is not None
        inner = self._inner(found.query, scope)
        values, equal = self._compared(found.values, inner, scope)
        if len(values) > 1:
            raise Uncovered("SUBQUERY", "IN over several columns as a value, or negated; write EXISTS")
        body, matches = self._grouped(body, inner.body, (*equal, *inner.correlated), (_ROWS,))
        body, all_rows = self._grouped(body, inner.body, inner.correlated, (_ROWS, _nulls(inner.outputs[0])))
        unknown = Call("or", (Call("is null", (values[0],)), Call(">", (all_rows["__nulls"], Lit(0)))))
        null: Scalar = Lit(False) if shown else Text(("CAST(NULL AS BOOLEAN)",), Lit(None))
        answer = (
            Call(">", (matches[COUNT], Lit(0))), Lit(not found.negated),
            Call("=", (all_rows[COUNT], Lit(0))), Lit(found.negated),
            unknown, null,
            Lit(found.negated),
        )  # fmt: skip
        return body, Call("case", answer)

    def _value(self, body: Plan, tree: exp.Expr, outer: Scope) -> tuple[Plan, Scalar]:
        """The value of a scalar subquery: of an aggregate, or of the one row that there is."""
        while isinstance(tree, exp.Subquery):
            tree = tree.this
        if not isinstance(tree, exp.Select) or not self._one_aggregate(tree):
            return self._only_row(body, tree, outer)
        only(tree, "expressions", "from_", "joins", "laterals", "where", "with_", "hint")
        inner = self._inner_rows(tree, outer)
        items = self.compiler.items(tree, inner.scope)
        exact = self.compiler.exact_floats
        grouping = Grouping(self.compiler.query, self.compiler.types, tree, inner.scope, items, exact_floats=exact)
        rows, groups = grouping.groups(inner.body, self.compiler.alias)
        shown = groups.shown(items[0])
        self.compiler.note_aggregates(tree.expressions)
        body, values = self._grouped(body, rows, inner.correlated, groups.partials.all)
        return body, replaced_columns(shown, values)

    def _one_aggregate(self, tree: exp.Select) -> bool:
        parts = ("group", "having", "distinct", "limit", "offset")
        return len(tree.expressions) == 1 and not any(tree.args.get(part) for part in parts) and any(
            is_aggregate(self.compiler.query, node)
            for node in tree.expressions[0].walk(prune=lambda n: isinstance(n, exp.Query | exp.Window))
        )  # fmt: skip

    def _only_row(self, body: Plan, tree: exp.Expr, outer: Scope) -> tuple[Plan, Scalar]:
        """The value in the only row of a query; two rows are an error, as Spark has it."""
        inner = self._inner(tree, outer)
        if len(inner.outputs) != 1:
            raise Uncovered("SUBQUERY", "a scalar subquery shows several columns")
        (typed,) = self._types(inner.outputs, inner.body)
        check_matchable(typed)
        value = Partial(replace(typed, name="__value", nullable=True), "max", inner.outputs[0])
        body, values = self._grouped(body, inner.body, inner.correlated, (_ROWS, value))
        message = "'[SCALAR_SUBQUERY_TOO_MANY_ROWS] a scalar subquery gave ' || CAST("
        several = Text(("raise_error(", message, values[COUNT], " AS STRING) || ' rows')"))
        return body, Call("case", (Call(">", (values[COUNT], Lit(1))), several, values["__value"]))

    def _grouped(
        self, body: Plan, inside: Plan, correlated: Sequence[Scalar], partials: tuple[Partial, ...]
    ) -> tuple[Plan, dict[str, Scalar]]:
        """*body* beside aggregates of the rows *inside* that belong to it, and what their values are then."""
        keys, rest = matching(correlated, body, inside)
        if rest:
            raise Uncovered("SUBQUERY", "a subquery as a value meets the outer query otherwise than by equal values")
        if not keys:
            scan = self.compiler.stored_scan(Block("", inside, (), partials), "scalar")
            return Join((body, scan), ()), {p.name: Col(f"{scan.alias}.{p.name}") for p in partials}
        types, met = self._types([theirs for _, theirs in keys], inside), self._types([ours for ours, _ in keys], body)
        outputs = tuple(Output(Column(f"__key_{n + 1}", types[n].type), theirs) for n, (_, theirs) in enumerate(keys))
        for output, ours in zip(outputs, met, strict=True):
            check_matchable(output.column)
            if not kept_apart(output.column.type, ours.type):
                kinds = f"{output.column.type} inside with {ours.type} outside"
                raise Uncovered("SUBQUERY", f"a subquery as a value compares {kinds}; cast one to the other's type")
        scan = self.compiler.stored_scan(Block("", inside, outputs, partials), "scalar")
        pairs = tuple((ours, Col(f"{scan.alias}.{o.name}")) for (ours, _), o in zip(keys, outputs, strict=True))
        values: dict[str, Scalar] = {}
        for partial in partials:
            column = Col(f"{scan.alias}.{partial.name}")
            nothing = Lit(0) if partial.invertible else _of_nothing(partial)
            values[partial.name] = column if nothing is None else Call("coalesce", (column, nothing))
        return OuterJoin(body, scan, pairs), values

    def _types(self, values: Sequence[Scalar], plan: Plan) -> Schema:
        return self.compiler.types(_listed(values, plan), plan.columns)

    def _inner(self, tree: exp.Expr, outer: Scope) -> Inner:
        """The query of an EXISTS or IN: its rows, what it gives, and its conditions on columns of the outer query."""
        while isinstance(tree, exp.Subquery):
            only(tree, "this", "alias")
            tree = tree.this
        parts = ("group", "having", "distinct", "limit", "offset", "windows", "qualify")
        plain = isinstance(tree, exp.Select) and not any(tree.args.get(part) for part in parts)
        if not plain or any(
            is_aggregate(self.compiler.query, n) or isinstance(n, exp.Window)
            for e in tree.expressions
            for n in e.walk(prune=lambda n: isinstance(n, exp.Query))
        ):
            plan, alias = self.compiler.plan(tree, self.ctes), self.compiler.alias("inner")
            prefixed = relabelled(plan, tuple(f"{alias}.{name}" for name in names(plan.columns)))
            return Inner(prefixed, tuple(Col(name) for name in names(prefixed.columns)))
        assert isinstance(tree, exp.Select)
        rows = self._inner_rows(tree, outer)
        outputs: list[Scalar] = []
        body = rows.body
        for node in tree.expressions:
            shown = node.this if isinstance(node, exp.Alias) else node
            if isinstance(shown, exp.Star):
                outputs.extend(item.column(c.name) for item in rows.scope.items for c in item.shown())
            else:
                body = Decorrelator(self.compiler, rows.ctes).beside(body, [shown], rows.scope)
                outputs.append(self.compiler.condition(shown, rows.scope))
        return Inner(body, tuple(outputs), rows.correlated)

    def _inner_rows(self, tree: exp.Select, outer: Scope) -> InnerRows:
        """FROM and WHERE of a query inside the query; conditions on columns of the outer one are kept apart."""
        known = self.compiler.with_ctes(tree, self.ctes)
        inside = Decorrelator(self.compiler, known)
        clause = FromClause.of(self.compiler, tree, known)
        scope = Scope(self.compiler.query, clause.items, outer)
        where = tree.args.get("where")
        conditions = clause.conditions + (list(conjuncts(where.this)) if where is not None else [])
        own = {name for plan in clause.plans for name in names(plan.columns)}
        kept: list[exp.Expr | Scalar] = []
        correlated: list[Scalar] = []
        for condition in conditions:
            if isinstance(condition, exp.Expr) and asking(condition):
                kept.append(condition)
                continue
            compiled = self.compiler.condition(condition, scope)
            (kept if columns_of(compiled) <= own else correlated).append(compiled)
        return InnerRows(inside.joined(clause.plans, kept, scope), scope, tuple(correlated), known)


def _nulls(value: Scalar) -> Partial:
    return Partial(Column("__nulls", "bigint"), "count", None, Call("is null", (value,)))


def _listed(values: Sequence[Scalar], plan: Plan) -> str:
    at = places(plan.columns)
    return ", ".join(f"{scalar_sql(value, at)} AS {quoted(f'v{n}')}" for n, value in enumerate(values))


def _of_nothing(partial: Partial) -> Scalar | None:
    """What an aggregate that is kept as text gives for no rows, if that is not NULL."""
    text = partial.argument.fragments[0] if isinstance(partial.argument, Text) else ""
    word = re.match(r"\s*`?(\w+)", text) if isinstance(text, str) else None
    name = word[1].lower() if partial.kind == "opaque" and word else ""
    if name in ("count", "approx_count_distinct", "regr_count"):
        return Lit(0)
    if name in ("collect_list", "collect_set", "array_agg"):
        return Text((f"CAST(array() AS {partial.column.type})",))
    if name.startswith(("bitmap", "histogram", "count_min", "hll", "kll", "theta", "approx_top_k")):
        raise Uncovered("SUBQUERY", f"{name}() over no rows is not NULL")
    return None
