"""SELECT to blocks, clause by clause: FROM, WHERE, GROUP BY, HAVING, windows, the SELECT list, DISTINCT, LIMIT.

A clause that is linear becomes part of a body. Where a clause stands on groups, windows or chosen rows of the clause
before it, those are a hidden block with a table of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from strandline.algebra.block import Block
from strandline.algebra.codec import fingerprint
from strandline.algebra.plan import At, Output, Plan, Project, Scan, Window
from strandline.algebra.scalar import Call, Col, Scalar, conjunction
from strandline.algebra.schema import Schema, names
from strandline.errors import SqlError
from strandline.sql.coverage import Uncovered, check_expression, only, parts
from strandline.sql.decorrelate import Decorrelator
from strandline.sql.from_clause import FromClause, is_generator, made_rows
from strandline.sql.functions import is_aggregate, loose_aggregates
from strandline.sql.grouping import Grouping, Groups
from strandline.sql.names import places, quoted
from strandline.sql.precedence import bound_otherwise
from strandline.sql.pushdown import with_conditions_inside
from strandline.sql.references import Reference
from strandline.sql.relations import Analyser, Relation, empty_inputs
from strandline.sql.render import scalar_sql
from strandline.sql.scopes import Scope, SelectItem, conjuncts, expression
from strandline.sql.set_operations import set_operation
from strandline.sql.shapes import Shape, bare, distinct, ordered_block, ordered_shape, plain_block
from strandline.sql.statements import Query
from strandline.sql.subqueries import asking
from strandline.sql.top_k import Order, is_limited, limited, output_order, select_order
from strandline.sql.windows import check_window, definition, order_dependence, window_calls, window_value

BLOCK_PREFIX = "block "
"""Names of hidden blocks start so."""

_FLOATS = ("float", "double")


@dataclass(frozen=True)
class Cte:
    """A common table expression, with those it can see."""

    tree: exp.Expr
    ctes: dict[str, Cte]
    columns: tuple[str, ...]


Ctes = dict[str, Cte]


class SelectCompiler:
    """Compiles one query; hidden blocks that it needs are collected on the way."""

    def __init__(
        self, query: Query, read: Sequence[Reference], analyse: Analyser, *, exact_floats: bool = False
    ) -> None:
        self.query = query
        self.exact_floats = exact_floats
        self.analyse = analyse
        self.order_dependence: list[str] = []
        """Why two correct computations of the query may differ."""
        self._relations = {reference.name_span: reference.relation for reference in read}
        self._hidden: dict[str, Block] = {}
        self._aliases: set[str] = set()
        self._loose_inside = False
        self._cte_shapes: dict[int, Shape] = {}

    def blocks(self, name: str, columns: Schema) -> tuple[tuple[Block, ...], tuple[str, ...]]:
        """All blocks of the query, the last called *name* and with *columns*; and which of these are loose."""
        shape = self._shape(self.query.tree, {})
        own = self._named_block(shape, name, columns)
        loose = tuple(c.name for place, c in enumerate(columns) if self._loose_inside or place in shape.loose)
        return with_conditions_inside((*self._hidden.values(), own), BLOCK_PREFIX), loose

    def _named_block(self, shape: Shape, name: str, columns: Schema) -> Block:
        if shape.partials is not None:
            return self._grouped(shape, name, columns)
        if len(columns) != len(shape.outputs if shape.ordered else shape.body.columns):
            raise Uncovered("COMPILED_FORM_DIFFERS", "the number of columns differs")
        return ordered_block(name, shape, columns) if shape.ordered else plain_block(name, shape.body, columns)

    def check_names(self) -> None:
        """Raise SqlError if a column name is unknown or ambiguous, as far as the query is covered."""
        try:
            self._shape(self.query.tree, {})
        except SqlError:
            raise
        except Exception:
            # Spark refuses the query, so any part of it may be missing; its own error is told then.
            return

    def relation(self, table: exp.Table) -> Relation | None:
        """The relation that a table name stands for; None for the name of a CTE."""
        return self._relations.get(table.meta.get("name_span", (-1, -1)))

    def plan(self, tree: exp.Expr, ctes: Ctes) -> Plan:
        """The rows of a query inside the query."""
        if isinstance(tree, exp.Subquery):
            only(tree, "this", "alias", "with_")
            return self.plan(tree.this, self.with_ctes(tree, ctes))
        return self._rows(self._shape(tree, ctes))

    def cte_plan(self, cte: Cte) -> Plan:
        """The rows of a common table expression; one with a block of its own has it once, however often it is read."""
        shape = self._cte_shapes.get(id(cte.tree)) or self._shape(cte.tree, cte.ctes)
        if not shape.linear and shape.in_place is None:
            self._cte_shapes[id(cte.tree)] = shape
        return self._rows(shape)

    def alias(self, wanted: str) -> str:
        """*wanted*, or a name like it that no scan of this query has yet."""
        alias, number = wanted, 1
        while alias.lower() in self._aliases:
            number += 1
            alias = f"{wanted}_{number}"
        self._aliases.add(alias.lower())
        return alias

    def types(self, items: str, columns: Schema) -> Schema:
        """The columns of a SELECT list over an input with *columns*, as Spark types them."""
        try:
            return self.analyse(f"SELECT {items} FROM {empty_inputs(columns)}")
        except SqlError as error:
            raise Uncovered("COMPILED_FORM_DIFFERS", error.message.splitlines()[0]) from error

    def condition(self, node: exp.Expr | Scalar, scope: Scope) -> Scalar:
        """An expression over rows, outside the SELECT list."""
        if not isinstance(node, exp.Expr):
            return node
        check_expression(self.query, node, scope.values)
        grouped = isinstance(scope, Groups)
        if not grouped and any(is_aggregate(self.query, part) for part in parts(node, scope.values)):
            raise Uncovered("CLAUSE", "an aggregate stands outside SELECT and HAVING")
        if isinstance(node, exp.EQ) and not bound_otherwise(node) and id(node) not in scope.values:
            return Call("=", tuple(expression(self.query, side, scope.column) for side in (node.this, node.expression)))
        return expression(self.query, node, scope.column)

    def stored_scan(self, block: Block, alias: str) -> Scan:
        """A scan of a hidden block that shows what it stores."""
        named = replace(block, node=BLOCK_PREFIX + fingerprint(block))
        self._hidden.setdefault(named.node, named)
        return Scan(At(named.node), self.alias(alias), named.visible, named.visible_key)

    def with_ctes(self, tree: exp.Expr, outer: Ctes) -> Ctes:
        """What *tree* can see: the common table expressions around it, and its own."""
        with_ = tree.args.get("with_")
        if with_ is None:
            return outer
        if with_.args.get("recursive"):
            raise Uncovered("CLAUSE", "recursive CTEs are not maintained incrementally")
        known = dict(outer)
        for cte in with_.expressions:
            columns = tuple(column.name for column in cte.args["alias"].columns)
            known[cte.alias.lower()] = Cte(cte.this, dict(known), columns)
        return known

    def items(self, tree: exp.Select, scope: Scope) -> list[SelectItem]:
        """The SELECT list, with ``*`` written out."""
        found: list[SelectItem] = []
        for node in tree.expressions:
            star = node if isinstance(node, exp.Star) else node.this if isinstance(node, exp.Column) else None
            if isinstance(star, exp.Star):
                found.extend(_star(star, node.table if isinstance(node, exp.Column) else "", scope))
            elif isinstance(node, exp.Alias):
                found.append(SelectItem(node.alias, node.this))
            elif isinstance(node, exp.Aliases):
                raise Uncovered("GENERATOR", "several aliases for what is not a function that makes rows")
            else:
                found.append(SelectItem(node.output_name or f"col{len(found)}", node))
        return found

    def note_aggregates(self, nodes: Sequence[exp.Expr]) -> None:
        """Note aggregates of a query inside whose value depends on the order of rows."""
        for node in nodes:
            self._note(loose_aggregates(self.query, node), inside=True)

    def _note(self, found: Sequence[str], *, inside: bool = False) -> bool:
        self.order_dependence.extend(text for text in found if text not in self.order_dependence)
        self._loose_inside |= inside and bool(found)
        return bool(found)

    def _shape(self, tree: exp.Expr, outer: Ctes) -> Shape:
        while isinstance(tree, exp.Subquery) and not is_limited(tree):
            only(tree, "this", "with_", "order")
            outer, tree = self.with_ctes(tree, outer), tree.this
        if isinstance(tree, exp.Select):
            return self._select(tree, outer)
        ctes = self.with_ctes(tree, outer)
        if isinstance(tree, exp.Subquery):
            only(tree, "this", "with_", "order", "limit", "offset")
            shape = self._shape(tree.this, ctes)
        elif isinstance(tree, exp.SetOperation):
            shape = set_operation(self, tree, ctes)
        else:
            raise Uncovered("CLAUSE", f"{type(tree).__name__.upper()} is not maintained incrementally")
        if not is_limited(tree):
            return shape
        rows = self._rows(shape)
        return self._limited(tree, rows, output_order(tree, names(rows.columns)), shape.loose)

    def _rows(self, shape: Shape) -> Plan:
        """The rows of a shape: inlined, or from a hidden block of its own."""
        self._loose_inside |= bool(shape.loose)
        if shape.linear:
            return shape.body
        if shape.in_place is not None:
            return shape.in_place
        if shape.ordered is not None:
            typed = {output.name: output.column for output in (*shape.ordered.sections, *shape.ordered.shown)}
            columns = [replace(typed[v.name], name=n) for n, v in shape.outputs if isinstance(v, Col)]
            block = ordered_block("", shape, tuple(columns))
        else:
            block = self._grouped(shape, "", None)
        return bare(self.stored_scan(block, "block"))

    def _grouped(self, shape: Shape, name: str, columns: Schema | None) -> Block:
        """The block of a grouped query; its output is named and typed as *columns*, else as Spark says."""
        assert shape.partials is not None
        block = Block(name, shape.body, shape.keys, shape.partials.all, shape.having, times=shape.times)
        typed = columns or self.types(_select_list(shape.outputs, block.stored), block.stored)
        if len(typed) != len(shape.outputs):
            raise Uncovered("COMPILED_FORM_DIFFERS", "the number of columns differs")
        outputs = tuple(Output(column, value) for column, (_, value) in zip(typed, shape.outputs, strict=True))
        return replace(block, outputs=outputs)

    def _select(self, tree: exp.Select, outer: Ctes) -> Shape:
        only(
            tree, "expressions", "from_", "joins", "laterals", "where", "group", "having", "distinct", "with_",
            "order", "sort", "cluster", "distribute", "limit", "offset", "hint", "windows",
        )  # fmt: skip
        ctes = self.with_ctes(tree, outer)
        asks = Decorrelator(self, ctes)
        clause = FromClause.of(self, tree, ctes)
        scope = Scope(self.query, clause.items)
        where = tree.args.get("where")
        conditions = clause.conditions + (list(conjuncts(where.this)) if where is not None else [])
        body = asks.joined(clause.plans, conditions, scope)
        body, items = self._generated(body, tree, scope)
        order = select_order(tree, items) if is_limited(tree) else Order()
        listed = [*items, *order.extra]
        nodes = [item.shown for item in listed if isinstance(item.shown, exp.Expr)]
        calls = [call for node in nodes for call in window_calls(node)]
        having = tree.args.get("having")
        asked = [part for node in (*nodes, *([having.this] if having else [])) for part in asking(node)]
        later = {id(part) for part in (*calls, *asked)}
        grouping = Grouping(self.query, self.types, tree, scope, listed, later, exact_floats=self.exact_floats)
        is_distinct = tree.args.get("distinct") is not None
        if is_distinct and (tree.args["distinct"].args.get("on") or order.extra):
            raise Uncovered("CLAUSE", "DISTINCT ON, or DISTINCT ordered by what is not shown")
        loose = self._loose(listed)
        if having is not None:
            self.note_aggregates([having.this])
        rows: Scope = scope
        if grouping.needed:
            body, groups = grouping.groups(body, self.alias)
            if not calls and not asked:
                outputs = tuple((item.name, groups.shown(item)) for item in listed)
                condition = None if having is None else expression(self.query, having.this, groups.column)
                shape = Shape(body, groups.keys, groups.partials, condition, outputs, loose=loose)
                return self._finished(tree, shape, order, len(items))
            for item in listed:
                if isinstance(item.shown, Col) or not (window_calls(item.shown) or asking(item.shown)):
                    groups.shown(item)
            body, rows = self._over_groups(body, groups, having, asks), groups
        elif having is not None:
            raise Uncovered("CLAUSE", "HAVING without aggregates is not maintained incrementally")
        body = asks.beside(body, nodes, rows, shown=True)
        shape = self._listed(body, listed, calls, rows, loose)
        return self._finished(tree, shape, order, len(items))

    def _over_groups(self, body: Plan, groups: Groups, having: exp.Expr | None, asks: Decorrelator) -> Plan:
        """Groups as a hidden block, restricted by HAVING: what follows stands on its stored columns."""
        conditions = [] if having is None else conjuncts(having.this)
        plain = tuple(expression(self.query, c, groups.column) for c in conditions if not asking(c))
        block = Block("", body, groups.keys, groups.partials.all, conjunction(plain))
        scan = self.stored_scan(block, "groups")
        groups.seen_as(scan.alias)
        return asks.restricted(scan, [c for c in conditions if asking(c)], groups)

    def _generated(self, body: Plan, tree: exp.Select, scope: Scope) -> tuple[Plan, list[SelectItem]]:
        """A function in the SELECT list that makes rows, as LATERAL VIEW would; and the SELECT list then."""
        shown = [node.this if isinstance(node, exp.Alias | exp.Aliases) else node for node in tree.expressions]
        made = [(node, call) for node, call in zip(tree.expressions, shown, strict=True) if is_generator(self, call)]
        if not made:
            return body, self.items(tree, scope)
        if len(made) > 1 or tree.args.get("group") is not None:
            raise Uncovered("GENERATOR", "several functions that make rows, or one beside GROUP BY")
        ((node, call),) = made
        labels = [node.alias] if isinstance(node, exp.Alias) else [alias.name for alias in node.args.get("aliases", [])]
        if isinstance(node, exp.Aliases):
            labels = [alias.name for alias in node.expressions]
        for argument in call.iter_expressions():
            check_expression(self.query, argument, scope.values)
        value = expression(self.query, call, scope.column)
        plan, columns = made_rows(self, body, value, labels, "made", outer=False)
        found: list[SelectItem] = []
        for other in tree.expressions:
            if other is node:
                pairs = zip(columns, plan.made, strict=True)
                found.extend(SelectItem(column.name, Col(place.name)) for column, place in pairs)
            else:
                single = exp.Select(expressions=[])
                single.args["expressions"] = [other]
                found.extend(self.items(single, scope))
        return plan, found

    def _loose(self, items: Sequence[SelectItem]) -> frozenset[int]:
        """The places of the items whose value depends on the order of rows."""
        found = set()
        for place, item in enumerate(items):
            if isinstance(item.shown, exp.Expr):
                notes = loose_aggregates(self.query, item.shown)
                dependent = [order_dependence(self.query, call) for call in window_calls(item.shown)]
                if self._note([*notes, *(note for note in dependent if note is not None)]):
                    found.add(place)
        return frozenset(found)

    def _listed(
        self,
        body: Plan,
        items: Sequence[SelectItem],
        calls: Sequence[exp.Window],
        scope: Scope,
        loose: frozenset[int],
    ) -> Shape:
        """The SELECT list over *body*, with its window functions."""
        windows, sections = self._windows(body, calls, scope)
        outputs = [(item.name, scope.shown(item)) for item in items]
        columns = body.columns + tuple(window.column for window in windows)
        # The column behind the list makes Spark refuse an aggregate that is not known here: it would not be linear.
        shown = f"{_select_list(outputs, columns)}, {places(columns)[body.columns[0].name]} AS __row"
        typed = self.types(shown, columns)[: len(outputs)]
        listed = tuple(Output(c, value) for c, (_, value) in zip(typed, outputs, strict=True))
        if not calls:
            return Shape(Project(body, listed), loose=loose)
        shape = replace(ordered_shape(body, listed, self._sections(body, sections), windows), loose=loose)
        floats = any(c.type in _FLOATS for c in body.columns) and any(w.column.type in _FLOATS for w in windows)
        if floats or any(order_dependence(self.query, call) for call in calls):
            return shape
        return replace(shape, in_place=Project(Window(body, sections, windows), listed))

    def _windows(
        self, body: Plan, calls: Sequence[exp.Window], scope: Scope
    ) -> tuple[tuple[Output, ...], tuple[Scalar, ...]]:
        """A column for each window call, which *scope* then knows; and what their partitions have in common."""
        if not calls:
            return (), ()
        values, partitions = [], []
        for call in calls:
            check_window(self.query, call)
            values.append(window_value(self.query, call, scope.column))
            by = definition(call).args.get("partition_by") or ()
            partitions.append([expression(self.query, node, scope.column) for node in by])
        listed = [(f"w{number}", value) for number, value in enumerate(values)]
        typed = self.types(_select_list(listed, body.columns), body.columns)
        alias = self.alias("window")
        outputs = tuple(
            Output(replace(column, name=f"{alias}.{number}"), value)
            for number, (column, value) in enumerate(zip(typed, values, strict=True))
        )
        for call, output in zip(calls, outputs, strict=True):
            scope.values[id(call)] = Col(output.name)
        common = [value for value in partitions[0] if all(value in others for others in partitions[1:])]
        return outputs, tuple(dict.fromkeys(common))

    def _sections(self, body: Plan, values: Sequence[Scalar]) -> tuple[Output, ...]:
        if not values:
            return ()
        listed = [(f"__section_{place + 1}", value) for place, value in enumerate(values)]
        typed = self.types(_select_list(listed, body.columns), body.columns)
        return tuple(Output(column, value) for column, value in zip(typed, values, strict=True))

    def _finished(self, tree: exp.Select, shape: Shape, order: Order, visible: int) -> Shape:
        """DISTINCT, ORDER BY and LIMIT of a SELECT whose first *visible* columns are shown."""
        if tree.args.get("distinct") is not None:
            loose = shape.loose
            shape = replace(distinct(shape.body if shape.linear else self._rows(shape)), loose=loose)
        if not is_limited(tree):
            return shape
        loose = shape.loose
        return self._limited(tree, self._rows(replace(shape, loose=frozenset())), order, loose, visible)

    def _limited(
        self, tree: exp.Expr, rows: Plan, order: Order, loose: frozenset[int], visible: int | None = None
    ) -> Shape:
        """The first rows in an order; what the order does not settle may come out either way."""
        self._note(["LIMIT takes any of the rows that tie in the order"])
        return limited(tree, rows, order, loose, len(rows.columns) if visible is None else visible)


def _star(star: exp.Star, qualifier: str, scope: Scope) -> list[SelectItem]:
    if any(star.args.get(arg) for arg in ("replace", "rename")):
        raise Uncovered("CLAUSE", "* REPLACE is not maintained incrementally")
    items = [item for item in scope.items if not qualifier or item.answers_to(qualifier)]
    without = {column.name.lower() for column in star.args.get("except_") or ()}
    shown = [(item, c) for item in items for c in (item.columns if qualifier else item.shown())]
    return [SelectItem(c.name, item.column(c.name)) for item, c in shown if c.name.lower() not in without]


def _select_list(outputs: Sequence[tuple[str, Scalar]], columns: Schema) -> str:
    at = places(columns)
    return ", ".join(f"{scalar_sql(value, at)} AS {quoted(name)}" for name, value in outputs)
