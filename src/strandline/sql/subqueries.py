"""Conditions that ask a query: EXISTS and IN, and their negations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from strandline.algebra.plan import Plan
from strandline.algebra.scalar import Scalar
from strandline.sql.scopes import Scope

if TYPE_CHECKING:
    from strandline.sql.select import Ctes


@dataclass(frozen=True)
class Predicate:
    """``[NOT] EXISTS (query)``, or ``values [NOT] IN (query)``."""

    query: exp.Expr
    values: tuple[exp.Expr, ...] | None
    negated: bool


@dataclass(frozen=True)
class Inner:
    """The query inside: its rows, the values it gives, and conditions that read columns of the query around it."""

    body: Plan
    outputs: tuple[Scalar, ...]
    correlated: tuple[Scalar, ...] = ()


@dataclass(frozen=True)
class InnerRows:
    """FROM and WHERE of the query inside, and what names mean there."""

    body: Plan
    scope: Scope
    correlated: tuple[Scalar, ...]
    ctes: Ctes


def asking(node: exp.Expr) -> list[exp.Expr]:
    """The parts of an expression that ask a query, outermost only: scalar subqueries, EXISTS and IN."""
    return [part for part in node.walk(bfs=False, prune=_asks) if _asks(part)]


def _asks(node: exp.Expr) -> bool:
    return isinstance(node, exp.Query) or (predicate(node) is not None and "span" in node.meta)


def predicate(node: exp.Expr) -> Predicate | None:
    """What a condition asks of a query, if that is all that it does."""
    negated = False
    while isinstance(node, exp.Not | exp.Paren):
        negated ^= isinstance(node, exp.Not)
        node = node.this
    if isinstance(node, exp.Exists):
        return Predicate(node.this, None, negated)
    if isinstance(node, exp.In) and node.args.get("query") is not None:
        left = node.this
        values = tuple(left.expressions) if isinstance(left, exp.Tuple) else (left,)
        return Predicate(node.args["query"], values, negated)
    return None
