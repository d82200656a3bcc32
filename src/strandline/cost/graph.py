"""Which nodes of a view DAG to recompute, weighed for the graph as a whole.

What is cheapest for a node alone need not be so for those above it. A recomputed node has no delta: if a node above
takes in changes, the versions of its table have to be compared, and where computing anew does not give the same rows
exactly, what differs may be the whole table. If all nodes above are recomputed too, nothing is compared. And the
changes of a leaf have to be taken in, once, if any node that reads it goes by them.

Nodes that read each other or the changes of the same leaves, directly or not, are decided together: by trying all
combinations while they are few, else from the best choice of each by steps that each lower the total.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

from strandline.cost import charges
from strandline.cost.calibration import Prices
from strandline.cost.charges import Amounts, Extent, Install, Work
from strandline.cost.model import CostModel, handicapped

FEW = 8
"""So many free nodes are decided by trying all combinations."""

LeafChanges = tuple[str, str]
"""The changes of a leaf: its name, and the position after which they come."""


@dataclass(frozen=True)
class Candidate:
    """A node that has to be brought up to date.

    *reads* names changed nodes below it, *leaf_rows* counts the changed rows of leaves. *work* is what applying changes
    takes if all inputs give theirs; *after_comparing* is how its delta is installed if one of them was recomputed.
    """

    name: str
    reads: tuple[str, ...]
    leaf_rows: int
    table: Extent
    way: Literal["either", "changes", "full"]
    work: Work | None = None
    by_changes: Callable[[CostModel, Work], float] = lambda cost, work: cost.incremental(work)
    after_comparing: Install = "merge"
    exact: bool = True
    """Whether recomputing gives the rows that changes would give, to the last bit."""
    leaves: tuple[LeafChanges, ...] = ()
    """The changes of leaves that it goes by, unless it is recomputed."""


@dataclass(frozen=True)
class Weighed:
    """The nodes to recompute, and what the whole then costs beside the best choice of each node on its own."""

    recomputed: frozenset[str] = frozenset()
    total: float = 0.0
    alone: frozenset[str] = frozenset()
    total_alone: float = 0.0


def weigh(
    candidates: Sequence[Candidate], prices: Prices, to_take_in: Mapping[LeafChanges, Amounts] | None = None
) -> Weighed:
    """The cheapest choice for all of *candidates*, which come in topological order.

    Changes *to_take_in* are charged for if some node goes by them; others are there already.
    """
    charged = to_take_in or {}
    found = [_settled(part, prices, charged) for part in _parts(candidates, charged)]
    return Weighed(
        frozenset().union(*(one.recomputed for one in found)),
        sum(one.total for one in found),
        frozenset().union(*(one.alone for one in found)),
        sum(one.total_alone for one in found),
    )


def delta_rows(candidate: Candidate, incoming: int, *, recomputed: bool) -> int:
    """How many rows the delta of a node has for those above it: twice the table is all that there can be."""
    if recomputed and (not candidate.exact or candidate.way == "full"):
        return candidate.table.rows
    return min(incoming, 2 * max(candidate.table.rows, 1))


Chosen = frozenset[str]
NONE: Chosen = frozenset()


def _settled(nodes: Sequence[Candidate], prices: Prices, to_take_in: Mapping[LeafChanges, Amounts]) -> Weighed:
    part = _Part(nodes, prices.costs, to_take_in)
    weighed = part.weighed()
    chosen = prices.choose(
        lambda cost: (
            weighed.recomputed if cost is prices.costs else _Part(nodes, cost, to_take_in).weighed().recomputed
        ),
        lambda _, chosen: part.total(chosen),
    )
    return replace(weighed, recomputed=chosen, total=part.total(chosen))


class _Part:
    """Nodes that have to do with each other, from the bottom up."""

    def __init__(self, nodes: Sequence[Candidate], cost: CostModel, to_take_in: Mapping[LeafChanges, Amounts]) -> None:
        self._nodes = nodes
        self._cost = cost
        self._named = {one.name: one for one in nodes}
        self._below = {one.name: [name for name in one.reads if name in self._named] for one in nodes}
        self._above = {one.name: [other.name for other in nodes if one.name in other.reads] for one in nodes}
        self._known: dict[tuple[str, int, bool, bool], float] = {}
        self._free = [one.name for one in nodes if one.way == "either"]
        self._taking_in = {leaf: cost.seconds(charged) for leaf, charged in to_take_in.items()}

    def weighed(self) -> Weighed:
        alone = self._each_alone()
        free = [name for name in self._free if self._conceivable(name)]
        if len(free) <= FEW:
            best = min(_all(free), key=self.total)
        else:
            starts = (alone & frozenset(free), NONE, frozenset(free))
            best = min((self._improved(free, start) for start in starts), key=self.total)
        return Weighed(best, self.total(best), alone, self.total(alone))

    def total(self, chosen: Chosen) -> float:
        """What it costs if *chosen* nodes are recomputed; their handicap is a part of it."""
        gone_by = [one for one in self._nodes if not self._is_recomputed(one, chosen)]
        total, rows = self._taken_in(gone_by), dict[str, int]()
        for one in self._nodes:
            incoming, anew = self._incoming(one, rows), self._is_recomputed(one, chosen)
            compared = any(self._is_recomputed(self._named[name], chosen) for name in self._below[one.name])
            rows[one.name] = delta_rows(one, incoming, recomputed=anew)
            total += self._own(one, incoming, compared=compared, anew=anew)
            if anew and any(not self._is_recomputed(self._named[name], chosen) for name in self._above[one.name]):
                total += self._comparing(one, rows[one.name])
        return total

    def _each_alone(self) -> Chosen:
        """What is chosen from the bottom up if no node thinks of those above it."""
        chosen: Chosen = frozenset()
        rows: dict[str, int] = {}
        for one in self._nodes:
            incoming = self._incoming(one, rows)
            compared = any(self._is_recomputed(self._named[name], chosen) for name in self._below[one.name])
            ways = [self._own(one, incoming, compared=compared, anew=anew) for anew in (True, False)]
            if one.way == "either" and ways[0] < ways[1]:
                chosen |= {one.name}
            rows[one.name] = delta_rows(one, incoming, recomputed=self._is_recomputed(one, chosen))
        return chosen

    def _conceivable(self, name: str) -> bool:
        """Whether recomputing a node could pay at all: with the largest deltas, and all that comparing would cost."""
        rows: dict[str, int] = {}
        for one in self._nodes:
            incoming = self._incoming(one, rows)
            rows[one.name] = max(delta_rows(one, incoming, recomputed=anew) for anew in (True, False))
            if one.name == name:
                break
        one = self._named[name]
        by_changes = max(self._own(one, incoming, compared=compared, anew=False) for compared in (True, False))
        saved = sum(self._comparing(self._named[below], rows[below]) for below in self._below[name])
        saved += self._taken_in([one])
        return self._own(one, incoming, compared=False, anew=True) < by_changes + saved

    def _improved(self, free: Sequence[str], start: Chosen) -> Chosen:
        """The end of a descent: nodes change sides as long as it pays.

        They do alone, with all free nodes above them, or with all that read the changes of a leaf.
        """
        best, total, going = start, self.total(start), True
        moves = [frozenset({name}) for name in free]
        together = [self._upwards(name) for name in free] + [self._readers(leaf) for leaf in self._taking_in]
        moves += [several for each in together if len(several := each & frozenset(free)) > 1]
        while going:
            going = False
            for move in moves:
                for tried in {best ^ move, best | move, best - move} - {best}:
                    found = self.total(tried)
                    if found < total:
                        best, total, going = tried, found, True
        return best

    def _upwards(self, name: str) -> Chosen:
        """A node and all that read it, directly or not."""
        found = {name}
        for one in self._nodes:
            if found.intersection(one.reads):
                found.add(one.name)
        return frozenset(found)

    def _readers(self, leaf: LeafChanges) -> Chosen:
        """The nodes that would go by the changes of a leaf, or read such a node, directly or not."""
        return NONE.union(*(self._upwards(one.name) for one in self._nodes if leaf in one.leaves))

    def _taken_in(self, nodes: Sequence[Candidate]) -> float:
        """What the changes of leaves cost that *nodes* go by."""
        leaves = {leaf for one in nodes for leaf in one.leaves}
        return sum(cost for leaf, cost in self._taking_in.items() if leaf in leaves)

    def _incoming(self, one: Candidate, rows: Mapping[str, int]) -> int:
        """The changed rows that a node takes in, if those below it give *rows*."""
        return one.leaf_rows + sum(rows[name] for name in self._below[one.name])

    def _own(self, one: Candidate, incoming: int, *, compared: bool, anew: bool) -> float:
        """What a node itself costs; one whose way is settled costs the same whatever is chosen for others."""
        key = (one.name, incoming, compared, anew)
        if key not in self._known:
            work = one.work or Work(incoming, 1, Extent(), one.table)
            work = replace(work, delta_rows=incoming, install=one.after_comparing if compared else work.install)
            self._known[key] = handicapped(self._cost.full(work)) if anew else one.by_changes(self._cost, work)
        return 0.0 if anew and one.way == "full" else self._known[key]

    def _comparing(self, one: Candidate, rows: int) -> float:
        return self._cost.step(charges.compared(one.table, rows))

    def _is_recomputed(self, one: Candidate, chosen: Chosen) -> bool:
        return one.way == "full" or one.name in chosen


def _all(free: Sequence[str]) -> Iterator[Chosen]:
    """All sets of nodes, small ones first: of equal choices the one that recomputes least is taken."""
    for size in range(len(free) + 1):
        yield from map(frozenset, combinations(free, size))


def _parts(candidates: Sequence[Candidate], to_take_in: Mapping[LeafChanges, Amounts]) -> list[list[Candidate]]:
    """*candidates* apart, so that no node of one part reads one of another, or changes that another has taken in."""
    part_of: dict[str | LeafChanges, int] = {}
    merged: dict[int, list[Candidate]] = {}
    for number, one in enumerate(candidates):
        leaves = [leaf for leaf in one.leaves if leaf in to_take_in]
        joined = sorted({part_of[read] for read in (*one.reads, *leaves) if read in part_of})
        members = [member for part in joined for member in merged.pop(part)]
        merged[number] = [*members, one]
        for member in merged[number]:
            part_of[member.name] = number
            part_of.update({leaf: number for leaf in member.leaves if leaf in to_take_in})
    places: Mapping[str, int] = {one.name: place for place, one in enumerate(candidates)}
    return [sorted(part, key=lambda one: places[one.name]) for part in merged.values()]
