"""Columns that nobody reads, taken out of the scans of a plan.

What is left says which columns of a source a view uses: only those are read, and only their changes matter.
"""

from __future__ import annotations

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
    """*block*, whose scans stay as they are, with semi and anti joins of nothing but the columns that are read of them.

    Rows that differ in others alone cancel out before they are matched.
    """
    return replace(block, body=_pruned(block.body, _wanted(block), narrow=True))


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
    wanted = set[str]()
    for output in block.keys:
        wanted |= read(output.value)
    for partial in block.partials:
        for scalar in (partial.argument, partial.where):
            if scalar is not None:
                wanted |= read(scalar)
    return wanted


def _pruned(plan: Plan, wanted: set[str], narrow: bool = False) -> Plan:
    def inside(child: Plan, columns: set[str]) -> Plan:
        return _pruned(child, columns, narrow)

    match plan:
        case Scan() if narrow:
            return plan
        case Scan(fields=fields):
            kept = tuple(f for f, c in zip(fields, plan.columns, strict=True) if c.name in wanted)
            kept = kept or fields[:1]
            key = plan.key if set(plan.key) <= set(names(kept)) else ()
            return replace(plan, fields=kept, key=key)
        case Filter(child, condition):
            return Filter(inside(child, wanted | read(condition)), condition)
        case Project(child, outputs):
            kept_outputs = tuple(o for o in outputs if o.name in wanted) or outputs[:1]
            below = {name for output in kept_outputs for name in read(output.value)}
            return Project(inside(child, below), kept_outputs)
        case Join(inputs, conditions):
            below = wanted.union(*(read(condition) for condition in conditions))
            return Join(tuple(inside(child, below) for child in inputs), conditions)
        case Exists() | OuterJoin():
            below = wanted.union(*(read(condition) for condition in plan.conditions))
            below = below.union(*(read(value) for pair in plan.keys for value in pair))
            left, right = inside(plan.left, below), inside(plan.right, below)
            if narrow and isinstance(plan, Exists):
                left = _only(left, below)
            return replace(plan, left=left, right=right)
        case Window(child, partition, outputs):
            kept_outputs = tuple(o for o in outputs if o.name in wanted)
            below = wanted.union(*(read(value) for value in partition), *(read(o.value) for o in kept_outputs))
            pruned_child = inside(child, below)
            return Window(pruned_child, partition, kept_outputs) if kept_outputs else pruned_child
        case GroupBy(child, keys, partials):
            kept_partials = tuple(p for p in partials if p.name in wanted or p.name == COUNT)
            values = [key.value for key in keys]
            values += [s for p in kept_partials for s in (p.argument, p.where) if s is not None]
            return GroupBy(inside(child, set[str]().union(*(read(value) for value in values))), keys, kept_partials)
        case Repeat(child, times):
            return Repeat(inside(child, wanted | read(times)), times)
        case Generate():
            return replace(plan, input=inside(plan.input, wanted | read(plan.generator)))
        case Values(rows, columns):
            kept_places = [i for i, c in enumerate(columns) if c.name in wanted] or [0]
            return Values(
                tuple(tuple(row[i] for i in kept_places) for row in rows), tuple(columns[i] for i in kept_places)
            )
        case UnionAll(inputs):
            first = names(plan.columns)
            places = [i for i, name in enumerate(first) if name in wanted] or [0]
            return UnionAll(tuple(inside(child, {names(child.columns)[i] for i in places}) for child in inputs))
        case _:
            return plan


def _only(plan: Plan, wanted: set[str]) -> Plan:
    """The rows of *plan* without columns that are not *wanted*."""
    kept = tuple(column for column in plan.columns if column.name in wanted)
    if not kept or len(kept) == len(plan.columns):
        return plan
    return Project(plan, tuple(Output(column, Col(column.name)) for column in kept))
