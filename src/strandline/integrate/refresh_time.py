"""How long a view takes from one state to the next (Wang et al., sections 4 and 5).

*t* is the time of a message one way; joins at sources are free unless they are given.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class QueryTime:
    """The four parts of a query's time: there, back, joining with concurrent updates here, evaluating there."""

    to_source: float
    to_house: float
    house_join: float = 0.0
    source_join: float = 0.0

    @property
    def whole(self) -> float:
        return self.to_source + self.to_house + self.house_join + self.source_join


def refresh(queries: Iterable[QueryTime]) -> float:
    """The refresh time of an update whose queries run one after another."""
    return sum(query.whole for query in queries)


def sweep_queries(relations: int) -> int:
    """SWEEP visits every other relation once."""
    return relations - 1


def sweep(relations: int, t: float = 1.0) -> float:
    """``2 (n - 1) t``."""
    return 2 * sweep_queries(relations) * t


def c_strobe_queries(relations: int, concurrent: int) -> int:
    """``(n - 1) (1 + mu)^(n-2)``, if *concurrent* rows of each other relation are deleted while an insert is on tour.

    There is a tour for each choice of one of these rows, or none, in every other relation, and it visits those with
    none. The paper's ``mu^(n-2)`` counts only the tours with a single visit, of one relation.
    """
    return sum(math.comb(relations - 1, at) * concurrent**at * (relations - 1 - at) for at in range(relations - 1))


def c_strobe(relations: int, concurrent: int, t: float = 1.0) -> float:
    """``max(2 mu^(n-2) t, (2n - 2) t)``."""
    return float(max(2 * concurrent ** (relations - 2) * t, sweep(relations, t)))


def group_sizes(relations: int, size: int) -> tuple[int, ...]:
    """The sizes of ``K = ceil(n / p)`` groups; the last has ``n - p (K - 1)``."""
    groups = math.ceil(relations / size)
    return (size,) * (groups - 1) + (relations - size * (groups - 1),)


def grouped(size: int, t: float = 1.0, local: float = 0.0) -> float:
    """``2 (size - 1) t`` and the local join of the group's delta with the other auxiliary views."""
    return sweep(size, t) + local


def parallel_in_one_group(updates: int, size: int, t: float = 1.0) -> float:
    """Updates of one group wait for each other: ``2 (p - 1) t r``."""
    return updates * grouped(size, t)


def parallel_in_many_groups(size: int, t: float = 1.0) -> float:
    """Updates of as many groups go at once: ``2 (p - 1) t``."""
    return grouped(size, t)
