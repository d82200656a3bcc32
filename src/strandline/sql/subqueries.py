"""Conditions that ask a query: EXISTS and IN, and their negations."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from strandline.algebra.plan import Plan
from strandline.algebra.scalar import Scalar
from strandline.sql.scopes import Scope


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


def scalars(node: exp.Expr) -> list[exp.Subquery]:
    """The queries that stand for a value in an expression, outermost only."""
    if isinstance(node, exp.Subquery):
        return [node]
    if isinstance(node, exp.Exists | exp.Select) or (isinstance(node, exp.In) and node.args.get("query") is not None):
        return []
    return [found for child in node.iter_expressions() for found in scalars(child)]


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
