"""What the steps of a refresh are charged for: how often each constant of a cost model counts.

A step's cost is linear in the constants. So the same charges that give an estimate say, once the step was measured,
something about the constants.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Install = Literal["append", "overwrite", "merge"]

Constant = Literal[
    "job",
    "term",
    "commit",
    "merge",
    "compiling",
    "row_scanned",
    "row_processed",
    "row_written",
    "row_copied",
    "row_aggregated",
]

Amounts = Mapping[Constant, float]

COMPILED_ROWS = 0.4
"""What a row costs in compiled code, as a share of what it costs interpreted."""

_BY_MODE: tuple[Constant, ...] = ("row_scanned", "row_processed", "row_copied", "row_aggregated")


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

    @property
    def touched(self) -> int:
        """Rows of the table that change: of groups no more than there are, or come."""
        return min(self.delta_rows, max(self.table_rows, 1)) if self.partials else self.delta_rows


@dataclass(frozen=True)
class Charges:
    """How often each constant is charged to a step that is interpreted, and how many statements would be compiled."""

    amounts: Amounts = field(default_factory=dict)
    statements: int = 1

    @property
    def compiled(self) -> Amounts:
        """The same for a step that is compiled: its rows are cheaper, its statements are not."""
        rows = {name: amount * COMPILED_ROWS for name, amount in self.amounts.items() if name in _BY_MODE}
        return {**self.amounts, **rows, "compiling": self.statements}


def computed(work: Work) -> Charges:
    """Each term reads the other inputs to look up the rows of the delta; a delta of the table comes out.

    The groups of an aggregate are looked up in the table, or computed anew from the rows of their inputs.
    """
    found = _looked_up(work)
    touched = work.touched
    if work.recomputes_groups:
        found["row_scanned"] += work.input_rows
    if work.recomputes_groups and work.partials:
        share = touched / max(work.table_rows, touched, 1)
        found["row_processed"] += share * work.input_rows
        found["row_aggregated"] += share * work.input_rows * work.partials
    elif work.partials:
        found["row_aggregated"] += work.delta_rows * 2 * work.partials
    if work.partials:
        found["row_scanned"] += work.table_rows
    found["row_written"] += 2 * touched
    return Charges(dict(found), max(work.terms, 1))


def summed(work: Work) -> Charges:
    """The same for a summary delta: a group is written once, and the table is not read."""
    found = _looked_up(work)
    found["row_aggregated"] += work.delta_rows * 2 * work.partials
    found["row_written"] += work.touched
    return Charges(dict(found), max(work.terms, 1))


def installed(work: Work) -> Charges:
    """The delta goes into the table by the way that is expected."""
    match work.install:
        case "append":
            return Charges({"commit": 1, "row_written": work.touched})
        case "overwrite":
            return Charges({"job": 1, "commit": 1, "row_written": work.table_rows + work.touched})
        case "merge":
            return merged(work)


def merged(work: Work) -> Charges:
    """All rows of the table are read for those to change, which are marked and written anew."""
    return Charges({"merge": 1, "row_scanned": work.table_rows, "row_written": 2 * work.touched}, 3)


def recomputed(work: Work) -> Charges:
    """Every input row is processed, every row of the result written."""
    return Charges(
        {
            "job": 1,
            "commit": 1,
            "row_processed": work.input_rows,
            "row_aggregated": work.input_rows * work.partials,
            "row_written": work.table_rows,
        }
    )


def compared(table_rows: int, delta_rows: int) -> Charges:
    """Two versions of a table are held against each other, and what differs is written."""
    return Charges({"job": 1, "row_processed": 2 * table_rows, "row_written": delta_rows})


def ingested(delta_rows: int, rewritten_rows: int = 0) -> Charges:
    """The delta of a leaf is read and stored; where files were rewritten, their rows are compared for it."""
    return Charges({"job": 1, "row_processed": delta_rows + 2 * rewritten_rows, "row_written": delta_rows})


def _looked_up(work: Work) -> defaultdict[Constant, float]:
    found: defaultdict[Constant, float] = defaultdict(float)
    found["term"], found["row_processed"], found["row_scanned"] = work.terms, work.delta_rows, work.looked_up_rows
    return found
