"""Sections, strategy *affected partitions*: those that a change touches are computed anew, and replace what is stored.

It serves window functions and top-k queries on top of a block, whatever order rows that tie come in.
"""

from __future__ import annotations

from collections.abc import Collection

from strandline.algebra.ordered import Ordered
from strandline.algebra.plan import Backing, Negate, Net, Plan, Project, Scan, SemiJoin, UnionAll
from strandline.algebra.scalar import Col
from strandline.algebra.term import bind

AFFECTED = "affected partitions"
ONE = "one partition"
TOP_K = "top-k"


def strategy(ordered: Ordered) -> str:
    """What EXPLAIN calls it: without PARTITION BY there is one partition, and a change touches it."""
    if ordered.limit is not None or ordered.offset:
        return TOP_K
    return AFFECTED if ordered.sections else ONE


def touched(ordered: Ordered, input_delta: Plan) -> Plan:
    """The sections that a delta of the input touches."""
    return Project(input_delta, ordered.sections)


def affected(node: str, ordered: Ordered, body: Plan, keys: Plan, changed: Collection[str]) -> Plan:
    """``Net(-stored ⋉ K + ω(input after ⋉ K))``, K being the touched sections; without sections, all rows."""
    new = bind(body, "post", changed)
    old: Plan = Scan(Backing(node, "pre"), "", ordered.rows(body).columns)
    if ordered.sections:
        new = SemiJoin(new, tuple(section.value for section in ordered.sections), keys)
        old = SemiJoin(old, tuple(Col(section.name) for section in ordered.sections), keys)
    return Net(UnionAll((Negate(old), ordered.rows(new))))
