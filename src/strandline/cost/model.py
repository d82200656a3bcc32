"""The cost of bringing one view up to date, by changes or from scratch.

The constants are fixed and rough: seconds on two cores with a warm session, as ``python -m bench choice`` measured
them (docs/decisions/0018). They rank ways of doing the same thing. What a warehouse has measured itself makes better
ones of them (:mod:`strandline.cost.calibration`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from strandline.cost import charges
from strandline.cost.charges import Amounts, Charges, Extent, Install, Work

Mode = Literal["interpreted", "compiled"]


class CostModel(Protocol):
    """Costs in seconds, comparable with each other."""

    def incremental(self, work: Work) -> float:
        """Computing and installing the delta."""

    def absorbed(self, work: Work) -> float:
        """Computing a summary delta and merging it into the table."""

    def full(self, work: Work) -> float:
        """Running the query over all its inputs and writing the result."""

    def step(self, charged: Charges) -> float:
        """A step, in the cheaper mode."""

    def mode(self, charged: Charges) -> Mode:
        """The cheaper mode of a step."""

    def seconds(self, amounts: Amounts) -> float:
        """A step in a given mode."""

    def as_rows(self, rows: int) -> float:
        """Keeping *rows* rows with duplicates as rows, for one refresh like others."""

    def as_counts(self, rows: int, distinct: int) -> float:
        """Keeping *distinct* rows with counts instead."""

    def stored_groups(self, rows: int) -> float:
        """Keeping the groups of *rows* rows in a table of their own, for one refresh like others."""

    def groups_in_place(self, rows: int, readings: int) -> float:
        """Computing those that changed from the rows instead, wherever they are read."""


@dataclass(frozen=True)
class LinearCosts:
    """Constants per job, per term, per commit, per MERGE, per file, per byte and per row."""

    job: float = 0.15
    term: float = 0.15
    commit: float = 0.15
    merge: float = 1.5
    """However little it changes: looking up its bounds, finding the files to change, and writing are jobs each."""
    compiling: float = 0.3
    """More for a statement that is compiled."""
    ceremony: float = 1.0
    """More for a statement whose tables are read and written through Spark."""
    file: float = 0.002
    """More for a file that is opened."""
    byte_read: float = 2e-9
    byte_shuffled: float = 10e-9
    row_scanned: float = 0.25e-6
    row_processed: float = 0.9e-6
    row_written: float = 3e-6
    row_copied: float = 0.1e-6
    row_replaced: float = 0.5e-6
    """A row of a file that is read and written anew without Spark."""
    row_aggregated: float = 0.1e-6

    def incremental(self, work: Work) -> float:
        """The table is touched by the delta only."""
        return self.step(charges.computed(work)) + self.step(charges.installed(work))

    def absorbed(self, work: Work) -> float:
        """The table is read once, by the MERGE; a group of the summary delta is written once."""
        return self.step(charges.summed(work)) + self.step(charges.merged(work))

    def full(self, work: Work) -> float:
        """Every input row is processed, every row of the result written."""
        return self.step(charges.recomputed(work))

    def step(self, charged: Charges) -> float:
        """A step, in the cheaper mode."""
        return min(self.seconds(charged.amounts), self.seconds(charged.compiled))

    def mode(self, charged: Charges) -> Mode:
        """Compiled where the rows repay it."""
        return "interpreted" if self.seconds(charged.amounts) <= self.seconds(charged.compiled) else "compiled"

    def seconds(self, amounts: Amounts) -> float:
        """A step in a given mode."""
        return sum(float(getattr(self, name)) * amount for name, amount in amounts.items())

    def as_rows(self, rows: int) -> float:
        """A hundredth of the rows comes and another goes, and a view above reads them all."""
        changed = rows // 100
        return self.job + self.commit + 2 * changed * self.row_written + 2 * rows * self.row_scanned

    def as_counts(self, rows: int, distinct: int) -> float:
        """The same; what comes is looked up too, each row touched is written anew, and readers see all copies again."""
        changed = rows // 100
        touched = min(2 * changed, distinct)
        looked_up = 2 * changed * self.row_processed + touched * self.row_written
        return 3 * self.job + self.commit + looked_up + 2 * distinct * self.row_scanned + rows * self.row_copied

    def stored_groups(self, rows: int) -> float:
        """A thousandth of the rows changes; there are a tenth as many groups, which are looked up and merged."""
        groups = max(rows // 10, 1)
        install: Install = "overwrite" if groups <= 100_000 else "merge"
        return self.incremental(Work(rows // 1_000, 1, Extent(rows), Extent(groups), partials=2, install=install))

    def groups_in_place(self, rows: int, readings: int) -> float:
        """Wherever they are read, all rows are scanned before and after, for the groups in question."""
        return readings * 2 * self.step(Charges({"job": 1, "row_scanned": rows}))


MARGIN = 0.9
"""Recomputing must be that much cheaper: the estimates are rough."""

LEAST_SAVING = 0.1
"""And it must save so much."""

LITTLE_ROWS = 100_000
"""Over sources of no more rows than these changes are applied: either way is nearly all fixed costs."""


def handicapped(full: float) -> float:
    """What recomputing, at a cost of *full*, is weighed as against applying changes: it must be clearly cheaper."""
    return max(full / MARGIN, full + LEAST_SAVING)


FIXED = LinearCosts()
