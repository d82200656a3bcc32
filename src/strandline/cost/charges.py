"""What the steps of a refresh are charged for: how often each constant of a cost model counts.

A step's cost is linear in the constants. So the same charges that give an estimate say, once the step was measured,
something about the constants.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

Install = Literal["append", "overwrite", "replace", "mark", "merge"]

Constant = Literal[
    "job",
    "term",
    "commit",
    "merge",
    "compiling",
    "ceremony",
    "file",
    "byte_read",
    "byte_shuffled",
    "row_scanned",
    "row_processed",
    "row_written",
    "row_copied",
    "row_replaced",
    "row_aggregated",
]

Amounts = Mapping[Constant, float]

COMPILED_ROWS = 0.3
"""What a row costs in compiled code, as a share of what it costs interpreted."""

_BY_MODE: tuple[Constant, ...] = ("row_scanned", "row_processed", "row_copied", "row_aggregated")


@dataclass(frozen=True)
class Extent:
    """So much of tables is read: rows, bytes of the columns in question, and files."""

    rows: int = 0
    bytes: int = 0
    files: int = 0

    def __add__(self, other: Extent) -> Extent:
        return Extent(self.rows + other.rows, self.bytes + other.bytes, self.files + other.files)


NOTHING = Extent()


@dataclass(frozen=True)
class Work:
    """What a refresh of one view would touch; estimates."""

    delta_rows: int
    terms: int
    inputs: Extent
    """All that the view is computed from."""
    table: Extent
    looked_up: Extent = NOTHING
    """What the terms read beside the delta, after files were skipped: a table as often as it stands in one."""
    matched: Extent | None = None
    """The part of the table in which rows of its delta are looked for, after files were skipped; None is all."""
    regrouped: Extent | None = None
    """What computing its groups anew would read instead, after files were skipped; None is all inputs as well."""
    shuffled_bytes: int = 0
    """What recomputing has to move for its joins and groups."""
    delta_shuffled_bytes: int = 0
    """What computing the delta has to move, if this is too large to be sent to what it is joined with."""
    recomputes_groups: bool = False
    partials: int = 0
    """Partial aggregates that the view stores; none if it does not group."""
    install: Install = "merge"
    """What becomes of the table: rows are appended, all is written anew, or the files near the delta, or rows are found
    and marked, or changed."""
    holding: Extent | None = None
    """The files that hold what is matched, whole: so much is read to change some of it; None is just that."""

    @property
    def read(self) -> Extent:
        """What is read of inputs to compute the delta."""
        if not self.recomputes_groups:
            return self.looked_up
        return self.looked_up + self.inputs if self.regrouped is None else self.regrouped

    @property
    def touched(self) -> int:
        """Rows of the table that change: of groups no more than there are, or come."""
        return min(self.delta_rows, max(self.table.rows, 1)) if self.partials else self.delta_rows


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
    found = _by_terms(work, work.read)
    touched = work.touched
    if work.recomputes_groups:
        if work.partials:
            share = min(touched / max(work.table.rows, touched, 1) * work.inputs.rows, work.read.rows)
            found["row_processed"] += share
            found["row_aggregated"] += share * work.partials
    elif work.partials:
        found["row_aggregated"] += work.delta_rows * 2 * work.partials
    if work.partials:
        _read(found, _matched(work))
    found["row_written"] += 2 * touched
    return Charges(dict(found), max(work.terms, 1))


def summed(work: Work) -> Charges:
    """The same for a summary delta: a group is written once, and the table is not read."""
    found = _by_terms(work, work.looked_up)
    found["row_aggregated"] += work.delta_rows * 2 * work.partials
    found["row_written"] += work.touched
    return Charges(dict(found), max(work.terms, 1))


def installed(work: Work) -> Charges:
    """The delta goes into the table by the way that is expected."""
    match work.install:
        case "append":
            return Charges({"commit": 1, "row_written": work.touched})
        case "overwrite":
            return Charges({"job": 1, "commit": 1, "row_written": work.table.rows + work.touched})
        case "replace":
            return replaced(work)
        case "mark":
            return marked(work)
        case "merge":
            return merged(work)


def replaced(work: Work) -> Charges:
    """Files are read and written anew, without Spark."""
    files = _holding(work)
    return Charges({"commit": 1, "file": files.files, "row_replaced": files.rows, "row_processed": work.touched})


def marked(work: Work) -> Charges:
    """Keys of files are read to find the rows to mark, without Spark; those that come are appended."""
    files = _holding(work)
    return Charges({"commit": 2, "file": files.files, "row_copied": files.rows, "row_written": work.touched})


def merged(work: Work) -> Charges:
    """The rows to change are looked for among those near them, marked, and written anew.

    These are joined with the delta twice: to find the files to change, and to change them.
    """
    found: defaultdict[Constant, float] = defaultdict(float)
    files = _holding(work)
    found["merge"], found["row_written"], found["row_processed"] = 1, 2 * work.touched, 2 * files.rows
    _read(found, replace(files, rows=0))
    return Charges(dict(found), 3)


def recomputed(work: Work) -> Charges:
    """Every input row is processed, every row of the result written."""
    return Charges(
        {
            "job": 1,
            "commit": 1,
            "file": work.inputs.files,
            "byte_read": work.inputs.bytes,
            "byte_shuffled": work.shuffled_bytes,
            "row_processed": work.inputs.rows,
            "row_aggregated": work.inputs.rows * work.partials,
            "row_written": work.table.rows,
        }
    )


def compared(table: Extent, delta_rows: int) -> Charges:
    """Two versions of a table are held against each other, and what differs is written."""
    return Charges(
        {
            "job": 1,
            "file": 2 * table.files,
            "byte_read": 2 * table.bytes,
            "row_processed": 2 * table.rows,
            "row_written": delta_rows,
        }
    )


def ingested(delta_rows: int, rewritten: Extent = NOTHING, delta_bytes: int = 0) -> Charges:
    """The delta of a leaf is read, netted and stored; where files were rewritten, their rows are compared for it."""
    return Charges(
        {
            "job": 1,
            "file": 2 * rewritten.files,
            "byte_read": 2 * rewritten.bytes,
            "byte_shuffled": delta_bytes,
            "row_processed": delta_rows + 2 * rewritten.rows,
            "row_written": delta_rows,
        }
    )


def _by_terms(work: Work, read: Extent) -> defaultdict[Constant, float]:
    found: defaultdict[Constant, float] = defaultdict(float)
    found["term"], found["row_processed"] = work.terms, work.delta_rows
    found["byte_shuffled"] = work.delta_shuffled_bytes
    _read(found, read)
    return found


def _matched(work: Work) -> Extent:
    return work.table if work.matched is None else work.matched


def _holding(work: Work) -> Extent:
    return _matched(work) if work.holding is None else work.holding


def _read(found: defaultdict[Constant, float], extent: Extent) -> None:
    """*extent* is scanned for what is looked up in it."""
    found["row_scanned"] += extent.rows
    found["byte_read"] += extent.bytes
    found["file"] += extent.files
