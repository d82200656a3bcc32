"""What a part of a query gives, stored as a hidden block or computed where it is read: decided once, by cost.

A stored block costs a table, which is brought up to date with each refresh; computed in place, its input is read twice
for the groups that a change touches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from strandline.algebra.block import Block
from strandline.algebra.codec import fingerprint
from strandline.algebra.differentiate.groups_in_place import repeatable
from strandline.algebra.plan import At, GroupBy, Output, Plan, Project, Scan, map_scans, scans
from strandline.algebra.prune import pruned
from strandline.algebra.scalar import Col
from strandline.cost.model import CostModel
from strandline.reasons import Reason
from strandline.sql.select import BLOCK_PREFIX

CLEARLY = 0.5
"""Computing in place must be that much cheaper: how often groups change is a guess."""

Rows = Callable[[str], int | None]
"""About how many rows a relation has, if that is known."""


@dataclass(frozen=True)
class Placed:
    """The blocks of a view as they are stored, and what was decided about hidden ones."""

    blocks: tuple[Block, ...]
    notes: tuple[Reason, ...]


def placed(
    blocks: Sequence[Block], asked: str, settled: Callable[[str], str | None], rows: Rows, cost: CostModel
) -> Placed:
    """*blocks* with hidden groups stored or in place: as *asked* (``stored``, ``in place``), or by cost if ``auto``.

    What is *settled* already, for this view or by another that stores the same block, stays so.
    """
    found, notes = list(blocks), []
    for block in blocks[:-1]:
        if not _may_be_in_place(block):
            continue
        chosen, why = asked, "as declared"
        if asked == "auto":
            chosen, why = _chosen(block, found, settled(block.node), rows, cost)
        done = "stored" if chosen == "stored" else "computed in place"
        notes.append(Reason("HIDDEN_STATE", f"{block.node} is {done}: {why}"))
        if chosen != "stored":
            current = next(other for other in found if other.node == block.node)
            found = [_inlined(other, current) for other in found if other is not current]
    return Placed(named_after_contents(found, blocks), tuple(notes))


def _may_be_in_place(block: Block) -> bool:
    contents = block.contents
    return isinstance(contents, GroupBy) and bool(block.keys) and block.times is None and repeatable(contents)


def _chosen(block: Block, blocks: Sequence[Block], settled: str | None, rows: Rows, cost: CostModel) -> tuple[str, str]:
    if settled is not None:
        return settled, "as it was"
    sizes = [rows(name) for name in block.inputs]
    known = [size for size in sizes if size is not None]
    if len(known) < len(sizes):
        return "stored", "how much it would read is not known"
    readings = sum(scan.operand == At(block.node) for other in blocks for scan in scans(other.body))
    stored, in_place = cost.stored_groups(sum(known)), cost.groups_in_place(sum(known), readings)
    said = f"estimated {stored:.2f} a refresh stored, {in_place:.2f} in place"
    return ("in place" if in_place < CLEARLY * stored else "stored"), said


def _inlined(reader: Block, block: Block) -> Block:
    """*reader* with the groups of *block* computed where it read them."""

    def computed(scan: Scan) -> Plan:
        if scan.operand != At(block.node):
            return scan
        shown = [Output(column, Col(field.name)) for field, column in zip(scan.fields, scan.columns, strict=True)]
        return Project(block.reading(block.contents), tuple(shown))

    if block.node not in reader.inputs:
        return reader
    return pruned(replace(reader, body=map_scans(reader.body, computed)))


def named_after_contents(blocks: Sequence[Block], before: Sequence[Block]) -> tuple[Block, ...]:
    """*blocks*, hidden ones that are not as *before* named after what they hold now."""
    names: dict[str, str] = {}

    def by_name(scan: Scan) -> Scan:
        if isinstance(scan.operand, At) and scan.operand.relation in names:
            return replace(scan, operand=replace(scan.operand, relation=names[scan.operand.relation]))
        return scan

    found = []
    for block in blocks:
        read = replace(block, body=map_scans(block.body, by_name))
        if read not in before and block is not blocks[-1]:
            names[block.node] = BLOCK_PREFIX + fingerprint(read)
        found.append(replace(read, node=names.get(block.node, block.node)))
    return tuple(found)
