"""Scalar expressions over columns, of those whose results in Spark are known exactly.

A user's text is parsed, and computed if it is made of what is known here. Types follow Spark's rules; where a column's
recorded type is not the one that these give, or a value does not fit, it is left to Spark, which may have an error to
tell. So nothing is computed here that Spark would compute otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

from strandline.algebra.scalar import Call, Col, Lit, Scalar, Text
from strandline.columnar.arithmetic import absolute, arithmetic, negative, remainder
from strandline.columnar.conditions import case, coalesce, comparison, is_null, logic, same, truth
from strandline.columnar.conversions import PARTS, cast, like, moved, part_of_date, substring
from strandline.columnar.types import NotHere, arrow_type
from strandline.columnar.values import Array, Value, constant
from strandline.sql.precedence import bound_otherwise


def column(scalar: Scalar, rows: pa.Table, kind: str = "") -> Array:
    """The values of *scalar* for each row; they have to be of the type *kind* in Spark, if it is given."""
    found = computed(scalar, rows)
    if kind:
        wanted = arrow_type(kind)
        if pa.types.is_null(found.type):
            found = found.cast(wanted)
        if found.type != wanted:
            raise NotHere(f"{found.type} for {kind}")
    return pa.repeat(found.data, rows.num_rows) if found.constant else found.data


def holds(condition: Scalar, rows: pa.Table) -> Array:
    """Whether a condition is true, false or NULL of each row."""
    found = column(condition, rows)
    if not pa.types.is_boolean(found.type):
        raise NotHere(f"{found.type} for a condition")
    return found


def chosen(rows: pa.Table, condition: Scalar) -> pa.Table:
    """The rows for which a condition is true."""
    return rows.filter(holds(condition, rows))


def computed(scalar: Scalar, rows: pa.Table) -> Value:
    """The value of *scalar*."""
    match scalar:
        case Col(name):
            return Value(rows.column(name))
        case Lit(value):
            return constant(value)
        case Call(op, args):
            if op not in _CALLS:
                raise NotHere(f"the operator {op}")
            return _CALLS[op]([computed(arg, rows) for arg in args])
        case Text(fragments):
            return _Tree(fragments, rows).value(_parsed(tuple(f if isinstance(f, str) else None for f in fragments)))


# A user's text


_PLACE = "strandline_part_"


@lru_cache(maxsize=1024)
def _parsed(fragments: tuple[str | None, ...]) -> exp.Expr:
    """The tree of a text, with a name for each of its parts that are known."""
    # Spark reads what follows a backslash in a string by rules of its own.
    if any(part is not None and "\\" in part for part in fragments):
        raise NotHere("a backslash")
    text = "".join(f" {_PLACE}{n} " if part is None else part for n, part in enumerate(fragments))
    try:
        if _has_sign_plus(text):
            # To Spark a number with it is none that stands in the text, and the tree does not tell.
            raise NotHere("a sign +")
        return sqlglot.parse_one(text, dialect="spark")
    except (SqlglotError, RecursionError, LookupError, AttributeError, TypeError, ValueError) as error:
        raise NotHere(text) from error


def _has_sign_plus(text: str) -> bool:
    before = None
    for token in sqlglot.tokenize(text, dialect="spark"):
        if token.token_type == TokenType.PLUS and before not in _OPERANDS:
            return True
        before = token.token_type
    return False


_OPERANDS = (TokenType.VAR, TokenType.NUMBER, TokenType.STRING, TokenType.IDENTIFIER, TokenType.R_PAREN)
"""What an operand may end with."""


class _Tree:
    """The tree of a text over some rows."""

    def __init__(self, fragments: Sequence[str | Scalar], rows: pa.Table) -> None:
        self._fragments = fragments
        self._rows = rows

    def value(self, node: Any) -> Value:
        # A part of a node that is not known here may change what it means.
        unknown = {part for part, given in node.args.items() if given} - _PARTS_OF.get(type(node), set())
        if type(node) not in _PARTS_OF or unknown:
            raise NotHere(f"{type(node).__name__} {' '.join(sorted(unknown))}".strip())
        if bound_otherwise(node):
            raise NotHere("comparisons beside each other")
        known = _NODES.get(type(node))
        if known is not None:
            return _CALLS[known]([self.value(node.this), self.value(node.expression)])
        match node:
            case exp.Column() if node.name.startswith(_PLACE) and len(node.parts) == 1:
                part = self._fragments[int(node.name.removeprefix(_PLACE))]
                assert not isinstance(part, str)
                return computed(part, self._rows)
            case exp.Paren():
                return self.value(node.this)
            case exp.Literal():
                return _literal(node)
            case exp.Boolean():
                return Value(pa.scalar(bool(node.this)))
            case exp.Null():
                return Value(pa.scalar(None))
            case exp.Neg() if isinstance(node.this, exp.Literal):
                return _literal(node.this, "-")
            case exp.Neg():
                return negative(self.value(node.this))
            case exp.Not():
                return _CALLS["not"]([self.value(node.this)])
            case exp.Add() | exp.Sub():
                return self._sum(node)
            case exp.Is() if isinstance(node.expression, exp.Null):
                return _CALLS["is null"]([self.value(node.this)])
            case exp.Between():
                found, low, high = (self.value(node.args[name]) for name in ("this", "low", "high"))
                return _CALLS["and"]([_CALLS[">="]([found, low]), _CALLS["<="]([found, high])])
            case exp.In() if node.expressions:
                found = self.value(node.this)
                return _CALLS["or"]([_CALLS["="]([found, self.value(each)]) for each in node.expressions])
            case exp.Coalesce():
                return _CALLS["coalesce"]([self.value(each) for each in (node.this, *node.expressions)])
            case exp.Case():
                return self._case(node)
            case exp.If():
                branches = [node.this, node.args["true"], node.args.get("false") or exp.Null()]
                return _CALLS["case"]([self.value(each) for each in branches])
            case exp.Like():
                found = like(self.value(node.this), node.expression)
                return _CALLS["not"]([found]) if node.args.get("negate") else found
            case exp.Substring():
                return substring(self.value(node.this), node.args.get("start"), node.args.get("length"))
            case exp.Extract() if node.name.upper() in PARTS:
                return part_of_date(PARTS[node.name.upper()], self.value(node.expression))
            case exp.Year() | exp.Month() | exp.Day() | exp.Quarter():
                return part_of_date(PARTS[type(node).__name__.upper()], self.value(node.this))
            case exp.TsOrDsToDate():
                return self._date(node)
            case exp.Abs():
                return absolute(self.value(node.this))
            case exp.Cast() if isinstance(node.this, exp.Literal) and not node.this.is_string:
                return replace(self._cast(node), suffixed=True)
            case exp.Cast():
                return self._cast(node)
            case _:
                raise NotHere(type(node).__name__)

    def _cast(self, node: exp.Cast) -> Value:
        """A cast; it is read as TRY_CAST, which is the same where nothing is lost."""
        return cast(self.value(node.this), node.args["to"].sql(dialect="spark").lower().replace(" ", ""))

    def _sum(self, node: exp.Add | exp.Sub) -> Value:
        op = "+" if isinstance(node, exp.Add) else "-"
        if isinstance(node.expression, exp.Interval):
            return moved(self.value(node.this), node.expression, 1 if op == "+" else -1)
        return _CALLS[op]([self.value(node.this), self.value(node.expression)])

    def _date(self, node: exp.TsOrDsToDate) -> Value:
        found = self.value(node.this)
        if not pa.types.is_date(found.type):
            raise NotHere(f"{found.type} as a date")
        return found

    def _case(self, node: exp.Case) -> Value:
        subject = None if node.this is None else self.value(node.this)
        args: list[Value] = []
        for branch in node.args["ifs"]:
            test = self.value(branch.this)
            args.append(test if subject is None else _CALLS["="]([subject, test]))
            args.append(self.value(branch.args["true"]))
        default = node.args.get("default")
        return _CALLS["case"]([*args, *([] if default is None else [self.value(default)])])


def _literal(node: exp.Literal, sign: str = "") -> Value:
    text = node.this
    if node.is_string:
        if sign:
            raise NotHere("- before a text")
        return Value(pa.scalar(text))
    if text.isdecimal():
        return constant(int(sign + text))
    if re.fullmatch(r"\d*\.\d+|\d+\.", text):
        return constant(Decimal(sign + text))
    raise NotHere(f"the number {text}")


_CALLS: dict[str, Callable[[Sequence[Value]], Value]] = {
    "=": comparison("equal"),
    "<>": comparison("not_equal"),
    "<": comparison("less"),
    "<=": comparison("less_equal"),
    ">": comparison("greater"),
    ">=": comparison("greater_equal"),
    "<=>": same,
    "+": arithmetic("+", "add_checked"),
    "-": arithmetic("-", "subtract_checked"),
    "*": arithmetic("*", "multiply_checked"),
    "/": arithmetic("/", "divide_checked"),
    "%": remainder,
    "and": logic("and_kleene"),
    "or": logic("or_kleene"),
    "not": lambda args: Value(pc.invert(truth(args[0]).data)),
    "is null": is_null,
    "is not null": lambda args: Value(pc.is_valid(args[0].data)),
    "coalesce": coalesce,
    "case": case,
}

_NODES: dict[type[Any], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.And: "and",
    exp.Or: "or",
}

_ONE, _TWO = {"this"}, {"this", "expression"}
_PARTS_OF: dict[type[Any], set[str]] = {
    **dict.fromkeys(_NODES, _TWO),
    **dict.fromkeys((exp.Add, exp.Sub, exp.Is, exp.Extract), _TWO),
    **dict.fromkeys((exp.Column, exp.Paren, exp.Boolean, exp.Null, exp.Neg, exp.Not, exp.Abs, exp.TsOrDsToDate), _ONE),
    **dict.fromkeys((exp.Year, exp.Month, exp.Day, exp.Quarter), _ONE),
    exp.Cast: {"this", "to"},
    exp.TryCast: {"this", "to"},
    exp.Div: {"this", "expression", "safe", "typed"},
    exp.Literal: {"this", "is_string"},
    exp.Between: {"this", "low", "high"},
    exp.In: {"this", "expressions"},
    exp.Coalesce: {"this", "expressions"},
    exp.Case: {"this", "ifs", "default"},
    exp.If: {"this", "true", "false"},
    exp.Like: {"this", "expression", "negate"},
    exp.Substring: {"this", "start", "length"},
}
"""The nodes that are known here, and what they are made of."""
