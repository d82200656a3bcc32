"""Views kept in memory: computed from scratch, or refreshed by the deltas of their blocks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

from strandline.algebra import few
from strandline.algebra.bag import SignedBag
from strandline.algebra.block import Block, BlockDelta, Method, delta_of
from strandline.algebra.constraints import NOTHING, Assumed, simplified
from strandline.algebra.differentiate import group_by
from strandline.algebra.evaluate import NegativeCount, evaluate
from strandline.algebra.few import Rows, from_the_delta
from strandline.algebra.inner import Inner, candidates
from strandline.algebra.near import Near, Origin, Ranges, near
from strandline.algebra.plan import (
    COUNT,
    At,
    Backing,
    Bag,
    Change,
    Filter,
    GroupBy,
    Operand,
    Plan,
    Scan,
    map_children,
)
from strandline.algebra.prune import narrowed
from strandline.algebra.scalar import Call, Col, Lit
from strandline.algebra.schema import names
from strandline.algebra.shared import SharedJoin


@dataclass(frozen=True)
class Contents:
    """The rows of leaves and views as readers see them, and the stored rows of views."""

    visible: Mapping[str, SignedBag]
    stored: Mapping[str, SignedBag]


@dataclass(frozen=True)
class Refresh:
    """What a refresh did: contents after it, deltas by relation, and how each block's delta was computed."""

    after: Contents
    visible_deltas: Mapping[str, SignedBag]
    stored_deltas: Mapping[str, SignedBag]
    plans: Mapping[str, BlockDelta]


def computed(blocks: Sequence[Block], leaves: Mapping[str, SignedBag]) -> Contents:
    """All *blocks*, given in topological order, from the leaves alone."""
    visible, stored = dict(leaves), dict[str, SignedBag]()

    def current(operand: Operand) -> SignedBag:
        assert isinstance(operand, At)
        return visible[operand.relation]

    for block in blocks:
        stored[block.node] = evaluate(block.contents, current)
        visible[block.node] = read(block, stored[block.node])
    return Contents(visible, stored)


def read(block: Block, stored: SignedBag) -> SignedBag:
    """The visible rows of *block*, or their delta, from stored ones."""
    return _evaluated(block.reading(Scan(Backing(block.node), "", block.stored)), stored)


def _number(rows: SignedBag) -> int:
    return sum(1 for _ in rows)


def _evaluated(plan: Plan, rows: SignedBag) -> SignedBag:
    return evaluate(plan, lambda _: rows)


def absorbed(block: Block, old: SignedBag, summary: SignedBag) -> SignedBag:
    """The stored rows of *block* after a summary delta; a count below zero is an error."""
    assert isinstance(block.contents, GroupBy)
    scans = (Scan(Backing(block.node), "", block.stored), Scan(Bag("summary"), "", block.stored))
    plan: Plan = group_by.absorbed(block.contents, *scans)
    rows = evaluate(plan, lambda operand: old if isinstance(operand, Backing) else summary)
    place = names(block.stored).index(COUNT)
    if any(row[place] < 0 for row in rows):
        raise NegativeCount(block.node)
    if block.keys:
        plan = Filter(scans[0], Call(">", (Col(COUNT), Lit(0))))
        rows = evaluate(plan, lambda _: rows)
    return rows


def copies_counted(block: Block, copies: SignedBag) -> SignedBag:
    """Copies of the rows of a counted *block* as a summary delta."""
    return SignedBag(((*row, count), 1) for row, count in copies.items())


def ranges(values: Iterable[Any]) -> Ranges | None:
    """Numbers as ranges: those that follow on each other are one."""
    found = list(values)
    numbers = sorted({value for value in found if value is not None})
    pairs: list[tuple[int, int]] = []
    for number in numbers:
        low = pairs.pop()[0] if pairs and pairs[-1][1] == number - 1 else number
        pairs.append((low, number))
    literals = tuple((Lit(low), Lit(high)) for low, high in pairs)
    return Ranges("bigint", literals, None in found) if pairs else None


