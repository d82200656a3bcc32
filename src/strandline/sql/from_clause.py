"""FROM to scans and joins: tables, derived tables, rows written out, joins of every kind, and rows made of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from strandline.algebra.plan import At, Exists, Generate, OuterJoin, Output, Plan, Project, Scan, Values
from strandline.algebra.scalar import Call, Col, Scalar, Text, equality
from strandline.algebra.schema import Column, Schema, names
from strandline.errors import SqlError
from strandline.sql.coverage import Uncovered, check_expression, only
from strandline.sql.functions import GENERATORS, function_name
from strandline.sql.matching import matching
from strandline.sql.names import places, quoted, told_apart
from strandline.sql.relations import empty_inputs
from strandline.sql.render import scalar_sql
from strandline.sql.scopes import Item, Scope, conjuncts, expression
from strandline.sql.shapes import joined, relabelled

if TYPE_CHECKING:
    from strandline.sql.select import Ctes, SelectCompiler


@dataclass
class FromClause:
    """A FROM clause: inputs, what names stand for, and join conditions."""

    compiler: SelectCompiler
    ctes: Ctes
    plans: list[Plan] = field(default_factory=list)
    items: list[Item] = field(default_factory=list)
    conditions: list[exp.Expr | Scalar] = field(default_factory=list)

    @classmethod
    def of(cls, compiler: SelectCompiler, tree: exp.Select, ctes: Ctes) -> FromClause:
        """The FROM clause of a SELECT; without one there is one row."""
        clause = cls(compiler, ctes)
        from_ = tree.args.get("from_")
        if from_ is None:
            clause.plans.append(Values(((Text(("0",)),),), (Column(f"{compiler.alias('nothing')}.0", "int"),)))
        else:
            clause._add(from_.this)
        for join in tree.args.get("joins") or ():
            clause._join(join)
        for lateral in tree.args.get("laterals") or ():
            clause._made_rows(lateral, outer=bool(lateral.args.get("outer")))
        return clause

    def plan(self) -> Plan:
        """All inputs joined."""
        scope = Scope(self.compiler.query, self.items)
        return joined(self.plans, [self.compiler.condition(condition, scope) for condition in self.conditions])

    def _add(self, node: exp.Expr) -> None:
        match node:
            case exp.Table():
                only(node, "this", "db", "catalog", "alias", "joins")
                self._add_table(node)
            case exp.Subquery() if isinstance(node.this, exp.Table):
                only(node, "this")
                self._add_joined(node.this)
            case exp.Subquery():
                only(node, "this", "alias")
                self._add_derived(self.compiler.plan(node.this, self.ctes), node.alias, column_aliases(node))
            case exp.Values():
                only(node, "expressions", "alias")
                self._add_values(node)
            case exp.Unnest() | exp.Lateral():
                raise Uncovered("GENERATOR")
            case _:
                raise Uncovered("CLAUSE", f"{type(node).__name__.upper()} in FROM is not maintained incrementally")

    def _add_joined(self, table: exp.Table) -> None:
        """Joins between parentheses."""
        inner = FromClause(self.compiler, self.ctes)
        inner._add(table)
        for join in table.args.get("joins") or ():
            inner._join(join)
        self.plans.append(inner.plan())
        self.items.extend(inner.items)

    def _add_table(self, node: exp.Table) -> None:
        relation = self.compiler.relation(node)
        if relation is None:
            cte = self.ctes.get(node.name.lower())
            if cte is None:
                raise Uncovered("GENERATOR")
            self._add_derived(self.compiler.cte_plan(cte), node.alias or node.name, column_aliases(node) or cte.columns)
            return
        prefix = self.compiler.alias(node.alias or relation.name.split(".")[-1])
        scan = Scan(At(relation.name), prefix, relation.columns, relation.key)
        labels = column_aliases(node)
        if labels:
            self._add_derived(scan, node.alias, labels)
            return
        qualifiers = (node.alias,) if node.alias else (node.name, relation.name)
        self.plans.append(scan)
        shown = node.alias or node.name
        self.items.append(Item(shown, tuple(q.lower() for q in qualifiers), relation.columns, prefix))

    def _add_derived(self, plan: Plan, alias: str, labels: tuple[str, ...]) -> None:
        prefix = self.compiler.alias(alias or "derived")
        labels = told_apart(labels or names(plan.columns))
        if len(labels) != len(plan.columns):
            raise Uncovered("CLAUSE", f"{alias} renames {len(labels)} of {len(plan.columns)} columns")
        columns = tuple(replace(c, name=label) for c, label in zip(plan.columns, labels, strict=True))
        self.plans.append(relabelled(plan, tuple(f"{prefix}.{label}" for label in labels)))
        self.items.append(Item(alias or prefix, (alias.lower(),), columns, prefix))

    def _add_values(self, node: exp.Values) -> None:
        """VALUES: its types are those that Spark finds for the text as it stands."""
        query = self.compiler.query
        rows = []
        for row in node.expressions:
            cells = row.expressions if isinstance(row, exp.Tuple) else [row.this if isinstance(row, exp.Paren) else row]
            for cell in cells:
                check_expression(query, cell)
            rows.append(tuple(expression(query, cell, Scope(query, ()).column) for cell in cells))
        if len({len(row) for row in rows}) != 1:
            raise Uncovered("CLAUSE", "rows of VALUES have different numbers of columns")
        listed = ", ".join(f"({', '.join(scalar_sql(cell, {}) for cell in row)})" for row in rows)
        columns = self.compiler.analyse(f"SELECT * FROM VALUES {listed}")
        self._add_derived(Values(tuple(rows), columns), node.alias, column_aliases(node))

    def _join(self, join: exp.Join) -> None:
        if isinstance(join.this, exp.Lateral):
            self._lateral_join(join)
            return
        if join.kind not in ("", "INNER", "OUTER", "CROSS", "SEMI", "ANTI") or join.method not in ("", "NATURAL"):
            raise Uncovered("CLAUSE", f"{join.kind or join.method} JOIN is not maintained incrementally")
        only(join, "this", "kind", "side", "on", "using", "method")
        if join.kind in ("SEMI", "ANTI"):
            self._semi_join(join)
        elif join.side:
            self._outer_join(join)
        else:
            before = len(self.items)
            self._add(join.this)
            self.conditions.extend(self._merge(join, before)[0])
            self.conditions.extend(_conditions(join))

    def _semi_join(self, join: exp.Join) -> None:
        """LEFT SEMI and LEFT ANTI JOIN: the right side filters, and is not seen any more."""
        if join.side == "RIGHT":
            raise Uncovered("CLAUSE", "RIGHT SEMI JOIN is not maintained incrementally; swap the sides")
        items = list(self.items)
        left, right, conditions, _ = self._sides(join)
        keys, rest = matching(conditions, left, right)
        self.items = items
        self.plans = [Exists(left, right, keys, rest, negated=join.kind == "ANTI")]

    def _outer_join(self, join: exp.Join) -> None:
        left, right, conditions, merged = self._sides(join)
        if join.side == "RIGHT":
            keys, rest = matching(conditions, right, left)
            self.plans = [OuterJoin(right, left, keys, rest)]
        else:
            keys, rest = matching(conditions, left, right)
            self.plans = [OuterJoin(left, right, keys, rest, full=join.side == "FULL")]
        if merged and join.side != "LEFT":
            self._settle_merged(join.side)

    def _sides(self, join: exp.Join) -> tuple[Plan, Plan, list[Scalar], bool]:
        """What was joined so far, as one plan; the other side; the conditions between them; whether columns merge."""
        left, before = self.plan(), len(self.items)
        self.plans, self.conditions = [], []
        self._add(join.this)
        right = self.plan()
        equal, merged = self._merge(join, before)
        conditions = [*equal, *_conditions(join)]
        self.conditions = []
        scope = Scope(self.compiler.query, self.items)
        return left, right, [self.compiler.condition(condition, scope) for condition in conditions], merged

    def _merge(self, join: exp.Join, before: int) -> tuple[list[Scalar], bool]:
        """USING and NATURAL: equal columns of the item at place *before* and those left of it are one from here on."""
        if (join.args.get("using") or join.method == "NATURAL") and len(self.items) > before + 1:
            raise Uncovered("NATURAL_JOIN", "USING before a join between parentheses; name the columns with ON")
        using = [identifier.name for identifier in join.args.get("using") or ()]
        if join.method == "NATURAL":
            ours = [c.name for item in self.items[:before] for c in item.shown()]
            using = [name for name in ours if self.items[before].find(name) is not None]
        conditions: list[Scalar] = []
        merged: list[Column] = []
        stand: dict[str, str] = {}
        for name in using:
            last = self.items[before]
            right = last.find(name)
            lefts = [
                (place, c)
                for place, item in enumerate(self.items[:before])
                if (c := item.find(name)) is not None and c.name not in item.hidden
            ]
            if right is None or len(lefts) != 1:
                raise Uncovered("NATURAL_JOIN", f"USING ({name}) does not name one column on each side")
            place, left = lefts[0]
            ours_column, theirs = self.items[place].column(left.name).name, last.column(right.name).name
            conditions.append(equality(ours_column, theirs))
            self.items[place] = replace(self.items[place], hidden=self.items[place].hidden | {left.name})
            self.items[before] = replace(last, hidden=last.hidden | {right.name})
            merged.append(left)
            stand[left.name] = ours_column
        if merged:
            prefix = self.compiler.alias("using")
            self.items.insert(0, Item(prefix, (), tuple(merged), prefix, stand=stand))
        return conditions, bool(merged)

    def _settle_merged(self, side: str) -> None:
        """After RIGHT and FULL JOIN USING, a merged column is that of the right side, or of the one that has it."""
        merged, right = self.items[0], self.items[-1]
        body = self.plans[0]
        outputs = [Output(c, Col(c.name)) for c in body.columns]
        settled = []
        for column in merged.columns:
            theirs = next(c.name for c in right.columns if c.name.lower() == column.name.lower())
            value: Scalar = right.column(theirs)
            if side == "FULL":
                value = Call("coalesce", (merged.column(column.name), value))
            (typed,) = self.compiler.types(f"{scalar_sql(value, places(body.columns))} AS `merged`", body.columns)
            settled.append(replace(column, type=typed.type, nullable=True))
            outputs.append(Output(replace(settled[-1], name=f"{merged.prefix}.{column.name}"), value))
        self.plans = [Project(body, tuple(outputs))]
        self.items[0] = replace(merged, columns=tuple(settled), stand={})

    def _lateral_join(self, join: exp.Join) -> None:
        """``JOIN LATERAL explode(...)``: like LATERAL VIEW."""
        if join.side or _conditions(join):
            # Spark drops the rows for which LEFT JOIN LATERAL explode() makes none, against its own documentation.
            raise Uncovered("GENERATOR", "LATERAL with a condition or an outer join is not maintained incrementally")
        self._made_rows(join.this, outer=False)

    def _made_rows(self, lateral: exp.Lateral, *, outer: bool) -> None:
        """LATERAL VIEW: rows that a function makes of each row."""
        only(lateral, "this", "view", "outer", "alias")
        if isinstance(lateral.this, exp.Subquery):
            raise Uncovered("GENERATOR", "LATERAL subqueries are not maintained incrementally")
        body = self.plan()
        self.conditions = []
        scope = Scope(self.compiler.query, self.items)
        call = expression(self.compiler.query, lateral.this, scope.column)
        plan, made = made_rows(self.compiler, body, call, column_aliases(lateral), lateral.alias or "made", outer=outer)
        alias = lateral.alias or "made"
        prefix = plan.made[0].name.removesuffix(f".{made[0].name}")
        self.plans = [plan]
        self.items.append(Item(alias, (alias.lower(),), made, prefix))


def made_rows(
    compiler: SelectCompiler, body: Plan, call: Scalar, labels: Sequence[str], alias: str, *, outer: bool
) -> tuple[Generate, Schema]:
    """*body* beside the rows that *call* makes of each of its rows, and the columns of those."""
    text = scalar_sql(call, places(body.columns))
    shown = f" AS {', '.join(quoted(label) for label in labels)}" if labels else ""
    view = f"LATERAL VIEW {'OUTER ' if outer else ''}{text} g{shown}"
    try:
        made = compiler.analyse(f"SELECT g.* FROM {empty_inputs(body.columns)} {view}")
    except SqlError as error:
        raise Uncovered("GENERATOR", error.message.splitlines()[0]) from error
    prefix = compiler.alias(alias)
    columns = tuple(replace(column, name=f"{prefix}.{column.name}") for column in made)
    return Generate(body, call, columns, outer), made


def _conditions(join: exp.Join) -> list[exp.Expr]:
    """What ON joins by; where it is missing, the parser puts a condition that stands nowhere in the text."""
    on = join.args.get("on")
    return [] if on is None or "span" not in on.meta else conjuncts(on)


def is_generator(compiler: SelectCompiler, node: exp.Expr) -> bool:
    """Whether *node* calls a function that makes rows."""
    return function_name(compiler.query, node) in GENERATORS


def column_aliases(node: exp.Expr) -> tuple[str, ...]:
    """The column names in ``AS alias(a, b)``."""
    alias = node.args.get("alias")
    return tuple(column.name for column in alias.columns) if alias is not None else ()
