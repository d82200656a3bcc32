"""The cost of bringing one view up to date, by changes or from scratch.

The constants are fixed and rough: seconds on two cores with a warm session, as ``python -m bench choice`` measured
them (docs/decisions/0018). They rank ways of doing the same thing; they predict no time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

Install = Literal["append", "overwrite", "merge"]


@dataclass(frozen=True)
class Work:
    """What a refresh of one view would touch, in rows; estimates."""

    delta_rows: int
    terms: int
    input_rows: int
    table_rows: int
    looked_up_rows: int = 0
    """Rows of relations that the terms read beside the delta, each as often as it stands in one."""
    recomputes_groups: bool = False
    partials: int = 0
    """Partial aggregates that the view stores; none if it does not group."""
    install: Install = "merge"
    """What becomes of the table: rows are appended, all is written anew, or rows are found and changed."""


class CostModel(Protocol):
    """Costs in one unit, comparable with each other."""

    def incremental(self, work: Work) -> float:
        """Computing and installing the delta."""

    def absorbed(self, work: Work) -> float:
        """Computing a summary delta and merging it into the table."""

    def full(self, work: Work) -> float:
        """Running the query over all its inputs and writing the result."""

    def as_rows(self, rows: int) -> float:
        """Keeping *rows* rows with duplicates as rows, for one refresh like others."""

    def as_counts(self, rows: int, distinct: int) -> float:
        """Keeping *distinct* rows with counts instead."""

    def stored_groups(self, rows: int) -> float:
        """Keeping the groups of *rows* rows in a table of their own, for one refresh like others."""

    def groups_in_place(self, rows: int, readings: int) -> float:
        """Computing those that changed from the rows instead, wherever they are read."""


@dataclass(frozen=True)
class FixedCosts:
    """Constants per job, per term, per commit, per MERGE and per row."""

    job: float = 0.15
    term: float = 0.15
    commit: float = 0.15
    merge: float = 1.5
    """However little it changes: looking up its bounds, finding the files to change, and writing are jobs each."""
    row_scanned: float = 0.4e-6
    row_processed: float = 1e-6
    row_written: float = 3e-6
    row_copied: float = 0.1e-6
    row_aggregated: float = 0.1e-6

    def incremental(self, work: Work) -> float:
        """Each term reads the other inputs to look up the rows of the delta; the table is touched by the delta only.

        The groups of an aggregate are looked up in the table, or computed anew from the rows of their inputs.
        """
        touched = _touched(work)
        found = 0.0
        if work.recomputes_groups:
            found += work.input_rows * self.row_scanned
        if work.recomputes_groups and work.partials:
            share = touched / max(work.table_rows, touched, 1)
            found += share * work.input_rows * (self.row_processed + work.partials * self.row_aggregated)
        elif work.partials:
            found += work.delta_rows * 2 * work.partials * self.row_aggregated
        if work.partials:
            found += work.table_rows * self.row_scanned
        return self._looked_up(work) + found + 2 * touched * self.row_written + self._installed(work)

    def absorbed(self, work: Work) -> float:
        """The table is read once, by the MERGE; a group of the summary delta is written once."""
        touched = _touched(work)
        summed = work.delta_rows * 2 * work.partials * self.row_aggregated
        return self._looked_up(work) + summed + touched * self.row_written + self._merged(work)

    def _looked_up(self, work: Work) -> float:
        rows = work.delta_rows * self.row_processed + work.looked_up_rows * self.row_scanned
        return work.terms * self.term + rows

    def _installed(self, work: Work) -> float:
        match work.install:
            case "append":
                return self.commit + _touched(work) * self.row_written
            case "overwrite":
                return self.job + self.commit + (work.table_rows + _touched(work)) * self.row_written
            case "merge":
                return self._merged(work)

    def _merged(self, work: Work) -> float:
        """All rows of the table are read for those to change, which are marked and written anew."""
        return self.merge + work.table_rows * self.row_scanned + 2 * _touched(work) * self.row_written

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
        return self.incremental(Work(rows // 1_000, 1, rows, groups, partials=2, install=install))

    def groups_in_place(self, rows: int, readings: int) -> float:
        """Wherever they are read, all rows are scanned before and after, for the groups in question."""
        return readings * 2 * (self.job + rows * self.row_scanned)

    def full(self, work: Work) -> float:
        """Every input row is processed, every row of the result written."""
        processed = work.input_rows * (self.row_processed + work.partials * self.row_aggregated)
        return self.job + self.commit + processed + work.table_rows * self.row_written


def _touched(work: Work) -> int:
    """Rows of the table that change: of groups no more than there are, or come."""
    return min(work.delta_rows, max(work.table_rows, 1)) if work.partials else work.delta_rows


MARGIN = 0.8
"""Recomputing must be that much cheaper: the estimates are rough, and a recomputed view makes those above it dearer."""

LEAST_SAVING = 0.5
"""And it must save so much."""

LITTLE_ROWS = 100_000
"""Over no more input rows than these changes are applied: either way is nearly all fixed costs."""


def worth_recomputing(work: Work, full: float, changes: float) -> bool:
    """Whether recomputing is clearly cheaper than applying changes."""
    return work.input_rows > LITTLE_ROWS and full < MARGIN * changes and changes - full > LEAST_SAVING


FIXED = FixedCosts()