def refreshed(
    blocks: Sequence[Block],
    before: Contents,
    changes: Mapping[str, SignedBag],
    method: Method = "explicit",
    assumed: Assumed = NOTHING,
    order: Sequence[str] = (),
    sharing: Mapping[str, Sequence[SharedJoin]] | None = None,
    only_near: bool = False,
    inside: bool = False,
) -> Refresh:
    """*before* after *changes* of the leaves, block by block, each from the deltas of those below it.

    *order* is the one in which the inputs of a join are taken to change. The deltas of the joins that a block is
    *sharing* are computed apart. With *only_near* joins begin at deltas, tables are read within the ranges of the
    deltas that they meet, and of tables in which rows are sought no others are read. With *inside* the deltas of inputs
    inside a body are computed before its own.
    """
    visible, stored = dict(before.visible), dict(before.stored)
    deltas = dict(changes)
    stored_deltas: dict[str, SignedBag] = {}
    plans: dict[str, BlockDelta] = {}
    for name, delta in changes.items():
        visible[name] = visible[name] + delta

    def operand_rows(operand: Operand) -> SignedBag:
        match operand:
            case Change(relation, "pre", "post"):
                return deltas[relation]
            case Backing(node, "pre"):
                return before.stored[node]
            case At(relation, "pre"):
                return before.visible[relation]
            case At(relation, "post"):
                return visible[relation]
        raise AssertionError(f"a delta reads {operand}")

    def rows_of(plan: Plan) -> SignedBag:
        if not only_near:
            return evaluate(plan, operand_rows)
        with mock.patch.object(few, "LARGE_ROWS", 0):
            return evaluate(only_sought(from_the_delta(near(plan, ranges_of), counted)), rows_or_found)

    found: dict[str, SignedBag] = {}

    def rows_or_found(operand: Operand) -> SignedBag:
        return found[operand.name] if isinstance(operand, Bag) else operand_rows(operand)

    def only_sought(plan: Plan) -> Plan:
        """*plan* with the rows that are sought in place of tables."""
        if not isinstance(plan, Near) or not plan.sought:
            return map_children(plan, only_sought)
        name = f"found {len(found)}"
        found[name] = sought_rows(plan)
        return Scan(Bag(name), plan.alias, plan.fields, plan.key)

    def sought_rows(scan: Near) -> SignedBag:
        places = {column.name: place for place, column in enumerate(scan.columns)}
        asked = {places[name]: {v for o in origins for v in values(o)} for name, origins in scan.sought.items()}
        rows = operand_rows(scan.operand).items()
        return SignedBag(
            (row, count) for row, count in rows if all(row[place] in known for place, known in asked.items())
        )

    def values(origin: Origin) -> set[Any]:
        scan = origin.scan
        rows = sought_rows(scan) if isinstance(scan, Near) else operand_rows(scan.operand)
        place = names(scan.fields).index(origin.field)
        return {row[place] for row, _ in rows.items()}

    def counted(scan: Scan) -> Rows | None:
        if isinstance(scan.operand, Backing):
            stored_rows = _number(before.stored[scan.operand.node])
            return Rows(stored_rows, stored_rows)
        if not isinstance(scan.operand, At | Change) or scan.operand.relation not in visible:
            return None
        return Rows(_number(operand_rows(scan.operand)), _number(visible[scan.operand.relation]))

    def ranges_of(scan: Scan, field: str) -> Ranges | None:
        place = names(scan.fields).index(field)
        known = ranges(row[place] for row in operand_rows(scan.operand))
        return None if known is None else replace(known, among=(Origin(scan, field),))

    for block in blocks:
        inputs = [deltas[name] for name in block.inputs if name in deltas]
        insert_only = not any(delta.deleted for delta in inputs)
        shared = []
        for join in (sharing or {}).get(block.node, ()):
            apart = delta_of(Block(join.name, join.plan), deltas.keys(), insert_only=insert_only, assumed=assumed)
            deltas[join.name] = SignedBag() if apart is None else rows_of(apart.plan)
            shared.append(replace(join, empty=not deltas[join.name]))
        changed = [name for name in deltas if name in visible]
        known = {"insert_only": insert_only, "method": method, "assumed": assumed, "order": order, "shared": shared}
        inner: list[Inner] = []
        if inside:
            block = narrowed(replace(block, body=simplified(block.body, assumed)[0]))
            for part in dict.fromkeys(each.plan for each in candidates(block.body, changed)):
                name = f"inner {len(inner) + 1} of {block.node}"
                told = {name: known[name] for name in ("assumed", "order", "shared")}
                apart = delta_of(Block(name, part), changed, insert_only=False, inner=inner, **told)  # type: ignore[arg-type]
                deltas[name] = SignedBag() if apart is None else rows_of(apart.plan)
                inner.append(Inner(name, part, empty=not deltas[name]))
        plan = delta_of(block, changed, inner=inner, **known)  # type: ignore[arg-type]
        if plan is None:
            continue
        delta = rows_of(plan.plan)
        plans[block.node] = plan
        old = stored[block.node]
        match plan.form:
            case "explicit":
                stored[block.node] = old + delta
            case "summary":
                stored[block.node] = absorbed(block, old, delta)
            case "copies":
                stored[block.node] = absorbed(block, old, copies_counted(block, delta))
        stored_deltas[block.node] = stored[block.node] - old
        if plan.form == "copies":
            scan = Scan(Bag("copies"), "", plan.plan.columns)
            deltas[block.node] = _evaluated(block.reading_copies(scan), delta)
        else:
            deltas[block.node] = read(block, stored_deltas[block.node])
        visible[block.node] = visible[block.node] + deltas[block.node]
    return Refresh(Contents(visible, stored), deltas, stored_deltas, plans)
