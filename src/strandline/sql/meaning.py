"""The meaning of an expression as a tree of the algebra, where it lies in the evaluator's small subset."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from sqlglot import exp

from strandline.algebra.scalar import Call, Lit, Scalar
from strandline.sql.precedence import bound_otherwise

_BINARY: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.And: "and",
    exp.Or: "or",
}

Lookup = Callable[[exp.Expr], Scalar | None]


DEEPEST = 40
"""Expressions that are nested deeper have no meaning here."""


def meaning(node: exp.Expr, lookup: Lookup, depth: int = 0) -> Scalar | None:
    """*node* as a tree, or None outside the subset; *lookup* gives columns and other parts that are known."""
    if depth > DEEPEST:
        return None
    known = lookup(node)
    if known is not None:
        return known
    if bound_otherwise(node):
        return None
    if type(node) in _BINARY:
        return _call(_BINARY[type(node)], [node.this, node.expression], lookup, depth)
    match node:
        case exp.Paren():
            return meaning(node.this, lookup, depth + 1)
        case exp.Not():
            return _call("not", [node.this], lookup, depth)
        case exp.Is() if isinstance(node.expression, exp.Null):
            return _call("is null", [node.this], lookup, depth)
        case exp.Coalesce():
            return _call("coalesce", [node.this, *node.expressions], lookup, depth)
        case exp.Case() if node.this is None:
            args = [part for branch in node.args["ifs"] for part in (branch.this, branch.args["true"])]
            default = node.args.get("default")
            return _call("case", args + ([default] if default is not None else []), lookup, depth)
        case exp.Null():
            return Lit(None)
        case exp.Boolean():
            return Lit(bool(node.this))
        case exp.Literal():
            return _literal(node)
        case exp.Neg() if isinstance(node.this, exp.Literal) and not node.this.is_string:
            value = _literal(node.this)
            return Lit(-value.value) if value and isinstance(value.value, int | Decimal) else None
    return None


def _literal(node: exp.Literal) -> Lit | None:
    text = node.this
    if node.is_string:
        return Lit(text)
    if text.isdigit():
        return Lit(int(text))
    if text.replace(".", "", 1).isdigit():
        return Lit(Decimal(text))
    return None


def _call(op: str, args: list[exp.Expr], lookup: Lookup, depth: int) -> Scalar | None:
    meanings = [meaning(arg, lookup, depth + 1) for arg in args]
    known = [m for m in meanings if m is not None]
    return Call(op, tuple(known)) if len(known) == len(meanings) else None
