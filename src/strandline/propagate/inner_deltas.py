"""The deltas of plans inside a node's body, which are stored before its own where they tell what to read of tables."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from strandline.algebra.block import Block, BlockDelta, delta_of
from strandline.algebra.constraints import Assumed, simplified
from strandline.algebra.inner import Inner, candidates
from strandline.algebra.near import Limits, tables_read
from strandline.algebra.plan import Change, Plan, Scan, SemiJoin, relations
from strandline.algebra.prune import narrowed
from strandline.cost.charges import Extent
from strandline.engine.seeking import LEAST_ROWS
from strandline.propagate.binding import Binding, Pins
from strandline.propagate.computing import Computing
from strandline.propagate.reach import Reach

LEAST_KEYS = 20_000
"""A delta whose keys are among fewer values than these is as good as stored."""


class Known(Protocol):
    """What is known of changes and tables when a delta is planned, or computed."""

    def near(self, plan: Plan) -> Plan:
        """*plan*, reading of tables only what its deltas can meet."""

    def rows_within(self, scan: Scan, limits: Limits) -> int:
        """The rows of a table in files that may lie within *limits*, as far as they are known."""

    def changed_rows(self, scan: Scan) -> int | None:
        """The rows of a scanned delta, if they are known."""

    def taken(self, inner: Inner, delta: BlockDelta) -> Inner:
        """*inner*, whose *delta* is taken to be stored from now on."""


@dataclass(frozen=True)
class Prepared:
    """A block as it is differentiated when *changed* relations changed: by what is *told*, with inner deltas stored."""

    block: Block
    changed: Collection[str]
    told: Mapping[str, Any]
    inner: tuple[Inner, ...] = ()

    def delta(self, **how: Any) -> BlockDelta | None:
        """Its delta, computed in some way."""
        return delta_of(self.block, self.changed, inner=self.inner, **self.told, **how)

    def inner_delta(self, place: int) -> BlockDelta | None:
        """The delta of an inner plan, from those before it."""
        each = self.inner[place]
        block, before = Block(each.name, each.plan), self.inner[:place]
        return delta_of(block, self.changed, insert_only=False, inner=before, **self.told)

    def also(self, plan: Plan) -> Prepared:
        """The same with one inner plan more, under a name that neither a view nor a table of a source can have."""
        return replace(self, inner=(*self.inner, Inner(f".inner {len(self.inner) + 1}", plan)))


def prepared(block: Block, changed: Collection[str], known: Known, assumed: Assumed, **told: Any) -> Prepared:
    """*block* with the inner plans whose deltas tell what to read of large tables, under constraints *assumed*.

    Each of them is known before the next is looked at. Where all rows are put in order, all are read.
    """
    simple = replace(block, body=simplified(block.body, assumed)[0])
    found = Prepared(narrowed(simple), changed, {"assumed": assumed, **told})
    if block.ordered is not None and not block.ordered.sections:
        return found
    for candidate in candidates(found.block.body, changed):
        if any(each.plan == candidate.plan for each in found.inner):
            continue
        more = found.also(candidate.plan)
        delta = more.inner_delta(len(found.inner))
        if delta is not None and any(_much_is_read(asked, known) for asked in candidate.asked(delta.plan)):
            inner = known.taken(more.inner[-1], delta)
            found = replace(more, inner=(*found.inner, inner))
    return found


def _much_is_read(asked: SemiJoin, known: Known) -> bool:
    """Whether much of a table is read to find the rows that are *asked* for by keys that may be many."""
    narrow = known.near(asked)
    assert isinstance(narrow, SemiJoin)
    return any(
        known.rows_within(scan, limits) > LEAST_ROWS and not _few_keys(limits, known)
        for scan, limits in tables_read(narrow.input)
    )


def _few_keys(limits: Limits, known: Known) -> bool:
    """Whether a column is among few values."""
    for ranges in limits.values():
        rows = [known.changed_rows(origin.scan) for origin in ranges.among]
        if rows and sum(LEAST_KEYS if each is None else each for each in rows) < LEAST_KEYS:
            return True
    return False


class Storing:
    """Computes and stores inner deltas, each at a place that begins with *path*; *pins* know those that are stored."""

    def __init__(self, computing: Computing, binding: Binding, pins: Pins, path: str) -> None:
        self.pins = pins
        self._computing = computing
        self._binding = binding
        self._path = path

    def near(self, plan: Plan) -> Plan:
        """*plan*, reading of tables only what its deltas can meet."""
        return self._binding.near(plan, self.pins)

    def rows_within(self, scan: Scan, limits: Limits) -> int:
        """The rows of a table in files that may lie within *limits*, as far as they are known."""
        return self._binding.rows_within(scan, limits, self.pins)

    def changed_rows(self, scan: Scan) -> int | None:
        """The rows of a scanned delta; of what is sought in a table nobody knows how many there are."""
        return self.pins.deltas[scan.operand.relation].rows if isinstance(scan.operand, Change) else None

    def taken(self, inner: Inner, delta: BlockDelta) -> Inner:
        """*inner*, with its delta stored."""
        path = f"{self._path}-{inner.name.strip('.').replace(' ', '-')}"
        stored = self._computing.delta(delta.plan, self.pins, inner.plan.columns, path)
        there, made_of = self.pins.deltas, {**self.pins.shared, inner.name: relations(inner.plan)}
        self.pins = replace(self.pins, deltas={**there, inner.name: stored}, shared=made_of)
        return replace(inner, empty=not stored.rows)


def read_inside(body: Prepared, reach: Reach) -> Extent:
    """What computing the deltas of inner plans reads of the tables of the node's inputs."""
    found = (body.inner_delta(place) for place in range(len(body.inner)))
    return sum((reach.read(delta.plan) for delta in found if delta is not None), Extent())
