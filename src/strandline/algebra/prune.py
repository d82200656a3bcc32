"""Columns that nobody reads, taken out of the scans of a plan.

What is left says which columns of a source a view uses: only those are read, and only their changes matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from strandline.algebra.block import Block
from strandline.algebra.plan import (
    COUNT,
    Exists,
    Filter,
    Generate,
    GroupBy,
    Join,
    OuterJoin,
    Output,
    Partial,
    Plan,
    Project,
    Repeat,
    Scan,
    UnionAll,
    Values,
    Window,
)
from strandline.algebra.scalar import Col
from strandline.algebra.scalar import columns as read
from strandline.algebra.schema import names


def pruned(block: Block) -> Block:
    """*block* with its scans cut down to the columns that it uses."""
    return replace(block, body=_pruned(block.body, _wanted(block)))


def narrowed(block: Block) -> Block:
    """*block* with semi and anti joins of nothing but the columns that are read of them; all else stays as it is.

    Rows that differ in others alone cancel out before they are matched.
    """
    return replace(block, body=_narrowed(block.body, _wanted(block)))


def _wanted(block: Block) -> set[str]:
    """The columns that a block reads of its body."""
    if block.ordered is not None:
        ordered = block.ordered
        windows = {o.name for o in ordered.windows}
        values = [o.value for o in (*ordered.shown, *ordered.sections, *ordered.windows)]
        values += [*ordered.order, *([ordered.where] if ordered.where is not None else [])]
        return set[str]().union(*(read(value) for value in values)) - windows
    if not block.grouped:
        return set(names(block.body.columns))
    return _grouped(block.keys, block.partials)


def _pruned(plan: Plan, wanted: set[str]) -> Plan:
    match plan:
        case Scan(fields=fields):
            kept = tuple(f for f, c in zip(fields, plan.columns, strict=True) if c.name in wanted)
            kept = kept or fields[:1]
            key = plan.key if set(plan.key) <= set(names(kept)) else ()
            return replace(plan, fields=kept, key=key)
        case Filter(child, condition):
            return Filter(_pruned(child, wanted | read(condition)), condition)
        case Project(child, outputs):
            kept_outputs = tuple(o for o in outputs if o.name in wanted) or outputs[:1]
            below = {name for output in kept_outputs for name in read(output.value)}
            return Project(_pruned(child, below), kept_outputs)
        case Join(inputs, conditions):
            below = wanted.union(*(read(condition) for condition in conditions))
            return Join(tuple(_pruned(child, below) for child in inputs), conditions)
        case Exists() | OuterJoin():
            below = _matched(plan, wanted)
            return replace(plan, left=_pruned(plan.left, below), right=_pruned(plan.right, below))
        case Window(child, partition, outputs):
            kept_outputs = tuple(o for o in outputs if o.name in wanted)
            below = wanted.union(*(read(value) for value in partition), *(read(o.value) for o in kept_outputs))
            pruned_child = _pruned(child, below)
            return Window(pruned_child, partition, kept_outputs) if kept_outputs else pruned_child
        case GroupBy(child, keys, partials):
            kept_partials = tuple(p for p in partials if p.name in wanted or p.name == COUNT)
            return GroupBy(_pruned(child, _grouped(keys, kept_partials)), keys, kept_partials)
        case Repeat(child, times):
            return Repeat(_pruned(child, wanted | read(times)), times)
        case Generate():
            return replace(plan, input=_pruned(plan.input, wanted | read(plan.generator)))
        case Values(rows, columns):
            kept_places = [i for i, c in enumerate(columns) if c.name in wanted] or [0]
            return Values(
                tuple(tuple(row[i] for i in kept_places) for row in rows), tuple(columns[i] for i in kept_places)
            )
        case UnionAll(inputs):
            first = names(plan.columns)
            places = [i for i, name in enumerate(first) if name in wanted] or [0]
            return UnionAll(tuple(_pruned(child, {names(child.columns)[i] for i in places}) for child in inputs))
        case _:
            return plan


def _narrowed(plan: Plan, wanted: set[str]) -> Plan:
    """*plan*, of which columns are *wanted*; it keeps these at least, and what stands by place keeps all."""
    match plan:
        case Filter(child, condition):
            return Filter(_narrowed(child, wanted | read(condition)), condition)
        case Project(child, outputs):
            return Project(_narrowed(child, set[str]().union(*(read(o.value) for o in outputs))), outputs)
        case Join(inputs, conditions):
            below = wanted.union(*(read(condition) for condition in conditions))
            return Join(tuple(_narrowed(child, below) for child in inputs), conditions)
        case Exists(left, right):
            below = _matched(plan, wanted)
            return replace(plan, left=_only(_narrowed(left, below), below), right=_narrowed(right, below))
        case OuterJoin(left, right):
            below = _matched(plan, wanted)
            return replace(plan, left=_narrowed(left, below), right=_narrowed(right, below))
        case Window(child, partition, outputs):
            below = wanted.union(*(read(value) for value in partition), *(read(o.value) for o in outputs))
            return replace(plan, input=_narrowed(child, below))
        case GroupBy(child, keys, partials):
            return replace(plan, input=_narrowed(child, _grouped(keys, partials)))
        case Repeat(child, times):
            return Repeat(_narrowed(child, wanted | read(times)), times)
        case Generate(child):
            return replace(plan, input=_narrowed(child, wanted | read(plan.generator)))
        case UnionAll(inputs):
            return UnionAll(tuple(_narrowed(child, set(names(child.columns))) for child in inputs))
        case _:
            return plan


def _matched(plan: Exists | OuterJoin, wanted: set[str]) -> set[str]:
    """The columns that are *wanted* of two inputs, and those that they are matched by."""
    below = wanted.union(*(read(condition) for condition in plan.conditions))
    return below.union(*(read(value) for pair in plan.keys for value in pair))


def _grouped(keys: Sequence[Output], partials: Sequence[Partial]) -> set[str]:
    """The columns that grouping reads."""
    values = [key.value for key in keys]
    values += [scalar for p in partials for scalar in (p.argument, p.where) if scalar is not None]
    return set[str]().union(*(read(value) for value in values))


def _only(plan: Plan, wanted: set[str]) -> Plan:
    """The rows of *plan* without columns that are not *wanted*."""
    kept = tuple(column for column in plan.columns if column.name in wanted)
    if not kept or len(kept) == len(plan.columns):
        return plan
    return Project(plan, tuple(Output(column, Col(column.name)) for column in kept))
