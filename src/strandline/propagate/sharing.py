"""Which joins the nodes of a refresh share: the delta of each is computed by a step of its own, and read by all.

A greedy choice by estimated cost: of all joins that two nodes have in common, the one that saves most is taken, then
the next from what is left, until none saves what a step more is worth. Nodes can share a join if they have seen the
same of its relations.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations_with_replacement

from strandline.algebra.block import Block, BlockDelta, delta_of
from strandline.algebra.codec import to_json
from strandline.algebra.constraints import Assumed, simplified
from strandline.algebra.near import Limits
from strandline.algebra.plan import Plan
from strandline.algebra.shared import Shape, SharedJoin, common, folded, holds, shapes, shared_join
from strandline.cost import charges
from strandline.cost.calibration import Prices
from strandline.cost.charges import Charges, Extent, Work
from strandline.propagate.inner_deltas import Prepared, prepared, read_inside
from strandline.propagate.plan import NodePlan, SharedDelta, key_of
from strandline.propagate.pricing import Reading, computing
from strandline.propagate.reach import Reach
from strandline.store.node import Node, passing_node

LEAST_SAVING = 0.2
"""What a shared delta must save, in seconds by the estimates."""

CONSIDERED = 12
"""So many joins are estimated in each round: those that most nodes could read."""


@dataclass(frozen=True)
class Sized:
    """A relation: its rows, and how many of them changed."""

    rows: int
    changed: int


@dataclass(frozen=True)
class Reader:
    """A node whose delta is to be computed: how, and what that takes; with what it shares so far."""

    node: Node
    plan: NodePlan
    changed: tuple[str, ...]
    """The inputs whose changes matter to it."""
    assumed: Assumed
    reading: Reading
    reach: Reach
    shared: tuple[SharedJoin, ...] = ()
    estimates: dict[Shape, Reading | None] = field(default_factory=dict, compare=False)

    @property
    def body(self) -> Plan:
        """The body as it is differentiated."""
        assert self.node.block is not None
        return folded(simplified(self.node.block.body, self.assumed)[0], self.shared)[0]

    def prepared(self, shared: Collection[SharedJoin]) -> Prepared:
        """Its block as it is differentiated if it shares these joins."""
        assert self.node.block is not None
        return prepared(self.node.block, self.changed, self.reach, self.assumed, shared=shared)


@dataclass(frozen=True)
class Sharing:
    """What was chosen: shared deltas with what computing each takes, and the nodes that read some as they are now."""

    deltas: tuple[SharedDelta, ...] = ()
    works: Mapping[str, Reading] = field(default_factory=dict)
    readers: Mapping[str, Reader] = field(default_factory=dict)


@dataclass(frozen=True)
class _Candidate:
    """A join that could be shared, by whom, what that would make of them, and what it saves."""

    shape: Shape
    readers: tuple[Reader, ...]
    readings: tuple[Reading, ...]
    joined: _Joined
    saving: float


@dataclass(frozen=True)
class _Joined:
    """What computing the delta of a join takes, and in which ranges its columns lie."""

    reading: Reading
    limits: Limits


def share(readers: Sequence[Reader], sizes: Callable[[str], Sized], prices: Prices) -> Sharing:
    """The joins that *readers* are to share."""
    return _Choice(sizes, prices).made(readers)


def sharing_charges(work: Work) -> Charges:
    """What computing and storing the delta of a shared join is charged for."""
    found = charges.computed(work)
    return Charges({**found.amounts, "job": 1}, found.statements)


class _Choice:
    def __init__(self, sizes: Callable[[str], Sized], prices: Prices) -> None:
        self._sizes = sizes
        self._prices = prices

    def made(self, readers: Sequence[Reader]) -> Sharing:
        now = {reader.node.name: reader for reader in readers}
        deltas: list[SharedDelta] = []
        works: dict[str, Reading] = {}
        while best := self._best(now.values()):
            name = _name(best.shape, works)
            join = shared_join(name, best.shape, [reader.body for reader in best.readers])
            deltas.append(_planned(join, best.readers))
            works[name] = best.joined.reading
            for reader, reading in zip(best.readers, best.readings, strict=True):
                shared = (*reader.shared, join)
                reach = reader.reach.knowing(name, best.joined.limits)
                now[reader.node.name] = replace(reader, reading=reading, reach=reach, shared=shared, estimates={})
        return Sharing(tuple(deltas), works, {name: reader for name, reader in now.items() if reader.shared})

    def _best(self, readers: Collection[Reader]) -> _Candidate | None:
        """The join that saves most, if that is enough."""
        possible = sorted(_possible(readers), key=lambda found: -len(found[1]))
        found = [self._estimated(shape, those) for shape, those in possible[:CONSIDERED]]
        best = max(found, key=lambda candidate: candidate.saving, default=None)
        return best if best is not None and best.saving > LEAST_SAVING else None

    def _estimated(self, shape: Shape, readers: Sequence[Reader]) -> _Candidate:
        joined = self._joined(shape, readers)
        gains: list[tuple[Reader, Reading]] = []
        saving = 0.0
        for reader in readers:
            reading = self._with(reader, shape, joined)
            gain = 0.0 if reading is None else self._cost(reader, reader.reading) - self._cost(reader, reading)
            if reading is not None and gain > 0:
                gains.append((reader, reading))
                saving += gain
        saving -= self._prices.costs.step(sharing_charges(joined.reading.work))
        if len(gains) < 2:
            saving = 0.0
        return _Candidate(shape, tuple(r for r, _ in gains), tuple(r for _, r in gains), joined, saving)

    def _joined(self, shape: Shape, readers: Sequence[Reader]) -> _Joined:
        """The delta of the join itself, in all columns that *readers* need of it."""
        join, first = shared_join("shared", shape, [reader.body for reader in readers]), readers[0]
        node = passing_node("shared", join.plan)
        of_it = [name for name in first.plan.changed if name in shape.relations]
        changed = [name for name in of_it if first.reach.matters(name, node.uses(name))]
        delta = delta_of(Block("shared", join.plan), changed, insert_only=False, assumed=first.assumed)
        rows = self._joined_rows(shape, changed)
        if delta is None:
            return _Joined(Reading(Work(rows, 0, Extent(), Extent())), {})
        work = Work(rows, len(delta.terms), Extent(), Extent(), first.reach.read(delta.plan))
        return _Joined(Reading(work), first.reach.limits(delta.plan))

    def _with(self, reader: Reader, shape: Shape, joined: _Joined) -> Reading | None:
        """What computing the delta of *reader* takes if it reads the delta of this join."""
        if shape not in reader.estimates:
            join = shared_join(_plain_name(shape), shape, [reader.body])
            body = reader.prepared((*reader.shared, join))
            delta = body.delta(insert_only=reader.plan.insert_only, method=reader.plan.method)
            reader.estimates[shape] = None if delta is None else self._read(reader, body, delta, shape, joined)
        return reader.estimates[shape]

    def _read(self, reader: Reader, body: Prepared, delta: BlockDelta, shape: Shape, joined: _Joined) -> Reading:
        reach = reader.reach.knowing(_plain_name(shape), joined.limits)
        own = sum(self._sizes(name).changed for name in reader.changed if name in shape.relations)
        work = replace(
            reader.reading.work,
            delta_rows=max(reader.reading.work.delta_rows - own, 0) + joined.reading.work.delta_rows,
            terms=len(delta.terms),
            looked_up=reach.read(delta.plan) + read_inside(body, reach),
        )
        return replace(reader.reading, work=work)

    def _joined_rows(self, shape: Shape, changed: Collection[str]) -> int:
        """The rows of the delta: each changed row meets as many as there are of the largest relation for each."""
        most = max(self._sizes(name).rows for name in shape.relations)
        sizes = [self._sizes(name) for name in changed]
        return int(sum(size.changed * max(1.0, most / max(size.rows, 1)) for size in sizes))

    def _cost(self, reader: Reader, reading: Reading) -> float:
        return self._prices.costs.step(computing(reading, reader.plan.method))


def _possible(readers: Collection[Reader]) -> Iterator[tuple[Shape, list[Reader]]]:
    """Joins that change and that several readers hold, who have seen the same of them."""
    bodies = {reader.node.name: reader.body for reader in readers}
    held = dict.fromkeys(shape for body in bodies.values() for shape in shapes(body))
    found = dict.fromkeys(part for pair in combinations_with_replacement(held, 2) for part in common(*pair))
    for shape in found:
        alike: dict[str, list[Reader]] = {}
        for reader in readers:
            if shape.relations & set(reader.changed) and holds(bodies[reader.node.name], shape):
                seen = {relation: reader.plan.pinned[relation] for relation in sorted(shape.relations)}
                alike.setdefault(key_of(seen), []).append(reader)
        yield from ((shape, those) for those in alike.values() if len(those) > 1)


def _planned(join: SharedJoin, readers: Sequence[Reader]) -> SharedDelta:
    first, relations = readers[0].plan, sorted(join.shape.relations)
    return SharedDelta(
        join.name,
        to_json(join.plan),
        tuple(reader.node.name for reader in readers),
        {name: first.pinned[name] for name in relations},
        tuple(name for name in first.changed if name in relations),
        tuple(name for name in first.order if name in relations),
    )


def _plain_name(shape: Shape) -> str:
    return " ⋈ ".join(sorted(shape.relations))


def _name(shape: Shape, taken: Collection[str]) -> str:
    name = _plain_name(shape)
    number = 1
    while (found := name if number == 1 else f"{name} ({number})") in taken:
        number += 1
    return found
