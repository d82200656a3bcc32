"""Bags, updates and queries as the literature writes them.

``([1,2],-[4,2])``, ``insert(r2,[2,3])``, ``pi_W(r1 >< [2,3])``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from strandline.algebra.bag import Row, SignedBag
from strandline.algebra.plan import At, Join, Operand, Plan, Project, scans
from strandline.algebra.scalar import Call, Col, Scalar
from strandline.algebra.term import Sum

_UPDATE = re.compile(r"\s*(insert|delete)\s*\(\s*([\w.]+)\s*,(.*)\)\s*\Z", re.DOTALL)


def show_bag(bag: SignedBag) -> str:
    """A bag: each row as often as it occurs, deleted ones with a minus."""
    rows = [_signed(row, count) for row, count in sorted(bag.items(), key=lambda item: _order(item[0]))]
    return f"({','.join(rows)})"


def parse_bag(text: str) -> SignedBag:
    """The inverse of :func:`show_bag`; a ValueError says what is wrong."""
    inside = text.strip()
    if not (inside.startswith("(") and inside.endswith(")")):
        raise ValueError(f"{text!r} is no bag: write rows in parentheses, such as ([1,2],[4,2]), or ()")
    inside, rows = inside[1:-1].strip(), []
    while inside:
        sign = -1 if inside.startswith("-") else 1
        row, inside = _row(inside.removeprefix("-").strip(), text)
        rows.append((row, sign))
        if inside and not inside.startswith(","):
            raise ValueError(f"{text!r} is no bag: a comma is missing before {inside!r}")
        inside = inside.removeprefix(",").strip()
    return SignedBag(rows)


def parse_update(text: str) -> tuple[str, SignedBag]:
    """``insert(r,[...])`` or ``delete(r,[...])`` as a relation and its signed row."""
    found = _UPDATE.match(text)
    if found is None:
        raise ValueError(f"{text!r} is no update: write insert(relation,[values]) or delete(relation,[values])")
    row, rest = _row(found[3].strip(), text)
    if rest:
        raise ValueError(f"{text!r} is no update: {rest!r} stands after the row")
    return found[2], SignedBag([(row, 1 if found[1] == "insert" else -1)])


def show_sum(terms: Sum, rows: Callable[[Operand], SignedBag]) -> str:
    """A query: the first term, and the others with their signs; *rows* says what stands for bags."""
    text = ""
    for term in terms:
        joiner = (" + " if term.sign > 0 else " - ") if text else ("" if term.sign > 0 else "-")
        text += joiner + show_plan(term.plan, rows)
    return text or "()"


def show_plan(plan: Plan, rows: Callable[[Operand], SignedBag]) -> str:
    """A term without its sign."""
    joined = " >< ".join(_operand(scan.operand, rows) for scan in scans(plan))
    below = plan.input if isinstance(plan, Project) else plan
    if isinstance(below, Join) and not all(equates(condition) for condition in below.conditions):
        joined = f"sigma({joined})"
    if not isinstance(plan, Project):
        return joined
    return f"pi_{_attributes([output.name for output in plan.outputs])}({joined})"


def show_view(plan: Plan) -> str:
    """A plan that reads relations only."""
    return show_plan(plan, lambda _: SignedBag())


def equates(condition: Scalar) -> bool:
    """Whether a condition equates two columns: what a natural join does without saying so."""
    return isinstance(condition, Call) and condition.op == "=" and all(isinstance(arg, Col) for arg in condition.args)


def _operand(operand: Operand, rows: Callable[[Operand], SignedBag]) -> str:
    if isinstance(operand, At):
        return operand.relation
    bag = rows(operand)
    if len(bag) == 1 and abs(next(iter(bag.values()))) == 1:
        ((row, count),) = bag.items()
        return _signed(row, count)
    return show_bag(bag)


def _attributes(names: Sequence[str]) -> str:
    return "".join(names) if all(len(name) == 1 for name in names) else f"{{{','.join(names)}}}"


def _signed(row: Row, count: int) -> str:
    text = json.dumps(list(row), separators=(",", ":"), default=str)
    return ",".join([text if count > 0 else f"-{text}"] * abs(count))


def _order(row: Row) -> list[tuple[str, Any]]:
    return [(type(value).__name__, value if value is not None else 0) for value in row]


def _row(text: str, whole: str) -> tuple[Row, str]:
    try:
        row, end = json.JSONDecoder().raw_decode(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{whole!r} has something else than a row at {text[:20]!r}: {error.msg}") from error
    if not isinstance(row, list) or any(isinstance(value, list | dict) for value in row):
        raise ValueError(f"{whole!r} has {text[:end]} where a row such as [1,2] must stand")
    return tuple(row), text[end:].strip()
