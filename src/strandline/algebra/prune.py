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
    Plan,
    Project,
    Repeat,
    Scan,
    UnionAll,
    Values,
    Window,
)
from strandline.algebra.scalar import columns as read
from strandline.algebra.schema import names


def pruned(block: Block) -> Block:
    """*block* with its scans cut down to the columns that it uses."""
    if block.ordered is not None:
        ordered = block.ordered
        windows = {o.name for o in ordered.windows}
        values = [o.value for o in (*ordered.shown, *ordered.sections, *ordered.windows)]
        values += [*ordered.order, *([ordered.where] if ordered.where is not None else [])]
        wanted = set[str]().union(*(read(value) for value in values)) - windows
        return replace(block, body=_pruned(block.body, wanted))
    if not block.grouped:
        return replace(block, body=_pruned(block.body, set(names(block.body.columns))))
    wanted = set()
    for output in block.keys:
        wanted |= read(output.value)
    for partial in block.partials:
        for scalar in (partial.argument, partial.where):
            if scalar is not None:
                wanted |= read(scalar)
    return replace(block, body=_pruned(block.body, wanted))


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
            below = wanted.union(*(read(condition) for condition in plan.conditions))
            below = below.union(*(read(value) for pair in plan.keys for value in pair))
            return replace(plan, left=_pruned(plan.left, below), right=_pruned(plan.right, below))
        case Window(child, partition, outputs):
            kept_outputs = tuple(o for o in outputs if o.name in wanted)
            below = wanted.union(*(read(value) for value in partition), *(read(o.value) for o in kept_outputs))
            pruned_child = _pruned(child, below)
            return Window(pruned_child, partition, kept_outputs) if kept_outputs else pruned_child
        case GroupBy(child, keys, partials):
            kept_partials = tuple(p for p in partials if p.name in wanted or p.name == COUNT)
            values = [key.value for key in keys]
            values += [s for p in kept_partials for s in (p.argument, p.where) if s is not None]
            return GroupBy(_pruned(child, set[str]().union(*(read(value) for value in values))), keys, kept_partials)
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
