"""Conditions on a hidden block of windows, moved into it: it then stores only the rows that anybody reads.

``SELECT ... FROM (SELECT *, row_number() OVER (...) AS n FROM t) WHERE n = 1`` would otherwise keep a copy of t.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from strandline.algebra.block import Block
from strandline.algebra.codec import fingerprint
from strandline.algebra.plan import At, Filter, Plan, Project, Scan, children, map_scans, scans
from strandline.algebra.scalar import Col, Scalar, conjunction
from strandline.algebra.scalar import columns as read
from strandline.algebra.scalar import replace as replaced
from strandline.algebra.schema import names


def with_conditions_inside(blocks: Sequence[Block], prefix: str) -> tuple[Block, ...]:
    """*blocks*, in the order in which they read each other, hidden ones renamed after what they hold now."""
    found = list(blocks)
    for place, block in enumerate(found[:-1]):
        condition = _asked_of(block, found)
        if condition is None:
            continue
        assert block.ordered is not None
        narrow = replace(block, ordered=replace(block.ordered, where=condition))
        named = replace(narrow, node=prefix + fingerprint(narrow))
        found[place] = named
        found[place + 1 :] = [_reading(other, block.node, named.node) for other in found[place + 1 :]]
    return tuple(found)


def _asked_of(block: Block, blocks: Sequence[Block]) -> Scalar | None:
    """What the only reader of a block of windows asks of its rows, over its input and its windows."""
    if block.ordered is None or not block.ordered.windows or block.ordered.where is not None:
        return None
    readers = Counter(relation for other in blocks for relation in _relations(other.body))
    if readers[block.node] != 1:
        return None
    outputs = {output.name: output.value for output in (*block.ordered.sections, *block.ordered.shown)}
    values = {output.name: outputs[output.value.name] for output in block.outputs if isinstance(output.value, Col)}
    (reader,) = [other for other in blocks if block.node in _relations(other.body)]
    return conjunction(tuple(replaced(condition, values) for condition in _conditions(reader.body, block.node)))


def _relations(plan: Plan) -> list[str]:
    return [scan.operand.relation for scan in scans(plan) if isinstance(scan.operand, At)]


def _conditions(plan: Plan, node: str) -> Iterator[Scalar]:
    """The conditions of filters right above the scan of *node*, over its fields."""
    if isinstance(plan, Filter):
        fields = _fields(plan.input, node)
        if fields is not None and read(plan.condition) <= fields.keys():
            yield replaced(plan.condition, fields)
    for child in children(plan):
        yield from _conditions(child, node)


def _fields(plan: Plan, node: str) -> Mapping[str, Scalar] | None:
    """What the columns of a plan are among the fields of the scan of *node*, if it only renames and filters."""
    match plan:
        case Scan(operand=At(relation)) if relation == node:
            return dict(zip(names(plan.columns), (Col(field.name) for field in plan.fields), strict=True))
        case Filter(child):
            return _fields(child, node)
        case Project(child, outputs):
            below = _fields(child, node)
            if below is None:
                return None
            return {o.name: below[o.value.name] for o in outputs if isinstance(o.value, Col) and o.value.name in below}
        case _:
            return None


def _reading(block: Block, old: str, new: str) -> Block:
    def renamed(scan: Scan) -> Scan:
        if isinstance(scan.operand, At) and scan.operand.relation == old:
            return replace(scan, operand=replace(scan.operand, relation=new))
        return scan

    return replace(block, body=map_scans(block.body, renamed))
