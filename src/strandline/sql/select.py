"""SELECT to blocks: FROM to scans and joins, the SELECT list to a projection or a grouping."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from strandline.algebra.block import Block
from strandline.algebra.codec import fingerprint
from strandline.algebra.plan import (
    COUNT,
    At,
    Exists,
    Filter,
    Generate,
    Join,
    OuterJoin,
    Output,
    Partial,
    Plan,
    Project,
    Scan,
    UnionAll,
    Window,
)
from strandline.algebra.scalar import Call, Col, Lit, Scalar, Text, equality
from strandline.algebra.scalar import columns as columns_of
from strandline.algebra.scalar import replace as replaced_columns
from strandline.algebra.schema import Column, Schema, names
from strandline.errors import SqlError
from strandline.sql.aggregates import Partials
from strandline.sql.coverage import Uncovered, check_comparable, check_expression, only, parts
from strandline.sql.functions import is_aggregate
from strandline.sql.grouping import Grouping
from strandline.sql.matching import Keys, matching
from strandline.sql.names import places, quoted
from strandline.sql.references import Reference
from strandline.sql.relations import Analyser, empty_select
from strandline.sql.render import render, scalar_sql
from strandline.sql.scopes import Item, Scope, conjuncts, expression
from strandline.sql.shapes import Shape, bare, distinct, joined, plain_block, relabelled, renamed, unique
from strandline.sql.statements import Query
from strandline.sql.subqueries import Inner, InnerRows, Predicate, predicate, scalars
from strandline.sql.windows import check_window, window_calls

BLOCK_PREFIX = "block "
"""Names of hidden blocks start so."""


@dataclass(frozen=True)
class Cte:
    """A common table expression, with those it can see."""

    tree: exp.Expr
    ctes: dict[str, Cte]
    columns: tuple[str, ...]


Ctes = dict[str, Cte]


@dataclass
class _From:
    """A FROM clause: inputs, what names stand for, and join conditions."""

    plans: list[Plan] = field(default_factory=list)
    items: list[Item] = field(default_factory=list)
    conditions: list[exp.Expr | Scalar] = field(default_factory=list)

    def plan(self, compiler: SelectCompiler) -> Plan:
        """All inputs joined."""
        scope = Scope(compiler.query, self.items)
        return joined(self.plans, [compiler.condition(condition, scope) for condition in self.conditions])

    def join_using(self, name: str) -> None:
        """The last item is joined by a column of that name: an unqualified name then means the left one."""
        last = self.items[-1]
        right = last.find(name)
        lefts = [(i, c) for i in self.items[:-1] if (c := i.find(name)) is not None and c.name not in i.hidden]
        if right is None or len(lefts) != 1:
            raise Uncovered("NATURAL_JOIN", f"USING ({name}) does not name one column on each side")
        item, left = lefts[0]
        self.conditions.append(equality(item.column(left.name).name, last.column(right.name).name))
        self.items[-1] = replace(last, hidden=last.hidden | {right.name})


class SelectCompiler:
    """Compiles one query; hidden blocks that it needs are collected on the way."""

    def __init__(self, query: Query, read: Sequence[Reference], analyse: Analyser) -> None:
        self.query = query
        self._relations = {reference.name_span: reference.relation for reference in read}
        self._analyse = analyse
        self._hidden: dict[str, Block] = {}
        self._aliases: set[str] = set()

    def blocks(self, name: str, columns: Schema) -> tuple[Block, ...]:
        """All blocks of the query; the last is called *name* and has *columns*."""
        shape = self._shape(self.query.tree, {})
        own = self._grouped(shape, name, columns) if shape.partials else plain_block(name, shape.body, columns)
        return (*self._hidden.values(), own)

    def check_names(self) -> None:
        """Raise SqlError if a column name is unknown or ambiguous, as far as the query is covered."""
        with contextlib.suppress(Uncovered, ValueError, LookupError):
            self._shape(self.query.tree, {})

    def _shape(self, tree: exp.Expr, ctes: Ctes) -> Shape:
        if isinstance(tree, exp.Select):
            return self._select(tree, ctes)
        if isinstance(tree, exp.Intersect | exp.Except):
            return self._intersection(tree, ctes)
        union = self._union(tree, ctes)
        return distinct(union) if isinstance(tree, exp.Union) and tree.args.get("distinct") else Shape(union)

    def _plan(self, tree: exp.Expr, ctes: Ctes) -> Plan:
        """A query inside the query: inlined if it is linear, else a scan of a hidden block of its own."""
        if isinstance(tree, exp.Subquery):
            only(tree, "this", "alias")
            return self._plan(tree.this, ctes)
        shape = self._shape(tree, ctes)
        return shape.body if shape.partials is None else self._hidden_block(shape)

    def _hidden_block(self, shape: Shape) -> Plan:
        block = self._grouped(shape, "", None)
        named = replace(block, node=BLOCK_PREFIX + fingerprint(block))
        self._hidden.setdefault(named.node, named)
        return bare(Scan(At(named.node), self._alias("block"), named.visible, named.visible_key))

    def _grouped(self, shape: Shape, name: str, columns: Schema | None) -> Block:
        """The block of a grouped query; its output is named and typed as *columns*, else as Spark says."""
        assert shape.partials is not None
        block = Block(name, shape.body, shape.keys, shape.partials.all, shape.having, times=shape.times)
        typed = columns or self._types(_select_list(shape.outputs, block.stored), block.stored)
        if len(typed) != len(shape.outputs):
            raise Uncovered("COMPILED_FORM_DIFFERS", "the number of columns differs")
        outputs = tuple(Output(column, value) for column, (_, value) in zip(typed, shape.outputs, strict=True))
        return replace(block, outputs=outputs)

    def _types(self, items: str, columns: Schema) -> Schema:
        try:
            return self._analyse(f"SELECT {items} FROM ({empty_select(columns)})")
        except SqlError as error:
            raise Uncovered("COMPILED_FORM_DIFFERS", error.message.splitlines()[0]) from error

    def _intersection(self, tree: exp.Intersect | exp.Except, ctes: Ctes) -> Shape:
        """INTERSECT and EXCEPT: each row with how often either side has it."""
        if tree.args.get("by_name"):
            raise Uncovered("CLAUSE", "BY NAME is not maintained incrementally")
        only(tree, "with_", "this", "expression", "distinct", *_ordered(tree, self.query))
        inner = _with_ctes(tree, ctes)
        both = self._side_by_side([bare(self._plan(side, inner)) for side in (tree.this, tree.expression)])
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
        except_ = isinstance(tree, exp.Except)
        if tree.args.get("distinct"):
            having = Call("and", (Call(">", (first, Lit(0))), Call("=" if except_ else ">", (second, Lit(0)))))
            return replace(shape, body=UnionAll(sides), partials=counts, having=having)
        if except_:
            times: Scalar = Call("-", (first, second))
        else:
            times = Call("case", (Call("<", (first, second)), first, second))
        return replace(shape, body=UnionAll(sides), partials=counts, times=times)

    def _side_by_side(self, sides: Sequence[Plan]) -> UnionAll:
        """All rows of all sides, under the names of the first, in types that hold the values of each."""
        labels = unique(names(sides[0].columns))
        union = UnionAll(tuple(relabelled(side, labels) for side in sides))
        if len({tuple(c.type for c in side.columns) for side in sides}) > 1:
            wider = renamed(union, self._analyse(render(union, lambda scan: empty_select(scan.fields))))
            assert isinstance(wider, UnionAll)
            return wider
        return union

    def _union(self, tree: exp.Expr, ctes: Ctes) -> Plan:
        if isinstance(tree, exp.Subquery):
            return self._plan(tree, ctes)
        if not isinstance(tree, exp.Union):
            raise Uncovered("CLAUSE")
        if tree.args.get("by_name"):
            raise Uncovered("CLAUSE", "UNION BY NAME is not maintained incrementally")
        only(tree, "with_", "this", "expression", "distinct", *_ordered(tree, self.query))
        inner = _with_ctes(tree, ctes)
        sides = [bare(self._plan(side, inner)) for side in (tree.this, tree.expression)]
        parts = [part for side in sides for part in (side.inputs if isinstance(side, UnionAll) else (side,))]
        return self._side_by_side(parts)

    def _select(self, tree: exp.Select, outer: Ctes) -> Shape:
        only(
            tree, "expressions", "from_", "joins", "laterals", "where", "group", "having", "distinct",
            "with_", *_ordered(tree, self.query),
        )  # fmt: skip
        ctes = _with_ctes(tree, outer)
        clause = self._from(tree, ctes)
        scope = Scope(self.query, clause.items)
        where = tree.args.get("where")
        conditions = clause.conditions + (list(conjuncts(where.this)) if where is not None else [])
        body = self._where(clause.plans, conditions, scope, ctes)
        having = tree.args.get("having")
        if having is not None and (scalars(having.this) or any(predicate(c) for c in conjuncts(having.this))):
            return self._having_subqueries(tree, scope, body, ctes)
        body = self._with_scalars(body, tree.expressions, scope, ctes)
        body = self._with_windows(body, tree, scope)
        grouping = Grouping(self.query, self._types, tree, scope, body)
        is_distinct = tree.args.get("distinct") is not None
        if is_distinct and tree.args["distinct"].args.get("on"):
            raise Uncovered("CLAUSE", "DISTINCT ON is not yet maintained incrementally")
        if grouping.needed:
            if any(scalars(node) for node in tree.expressions):
                raise Uncovered("SUBQUERY", "a subquery in the SELECT list beside aggregates")
            if any(window_calls(node) for node in tree.expressions):
                raise Uncovered("WINDOW_FUNCTION", "window functions over groups; group in a subquery, then use them")
            shape = grouping.shape()
            return distinct(self._hidden_block(shape)) if is_distinct else shape
        if tree.args.get("having") is not None:
            raise Uncovered("CLAUSE", "HAVING without aggregates is not yet maintained incrementally")
        outputs = grouping.plain_outputs()
        # The column behind the list makes Spark refuse an aggregate that is not known here: it would not be linear.
        items = f"{_select_list(outputs, body.columns)}, {quoted(body.columns[0].name)} AS __row"
        typed = self._types(items, body.columns)[: len(outputs)]
        plan = Project(body, tuple(Output(c, value) for c, (_, value) in zip(typed, outputs, strict=True)))
        return distinct(plan) if is_distinct else Shape(plan)

    def _with_windows(self, body: Plan, tree: exp.Select, scope: Scope) -> Plan:
        """*body* with a column for each window function, which *scope* then knows."""
        calls = [call for node in tree.expressions for call in window_calls(node)]
        if not calls or tree.args.get("group") is not None:
            return body
        values, partitions = [], []
        for call in calls:
            check_window(self.query, call)
            partitions.append([self.condition(node, scope) for node in call.args.get("partition_by") or ()])
            values.append(expression(self.query, call, scope.column))
        listed = [(f"w{number}", value) for number, value in enumerate(values)]
        typed = self._types(_select_list(listed, body.columns), body.columns)
        if any(column.type in ("float", "double") for column in typed) and any(
            column.type in ("float", "double") for column in body.columns
        ):
            raise Uncovered("ORDER_DEPENDENT", "a floating sum over a window depends on the order of rows")
        common = tuple(value for value in partitions[0] if all(value in others for others in partitions[1:]))
        alias = self._alias("window")
        outputs = tuple(
            Output(replace(column, name=f"{alias}.{number}"), value)
            for number, (column, value) in enumerate(zip(typed, values, strict=True))
        )
        for call, output in zip(calls, outputs, strict=True):
            scope.values[id(call)] = Col(output.name)
        return Window(body, common, outputs)

    def _having_subqueries(self, tree: exp.Select, scope: Scope, body: Plan, ctes: Ctes) -> Shape:
        """HAVING that asks a query: the groups are a hidden block, and HAVING a condition over its rows."""
        having = tree.args["having"].this
        if tree.args.get("distinct") is not None or any(predicate(c) is not None for c in conjuncts(having)):
            raise Uncovered("SUBQUERY", "HAVING with EXISTS, IN or DISTINCT is not maintained incrementally")
        beside: list[Plan] = []
        for subquery in scalars(having):
            plan, value = self._one_row(subquery.this, Scope(self.query, ()), ctes)
            beside.append(plan)
            scope.values[id(subquery)] = value
        shape = Grouping(self.query, self._types, tree, scope, body).shape()
        assert shape.partials is not None and shape.having is not None
        scan = self._stored_scan(Block("", shape.body, shape.keys, shape.partials.all), "groups")
        stored = {name: Col(f"{scan.alias}.{name}") for name in names(scan.fields)}
        plan = Filter(Join((scan, *beside), ()), replaced_columns(shape.having, stored))
        outputs = [(name, replaced_columns(value, stored)) for name, value in shape.outputs]
        typed = self._types(_select_list(outputs, plan.columns), plan.columns)
        return Shape(Project(plan, tuple(Output(c, value) for c, (_, value) in zip(typed, outputs, strict=True))))

    def _stored_scan(self, block: Block, alias: str) -> Scan:
        """A scan of a hidden block that shows what it stores."""
        named = replace(block, node=BLOCK_PREFIX + fingerprint(block))
        self._hidden.setdefault(named.node, named)
        return Scan(At(named.node), self._alias(alias), named.visible, named.visible_key)

    def _one_row(self, tree: exp.Expr, outer: Scope, ctes: Ctes) -> tuple[Plan, Scalar]:
        """An aggregate over all its rows that reads nothing of an outer query: a plan of one row, and its value."""
        inner, shape = self._aggregate(tree, outer, ctes)
        if inner.correlated:
            raise Uncovered("SUBQUERY", "a subquery in HAVING reads columns of the outer query")
        return self._row_of(shape)

    def _row_of(self, shape: Shape) -> tuple[Plan, Scalar]:
        """The one row of an aggregate, from a hidden block, and its value."""
        alias, plan = self._alias("scalar"), self._hidden_block(shape)
        name = f"{alias}.{names(plan.columns)[0]}"
        return relabelled(plan, (name,)), Col(name)

    def _aggregate(self, tree: exp.Expr, outer: Scope, ctes: Ctes) -> tuple[InnerRows, Shape]:
        if not isinstance(tree, exp.Select) or len(tree.expressions) != 1 or tree.args.get("group"):
            raise Uncovered("SUBQUERY", "a scalar subquery has to be one aggregate, so that it gives one row")
        only(tree, "expressions", "from_", "joins", "where", "with_")
        inner = self._inner_rows(tree, outer, ctes)
        grouping = Grouping(self.query, self._types, tree, inner.scope, inner.body)
        if not grouping.needed:
            raise Uncovered("SUBQUERY", "a scalar subquery without an aggregate may give several rows")
        return inner, grouping.shape()

    def _where(self, plans: list[Plan], conditions: list[exp.Expr | Scalar], scope: Scope, ctes: Ctes) -> Plan:
        """The join of *plans* under *conditions*, those with subqueries last."""
        asking = [c for c in conditions if isinstance(c, exp.Expr) and (predicate(c) is not None or scalars(c))]
        plain = [c for c in conditions if not any(c is other for other in asking)]
        body = joined(plans, [self.condition(condition, scope) for condition in plain])
        for condition in asking:
            found = predicate(condition)
            if found is not None:
                body = self._subquery_predicate(body, found, scope, ctes)
            else:
                body = self._with_scalars(body, [condition], scope, ctes)
                body = Filter(body, self.condition(condition, scope))
        return body

    def _with_scalars(self, body: Plan, nodes: Sequence[exp.Expr], scope: Scope, ctes: Ctes) -> Plan:
        """*body* beside the values of the scalar subqueries in *nodes*, which *scope* then knows."""
        for subquery in [found for node in nodes for found in scalars(node)]:
            body, value = self._scalar(body, subquery.this, scope, ctes)
            scope.values[id(subquery)] = value
        return body

    def _scalar(self, body: Plan, tree: exp.Expr, outer: Scope, ctes: Ctes) -> tuple[Plan, Scalar]:
        """The value of an aggregate subquery: one for all rows, or by the columns of the outer query that it reads."""
        inner, shape = self._aggregate(tree, outer, ctes)
        assert shape.partials is not None
        if not inner.correlated:
            row, value = self._row_of(shape)
            return Join((body, row), ()), value
        keys, rest = matching(inner.correlated, body, inner.body)
        if rest or not keys:
            raise Uncovered("SUBQUERY", "a scalar subquery meets the outer query otherwise than by equal values")
        listed = [(f"k{number}", theirs) for number, (_, theirs) in enumerate(keys)]
        types = self._types(_select_list(listed, inner.body.columns), inner.body.columns)
        outputs = tuple(Output(Column(f"__key_{n + 1}", types[n].type), theirs) for n, (_, theirs) in enumerate(keys))
        for output in outputs:
            check_comparable(output.column)
        scan = self._stored_scan(Block("", inner.body, outputs, shape.partials.all), "scalar")
        pairs = tuple((ours, Col(f"{scan.alias}.{o.name}")) for (ours, _), o in zip(keys, outputs, strict=True))
        values: dict[str, Scalar] = {}
        for partial in shape.partials.all:
            column = Col(f"{scan.alias}.{partial.name}")
            if partial.kind == "opaque" and _counts(partial):
                raise Uncovered("SUBQUERY", "this aggregate over no rows is not NULL")
            values[partial.name] = Call("coalesce", (column, Lit(0))) if partial.invertible else column
        return OuterJoin(body, scan, pairs), replaced_columns(shape.outputs[0][1], values)

    def _subquery_predicate(self, body: Plan, found: Predicate, scope: Scope, ctes: Ctes) -> Plan:
        """The rows of *body* that a condition with EXISTS or IN keeps."""
        inner = self._inner(found.query, scope, ctes)
        if found.values is None:
            keys, rest = matching(inner.correlated, body, inner.body)
            return Exists(body, inner.body, keys, rest, found.negated)
        if len(found.values) != len(inner.outputs):
            raise Uncovered("SUBQUERY", "IN compares other numbers of columns")
        values = [self.condition(value, scope) for value in found.values]
        equal = [Call("=", pair) for pair in zip(values, inner.outputs, strict=True)]
        keys, rest = matching([*equal, *inner.correlated], body, inner.body)
        if not found.negated:
            return Exists(body, inner.body, keys, rest)
        if len(values) > 1 or inner.correlated:
            raise Uncovered("SUBQUERY", "NOT IN over several columns or with outer columns; write NOT EXISTS")
        return self._not_in(body, values[0], inner, keys, rest)

    def _not_in(self, body: Plan, value: Scalar, inner: Inner, keys: Keys, rest: tuple[Scalar, ...]) -> Plan:
        """``NOT IN``: true for all rows if there is nothing inside; else never true beside a NULL on either side."""
        nulls = Partial(Column("__nulls", "bigint"), "count", None, Call("is null", (inner.outputs[0],)))
        rows = Partial(Column(COUNT, "bigint"), "count")
        scan = self._stored_scan(Block("", inner.body, (), (rows, nulls)), "inside")
        counted, null = Col(f"{scan.alias}.{COUNT}"), Col(f"{scan.alias}.__nulls")
        both = Join((body, scan), ())
        nothing = Filter(both, Call("=", (counted, Lit(0))))
        some = Filter(both, Call("and", (Call(">", (counted, Lit(0))), Call("=", (null, Lit(0))))))
        known = Filter(some, Call("is not null", (value,)))
        shown = tuple(Output(c, Col(c.name)) for c in body.columns)
        without = Exists(known, inner.body, keys, rest, negated=True)
        return UnionAll((Project(nothing, shown), Project(without, shown)))

    def _inner(self, tree: exp.Expr, outer: Scope, ctes: Ctes) -> Inner:
        """The query of an EXISTS or IN: its rows, what it gives, and its conditions on columns of the outer query."""
        while isinstance(tree, exp.Subquery):
            only(tree, "this", "alias")
            tree = tree.this
        plain = isinstance(tree, exp.Select) and not any(
            tree.args.get(part) for part in ("group", "having", "distinct", "limit", "offset", "windows", "qualify")
        )
        if not plain or any(is_aggregate(self.query, n) for e in tree.expressions for n in e.walk()):
            plan, alias = self._plan(tree, ctes), self._alias("inner")
            prefixed = relabelled(plan, tuple(f"{alias}.{name}" for name in names(plan.columns)))
            return Inner(prefixed, tuple(Col(name) for name in names(prefixed.columns)))
        assert isinstance(tree, exp.Select)
        rows = self._inner_rows(tree, outer, ctes)
        outputs: list[Scalar] = []
        for node in tree.expressions:
            shown = node.this if isinstance(node, exp.Alias) else node
            if isinstance(shown, exp.Star):
                outputs.extend(Col(name) for name in names(rows.body.columns))
            else:
                outputs.append(self.condition(shown, rows.scope))
        return Inner(rows.body, tuple(outputs), rows.correlated)

    def _inner_rows(self, tree: exp.Select, outer: Scope, ctes: Ctes) -> InnerRows:
        """FROM and WHERE of a query inside the query; conditions on columns of the outer one are kept apart."""
        known = _with_ctes(tree, ctes)
        clause = self._from(tree, known)
        scope = Scope(self.query, clause.items, outer)
        where = tree.args.get("where")
        conditions = clause.conditions + (list(conjuncts(where.this)) if where is not None else [])
        own = {f"{item.prefix}.{column.name}" for item in clause.items for column in item.columns}
        inside: list[exp.Expr | Scalar] = []
        correlated: list[Scalar] = []
        for condition in conditions:
            if isinstance(condition, exp.Expr) and (predicate(condition) is not None or scalars(condition)):
                inside.append(condition)
                continue
            compiled = self.condition(condition, scope)
            (inside if columns_of(compiled) <= own else correlated).append(compiled)
        return InnerRows(self._where(clause.plans, inside, scope, known), scope, tuple(correlated))

    def condition(self, node: exp.Expr | Scalar, scope: Scope) -> Scalar:
        if not isinstance(node, exp.Expr):
            return node
        check_expression(self.query, node, scope.values)
        if any(is_aggregate(self.query, part) for part in parts(node, scope.values)):
            raise Uncovered("CLAUSE", "an aggregate stands outside SELECT and HAVING")
        if isinstance(node, exp.EQ):
            return Call("=", tuple(expression(self.query, side, scope.column) for side in (node.this, node.expression)))
        return expression(self.query, node, scope.column)

    def _from(self, tree: exp.Select, ctes: Ctes) -> _From:
        from_ = tree.args.get("from_")
        if from_ is None:
            raise Uncovered("CLAUSE", "a query without FROM never changes")
        clause = _From()
        self._from_item(from_.this, ctes, clause)
        for join in tree.args.get("joins") or ():
            self._join(join, ctes, clause)
        for lateral in tree.args.get("laterals") or ():
            self._lateral_view(lateral, clause)
        return clause

    def _lateral_view(self, lateral: exp.Lateral, clause: _From) -> None:
        """LATERAL VIEW: rows that a function makes of each row."""
        only(lateral, "this", "view", "outer", "alias")
        if not lateral.args.get("view"):
            raise Uncovered("GENERATOR", "LATERAL subqueries are not maintained incrementally")
        body = clause.plan(self)
        clause.conditions = []
        scope = Scope(self.query, clause.items)
        call = expression(self.query, lateral.this, scope.column)
        outer = bool(lateral.args.get("outer"))
        text = scalar_sql(call, places(body.columns))
        labels = _column_aliases(lateral)
        shown = f" AS {', '.join(quoted(label) for label in labels)}" if labels else ""
        view = f"LATERAL VIEW {'OUTER ' if outer else ''}{text} g{shown}"
        try:
            made = self._analyse(f"SELECT g.* FROM ({empty_select(body.columns)}) {view}")
        except SqlError as error:
            raise Uncovered("GENERATOR", error.message.splitlines()[0]) from error
        alias = lateral.alias or "made"
        prefix = self._alias(alias)
        columns = tuple(replace(column, name=f"{prefix}.{column.name}") for column in made)
        clause.plans = [Generate(body, call, columns, outer)]
        clause.items.append(Item(alias, (alias.lower(),), made, prefix))

    def _join(self, join: exp.Join, ctes: Ctes, clause: _From) -> None:
        if isinstance(join.this, exp.Lateral):
            raise Uncovered("GENERATOR")
        if join.method:
            raise Uncovered("NATURAL_JOIN")
        if join.kind in ("SEMI", "ANTI"):
            self._semi_join(join, ctes, clause)
            return
        if join.side:
            self._outer_join(join, ctes, clause)
            return
        if join.kind not in ("", "INNER", "CROSS"):
            raise Uncovered("NATURAL_JOIN")
        only(join, "this", "kind", "on", "using")
        self._from_item(join.this, ctes, clause)
        on = join.args.get("on")
        if on is not None:
            clause.conditions.extend(conjuncts(on))
        for identifier in join.args.get("using") or ():
            clause.join_using(identifier.name)

    def _semi_join(self, join: exp.Join, ctes: Ctes, clause: _From) -> None:
        """LEFT SEMI and LEFT ANTI JOIN: the right side filters, and is not seen any more."""
        if join.side == "RIGHT":
            raise Uncovered("CLAUSE", "RIGHT SEMI JOIN is not maintained incrementally; swap the sides")
        only(join, "this", "kind", "side", "on", "using")
        left, right, conditions = self._sides(join, ctes, clause)
        keys, rest = matching(conditions, left, right.plan(self))
        clause.plans = [Exists(left, right.plan(self), keys, rest, negated=join.kind == "ANTI")]

    def _outer_join(self, join: exp.Join, ctes: Ctes, clause: _From) -> None:
        only(join, "this", "kind", "side", "on", "using")
        left, other, conditions = self._sides(join, ctes, clause)
        right = other.plan(self)
        if join.side == "RIGHT":
            left, right = right, left
        keys, rest = matching(conditions, left, right)
        clause.plans = [OuterJoin(left, right, keys, rest, full=join.side == "FULL")]
        clause.items.extend(other.items)

    def _sides(self, join: exp.Join, ctes: Ctes, clause: _From) -> tuple[Plan, _From, list[Scalar]]:
        """What was joined so far, as one plan; the other side; and the conditions between the two."""
        left = clause.plan(self)
        clause.conditions = []
        other = _From()
        self._from_item(join.this, ctes, other)
        both = _From(items=[*clause.items, *other.items])
        for identifier in join.args.get("using") or ():
            if join.side in ("RIGHT", "FULL"):
                raise Uncovered("NATURAL_JOIN", f"{join.side} JOIN USING is not maintained incrementally; use ON")
            both.join_using(identifier.name)
        other.items = both.items[len(clause.items) :]
        on = join.args.get("on")
        conditions: list[exp.Expr | Scalar] = [*both.conditions, *(conjuncts(on) if on is not None else [])]
        scope = Scope(self.query, both.items)
        return left, other, [self.condition(condition, scope) for condition in conditions]

    def _from_item(self, node: exp.Expr, ctes: Ctes, clause: _From) -> None:
        match node:
            case exp.Table():
                only(node, "this", "db", "catalog", "alias")
                self._table(node, ctes, clause)
            case exp.Subquery():
                only(node, "this", "alias")
                self._derived(self._plan(node.this, ctes), node.alias, _column_aliases(node), clause)
            case exp.Unnest() | exp.Lateral():
                raise Uncovered("GENERATOR")
            case _:
                raise Uncovered("CLAUSE", f"{type(node).__name__.upper()} in FROM is not yet maintained incrementally")

    def _table(self, node: exp.Table, ctes: Ctes, clause: _From) -> None:
        relation = self._relations.get(node.meta.get("name_span", (-1, -1)))
        if relation is None:
            cte = ctes.get(node.name.lower())
            if cte is None:
                raise Uncovered("GENERATOR")
            plan = self._plan(cte.tree, cte.ctes)
            self._derived(plan, node.alias or node.name, cte.columns or _column_aliases(node), clause)
            return
        if _column_aliases(node):
            raise Uncovered("CLAUSE", "column aliases of a table are not yet maintained incrementally")
        prefix = self._alias(node.alias or relation.name.split(".")[-1])
        qualifiers = (node.alias,) if node.alias else (node.name, relation.name)
        clause.plans.append(Scan(At(relation.name), prefix, relation.columns, relation.key))
        shown = node.alias or node.name
        clause.items.append(Item(shown, tuple(q.lower() for q in qualifiers), relation.columns, prefix))

    def _derived(self, plan: Plan, alias: str, labels: tuple[str, ...], clause: _From) -> None:
        prefix = self._alias(alias or "derived")
        labels = labels or names(plan.columns)
        if len(labels) != len(plan.columns):
            raise Uncovered("CLAUSE", f"{alias} renames {len(labels)} of {len(plan.columns)} columns")
        columns = tuple(replace(c, name=label) for c, label in zip(plan.columns, labels, strict=True))
        clause.plans.append(relabelled(plan, tuple(f"{prefix}.{label}" for label in labels)))
        clause.items.append(Item(alias or prefix, (alias.lower(),), columns, prefix))

    def _alias(self, wanted: str) -> str:
        """*wanted*, or a name like it that no scan of this query has yet."""
        alias, number = wanted, 1
        while alias.lower() in self._aliases:
            number += 1
            alias = f"{wanted}_{number}"
        self._aliases.add(alias.lower())
        return alias


_NOT_NULL_OVER_NOTHING = ("count", "collect", "array_agg", "approx_count", "regr_count", "bit", "histogram")


def _counts(partial: Partial) -> bool:
    """Whether an aggregate that is kept as text is something else than NULL over no rows."""
    text = partial.argument.fragments[0] if isinstance(partial.argument, Text) else ""
    return isinstance(text, str) and text.strip().lower().startswith(_NOT_NULL_OVER_NOTHING)


def _with_ctes(tree: exp.Expr, outer: Ctes) -> Ctes:
    with_ = tree.args.get("with_")
    if with_ is None:
        return outer
    if with_.args.get("recursive"):
        raise Uncovered("CLAUSE", "recursive CTEs are not yet maintained incrementally")
    known = dict(outer)
    for cte in with_.expressions:
        columns = tuple(column.name for column in cte.args["alias"].columns)
        known[cte.alias.lower()] = Cte(cte.this, dict(known), columns)
    return known


def _ordered(tree: exp.Expr, query: Query) -> tuple[str, ...]:
    """ORDER BY of the whole query says nothing about a bag of rows; elsewhere it is not taken."""
    return ("order",) if tree is query.tree else ()


def _select_list(outputs: Sequence[tuple[str, Scalar]], columns: Schema) -> str:
    at = places(columns)
    return ", ".join(f"{scalar_sql(value, at)} AS {quoted(name)}" for name, value in outputs)


def _column_aliases(node: exp.Expr) -> tuple[str, ...]:
    alias = node.args.get("alias")
    return tuple(column.name for column in alias.columns) if alias is not None else ()
