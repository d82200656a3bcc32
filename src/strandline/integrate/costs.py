"""What recomputation and eager compensation cost (Zhuge et al., section 6): messages, bytes, block reads.

The model: three relations in a chain, a selection that can only be applied after the join, parameters that stay as they
are while updates run, no caching. Notices of updates are not counted, being the same for all. Bytes are those of
answers, before plus and minus cancel; terms of deltas alone cost nothing. *Best*: each answer comes before the next
update. *Worst*: all updates come before the first answer, and each is compensated in the queries of those before it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Parameters:
    """Table 1: rows (C), bytes of a result row (S), selectivity, rows that share a join value (J), rows a block (K)."""

    rows: int = 100
    width: int = 4
    selectivity: float = 0.5
    fanout: int = 4
    per_block: int = 20

    @property
    def blocks(self) -> int:
        """``I``, the blocks of a relation."""
        return math.ceil(self.rows / self.per_block)

    @property
    def double_blocks(self) -> int:
        """``I'``, what two blocks at a time make of them."""
        return math.ceil(self.rows / (2 * self.per_block))


def recomputations(updates: int, every: int) -> int:
    """How often the view is recomputed, the last updates included."""
    return math.ceil(updates / every)


def differing_pairs(updates_by_relation: Sequence[int]) -> int:
    """The pairs of updates on different relations: each is one compensating term in the worst case."""
    updates = sum(updates_by_relation)
    return math.comb(updates, 2) - sum(math.comb(own, 2) for own in updates_by_relation)


def expected_pairs(updates: float) -> float:
    """That number on average, three relations being equally likely."""
    return updates * (updates - 1) / 3


# Messages: queries and answers.


def messages_rv(updates: int, every: int) -> int:
    """RV: a query and an answer for each recomputation."""
    return 2 * recomputations(updates, every)


def messages_eca(updates: int) -> int:
    """ECA and LCA: a query and an answer for each update."""
    return 2 * updates


def messages_eca_key(inserts: int) -> int:
    """ECA-Key: a query and an answer for each insert; deletes are local."""
    return 2 * inserts


# Bytes of answers.


def bytes_rv(p: Parameters, times: int) -> float:
    """RV: the whole view, *times* times."""
    return times * p.width * p.selectivity * p.rows * p.fanout**2


def bytes_eca_best(p: Parameters, updates: float) -> float:
    """ECA: what one tuple joins with, for each update."""
    return updates * p.width * p.selectivity * p.fanout**2


def bytes_eca_worst(p: Parameters, updates: float, pairs: float | None = None) -> float:
    """ECA: besides, a compensating term for each pair of updates on different relations."""
    return bytes_eca_best(p, updates) + _pairs(updates, pairs) * p.width * p.selectivity * p.fanout


# Block reads, scenario 1: ample memory, clustering indexes on the join columns.


def indexed_reads_rv(p: Parameters, times: int) -> int:
    """RV: each relation once."""
    return times * 3 * p.blocks


def indexed_reads_eca_best(p: Parameters, updates: float) -> float:
    """ECA, relations being equally likely."""
    return updates * (min(p.blocks, p.fanout) + 1)


def indexed_reads_eca_worst(p: Parameters, updates: float, pairs: float | None = None) -> float:
    """ECA: besides, one block for each compensating term."""
    return indexed_reads_eca_best(p, updates) + _pairs(updates, pairs)


def indexed_reads_eca_exact(p: Parameters, updates_by_relation: tuple[int, int, int]) -> int:
    """ECA at worst, for given numbers of updates of each relation: 1 + J, 2 and 2J reads, and one a pair."""
    first, second, third = updates_by_relation
    near = min(p.blocks, p.fanout)
    return first * (1 + near) + 2 * second + 2 * near * third + differing_pairs(updates_by_relation)


# Block reads, scenario 2: no index, three blocks of memory, nested loops; innermost reads only.


def scanned_reads_rv(p: Parameters, times: int) -> int:
    """RV: nested loops over three relations."""
    return times * p.blocks**3


def scanned_reads_eca_best(p: Parameters, updates: float) -> float:
    """ECA: two relations, one of them two blocks at a time."""
    return updates * p.blocks * p.double_blocks


def scanned_reads_eca_worst(p: Parameters, updates: float, pairs: float | None = None) -> float:
    """ECA: besides, one relation for each compensating term."""
    return scanned_reads_eca_best(p, updates) + _pairs(updates, pairs) * p.blocks


def all_scanned_reads_rv(p: Parameters, times: int) -> int:
    """RV, with the reads of the outer loops."""
    return times * (p.blocks + p.blocks**2 + p.blocks**3)


def all_scanned_reads_eca_best(p: Parameters, updates: float) -> float:
    """ECA, with the reads of the outer loop."""
    return updates * (p.blocks + p.blocks * p.double_blocks)


def all_scanned_reads_eca_worst(p: Parameters, updates: float) -> float:
    """ECA at worst, with the reads of the outer loop."""
    return all_scanned_reads_eca_best(p, updates) + expected_pairs(updates) * p.blocks


def crossover(cost: Callable[[float], float], baseline: Callable[[float], float], upto: float = 1e6) -> float:
    """The number of updates, from 1 on, at which a *cost* that grows faster reaches the *baseline*."""
    low, high = 1.0, upto
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if cost(middle) < baseline(middle) else (low, middle)
    return high


def _pairs(updates: float, pairs: float | None) -> float:
    return expected_pairs(updates) if pairs is None else pairs
