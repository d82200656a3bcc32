"""ORDER BY with LIMIT and OFFSET: the first rows in an order. Without these, it says nothing about a bag of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from strandline.algebra.plan import Output, Plan
from strandline.algebra.scalar import Col, Scalar, Text
from strandline.algebra.schema import names
from strandline.sql.coverage import Uncovered
from strandline.sql.scopes import SelectItem
from strandline.sql.shapes import Shape, ordered_shape, relabelled, unique


@dataclass(frozen=True)
class Order:
    """ORDER BY: the places of its values among the columns, with their directions; *extra* columns are not shown."""

    by: tuple[tuple[int, str], ...] = ()
    extra: tuple[SelectItem, ...] = ()


def is_limited(tree: exp.Expr) -> bool:
    """Whether a query takes only some of its rows."""
    return tree.args.get("limit") is not None or tree.args.get("offset") is not None


def select_order(tree: exp.Select, items: Sequence[SelectItem]) -> Order:
    """ORDER BY of a SELECT: by place, by a name or expression of its list, or by something that it does not show."""
    shown = [item.name.lower() for item in items]
    by: list[tuple[int, str]] = []
    extra: list[SelectItem] = []
    for node, direction in _ordered(tree):
        place = _place(node, shown)
        if place is None:
            place = next((p for p, item in enumerate(items) if item.shown == node), None)
        if place is None:
            extra.append(SelectItem(f"__order_{len(extra) + 1}", node))
            place = len(items) + len(extra) - 1
        by.append((place, direction))
    return Order(tuple(by), tuple(extra))


def output_order(tree: exp.Expr, shown: Sequence[str]) -> Order:
    """ORDER BY of a set operation: by places and names of its columns."""
    by = []
    for node, direction in _ordered(tree):
        place = _place(node, [name.lower() for name in shown])
        if place is None:
            raise Uncovered("LIMIT", "a set operation is ordered by an expression; select it in a subquery")
        by.append((place, direction))
    return Order(tuple(by))


def limited(tree: exp.Expr, rows: Plan, order: Order, loose: frozenset[int], visible: int) -> Shape:
    """The first of *rows*; their first *visible* columns are shown."""
    plan = relabelled(rows, unique(names(rows.columns)))
    columns = plan.columns
    by: list[Scalar] = [Text((Col(columns[place].name), f" {direction}")) for place, direction in order.by]
    outputs = tuple(Output(column, Col(column.name)) for column in columns[:visible])
    settled = {place for place, _ in order.by} - loose
    return ordered_shape(
        plan,
        outputs,
        order=tuple(by),
        limit=_number(tree.args.get("limit")),
        offset=_number(tree.args.get("offset")) or 0,
        loose=frozenset(range(visible)) - settled,
    )


def _ordered(tree: exp.Expr) -> list[tuple[exp.Expr, str]]:
    order = tree.args.get("order")
    if order is None:
        return []
    found = []
    for node in order.expressions:
        if not isinstance(node, exp.Ordered):
            raise Uncovered("LIMIT", "ORDER BY ALL is not maintained incrementally; name the columns")
        direction = "DESC" if node.args.get("desc") else "ASC"
        found.append((node.this, f"{direction} NULLS {'FIRST' if node.args.get('nulls_first') else 'LAST'}"))
    return found


def _place(node: exp.Expr, shown: Sequence[str]) -> int | None:
    """The place of a column that is ordered by its number or its name."""
    if isinstance(node, exp.Literal) and not node.is_string and node.this.isdigit():
        if not 1 <= int(node.this) <= len(shown):
            raise Uncovered("LIMIT", f"ORDER BY {node.this} is not the place of a column")
        return int(node.this) - 1
    if isinstance(node, exp.Column) and len(node.parts) == 1 and node.name.lower() in shown:
        return list(shown).index(node.name.lower())
    return None


def _number(clause: exp.Expr | None) -> int | None:
    """The number in LIMIT or OFFSET; LIMIT ALL is none."""
    if clause is None:
        return None
    node = clause.expression
    if isinstance(node, exp.Literal) and not node.is_string and node.this.isdigit():
        return int(node.this)
    if isinstance(node, exp.Column | exp.Var) and node.name.upper() == "ALL":
        return None
    raise Uncovered("LIMIT", "LIMIT and OFFSET are maintained incrementally with a number only")
