"""The cost of bringing one view up to date, by changes or from scratch.

The constants are fixed and rough: seconds on two cores with a warm session. They rank ways of doing the same thing;
they predict no time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Work:
    """What a refresh of one view would touch, in rows; estimates."""

    delta_rows: int
    terms: int
    input_rows: int
    table_rows: int
    recomputes_groups: bool = False


class CostModel(Protocol):
    """Costs in one unit, comparable with each other."""

    def incremental(self, work: Work) -> float:
        """Computing and installing the delta."""

    def full(self, work: Work) -> float:
        """Running the query over all its inputs and writing the result."""


@dataclass(frozen=True)
class FixedCosts:
    """Constants per job, per commit and per row."""

    job: float = 0.3
    commit: float = 0.2
    row_scanned: float = 0.4e-6
    row_processed: float = 2e-6
    row_written: float = 3e-6

    def incremental(self, work: Work) -> float:
        """Each term reads the other inputs to look up the rows of the delta; the table is touched by the delta only."""
        others = work.input_rows if work.terms > 1 or work.recomputes_groups else 0
        looked_up = work.terms * (work.delta_rows * self.row_processed + others * self.row_scanned)
        regrouped = work.input_rows * self.row_scanned if work.recomputes_groups else 0.0
        installed = 2 * work.delta_rows * self.row_written + work.table_rows * self.row_scanned
        return 2 * self.job + self.commit + looked_up + regrouped + installed

    def full(self, work: Work) -> float:
        """Every input row is processed, every row of the result written."""
        return 2 * self.job + self.commit + work.input_rows * self.row_processed + work.table_rows * self.row_written


FIXED = FixedCosts()
