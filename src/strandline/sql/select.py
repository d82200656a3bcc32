"""SELECT to blocks: FROM to scans and joins, the SELECT list to a projection or a grouping."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from strandline.algebra.block import Block
from strandline.algebra.codec import fingerprint
from strandline.algebra.plan import At, Output, Plan, Project, Scan, UnionAll
from strandline.algebra.scalar import Call, Col, Scalar, equality
from strandline.algebra.schema import Schema, names
from strandline.errors import SqlError
from strandline.sql.coverage import Uncovered, check_expression, only
from strandline.sql.functions import is_aggregate
from strandline.sql.grouping import Grouping
from strandline.sql.names import places, quoted
from strandline.sql.references import Reference
from strandline.sql.relations import Analyser, empty_select
from strandline.sql.render import render, scalar_sql
from strandline.sql.scopes import Item, Scope, conjuncts, expression
from strandline.sql.shapes import Shape, bare, distinct, joined, plain_block, relabelled, renamed, unique
from strandline.sql.statements import Query

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
        self._query = query
        self._relations = {reference.name_span: reference.relation for reference in read}
        self._analyse = analyse
        self._hidden: dict[str, Block] = {}
        self._aliases: set[str] = set()

    def blocks(self, name: str, columns: Schema) -> tuple[Block, ...]:
        """All blocks of the query; the last is called *name* and has *columns*."""
        shape = self._shape(self._query.tree, {})
        own = self._grouped(shape, name, columns) if shape.partials else plain_block(name, shape.body, columns)
        return (*self._hidden.values(), own)

    def check_names(self) -> None:
        """Raise SqlError if a column name is unknown or ambiguous, as far as the query is covered."""
        with contextlib.suppress(Uncovered, ValueError, LookupError):
            self._shape(self._query.tree, {})

    def _shape(self, tree: exp.Expr, ctes: Ctes) -> Shape:
        if isinstance(tree, exp.Select):
            return self._select(tree, ctes)
        return Shape(self._union(tree, ctes))

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
        block = Block(name, shape.body, shape.keys, shape.partials.all, shape.having)
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

    def _union(self, tree: exp.Expr, ctes: Ctes) -> Plan:
        if isinstance(tree, exp.Subquery):
            return self._plan(tree, ctes)
        if not isinstance(tree, exp.Union):
            raise Uncovered("SET_OPERATION" if isinstance(tree, exp.SetOperation) else "CLAUSE")
        if tree.args.get("distinct") or tree.args.get("by_name"):
            raise Uncovered("SET_OPERATION")
        only(tree, "with_", "this", "expression", *_ordered(tree, self._query))
        inner = _with_ctes(tree, ctes)
        sides = [bare(self._plan(side, inner)) for side in (tree.this, tree.expression)]
        parts = [part for side in sides for part in (side.inputs if isinstance(side, UnionAll) else (side,))]
        labels = unique(names(parts[0].columns))
        union = UnionAll(tuple(relabelled(part, labels) for part in parts))
        if len({tuple(c.type for c in part.columns) for part in parts}) == 1:
            return union
        wider = self._analyse(render(union, lambda scan: empty_select(scan.fields)))
        return renamed(union, wider)

    def _select(self, tree: exp.Select, outer: Ctes) -> Shape:
        only(
            tree, "expressions", "from_", "joins", "where", "group", "having", "distinct", "with_",
            *_ordered(tree, self._query),
        )  # fmt: skip
        ctes = _with_ctes(tree, outer)
        clause = self._from(tree, ctes)
        scope = Scope(self._query, clause.items)
        where = tree.args.get("where")
        conditions = clause.conditions + (list(conjuncts(where.this)) if where is not None else [])
        body = joined(clause.plans, [self._condition(condition, scope) for condition in conditions])
        grouping = Grouping(self._query, self._types, tree, scope, body)
        is_distinct = tree.args.get("distinct") is not None
        if is_distinct and tree.args["distinct"].args.get("on"):
            raise Uncovered("CLAUSE", "DISTINCT ON is not yet maintained incrementally")
        if grouping.needed:
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

    def _condition(self, node: exp.Expr | Scalar, scope: Scope) -> Scalar:
        if not isinstance(node, exp.Expr):
            return node
        check_expression(self._query, node)
        if any(is_aggregate(self._query, part) for part in node.walk()):
            raise Uncovered("CLAUSE", "an aggregate stands outside SELECT and HAVING")
        if isinstance(node, exp.EQ) and isinstance(node.this, exp.Column) and isinstance(node.expression, exp.Column):
            sides = [expression(self._query, side, scope.column) for side in (node.this, node.expression)]
            if all(isinstance(side, Col) for side in sides):
                return Call("=", tuple(sides))
        return expression(self._query, node, scope.column)

    def _from(self, tree: exp.Select, ctes: Ctes) -> _From:
        from_ = tree.args.get("from_")
        if from_ is None:
            raise Uncovered("CLAUSE", "a query without FROM never changes")
        clause = _From()
        self._from_item(from_.this, ctes, clause)
        for join in tree.args.get("joins") or ():
            self._join(join, ctes, clause)
        return clause

    def _join(self, join: exp.Join, ctes: Ctes, clause: _From) -> None:
        if join.kind in ("SEMI", "ANTI"):
            raise Uncovered("SEMI_JOIN")
        if join.side:
            raise Uncovered("OUTER_JOIN")
        if isinstance(join.this, exp.Lateral):
            raise Uncovered("GENERATOR")
        if join.method or join.kind not in ("", "INNER", "CROSS"):
            raise Uncovered("NATURAL_JOIN")
        only(join, "this", "kind", "on", "using")
        self._from_item(join.this, ctes, clause)
        on = join.args.get("on")
        if on is not None:
            clause.conditions.extend(conjuncts(on))
        for identifier in join.args.get("using") or ():
            clause.join_using(identifier.name)

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
