"""Window over Arrow batches: one pass over both snapshots within a bound on memory (2.3).

The rounds are those of ``records/window.py``, each carried out for a whole input buffer at once: match the two input
buffers, match each with the aging buffer of the other side, let what is left age, and report what falls out. What
falls out may be one half of a useless pair, which the second pass settles.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import pyarrow as pa

from strandline.differential.aging import Aging
from strandline.differential.matching import Buffer, Pass, bag_passes, pair_off, set_passes
from strandline.differential.report import Counts, ReportFile
from strandline.differential.spool import Spool
from strandline.differential.uniqueness import KeyOrder

MOST_AGING = 1 << 30
"""Bytes of an aging buffer, however much memory there is: Arrow's arrays of text hold no more than two gigabytes."""

MOST_ROWS = 65_536
"""An input buffer holds no more rows, however much memory there is: larger ones are not faster."""


@dataclass(frozen=True)
class Bound:
    """What the algorithm may hold: *memory* in bytes. *aging_rows*, if given, bounds the aging buffers instead.

    An eighth goes to each input buffer and an eighth to each aging buffer. The other half is for what is on its way:
    rows being decoded, compared and moved.
    """

    memory: int
    aging_rows: int | None = None
    block_rows: int = MOST_ROWS

    @property
    def aging_bytes(self) -> int:
        """Of one aging buffer."""
        return min(self.memory // 8, MOST_AGING)

    def block(self, row_bytes: float) -> int:
        """Rows of an input buffer."""
        return max(1, min(self.block_rows, int(self.memory / 8 / max(row_bytes, 1.0))))


@dataclass(frozen=True)
class Outcome:
    """What was found, what was read, and how many useless pairs the second pass took out."""

    counts: Counts
    old_rows: int
    new_rows: int
    useless_pairs: int


def window(
    old: Iterable[pa.Table], new: Iterable[pa.Table], schema: pa.Schema, key: Sequence[str], bound: Bound, folder: Path
) -> Outcome:
    """Set differential of two streams of rows in input buffers, which go in step; written to *folder*."""
    order1, order2 = KeyOrder(key, "old"), KeyOrder(key, "new")
    run = _Run(schema, set_passes(schema.names, key), bound, folder)

    def checked(rows: Iterable[pa.Table], order: KeyOrder, aging: Aging) -> Iterator[pa.Table]:
        for block in rows:
            order.check(block, aging)
            yield block

    return run.rounds(checked(old, order1, run.aging1), checked(new, order2, run.aging2))


def window_bag(
    old: Iterable[pa.Table],
    new: Iterable[pa.Table],
    schema: pa.Schema,
    identification: Sequence[str],
    bound: Bound,
    folder: Path,
) -> Outcome:
    """Bag differential of two streams of rows in input buffers, which go in step; written to *folder*."""
    return _Run(schema, bag_passes(schema.names, identification), bound, folder).rounds(old, new)


class _Run:
    """One run: the aging buffers and where changes go."""

    def __init__(self, schema: pa.Schema, passes: Sequence[Pass], bound: Bound, folder: Path) -> None:
        self.schema, self.passes, self.bound = schema, passes, bound
        self.aging1, self.aging2 = (Aging(schema, passes, bound.aging_bytes, bound.aging_rows) for _ in range(2))
        self.report = ReportFile(folder, schema)

    def rounds(self, old: Iterable[pa.Table], new: Iterable[pa.Table]) -> Outcome:
        """All rounds, what is left in the aging buffers, and the second pass."""
        nothing, seen = self.schema.empty_table(), [0, 0]
        with tempfile.TemporaryDirectory(prefix="strandline-window-") as scratch:
            spool = Spool(Path(scratch), self.schema)
            for rows1, rows2 in zip_longest(old, new, fillvalue=nothing):
                seen[0] += rows1.num_rows
                seen[1] += rows2.num_rows
                left1, left2 = self._matched(Buffer(rows1, self.passes), Buffer(rows2, self.passes))
                spool.deletes(self.aging1.enqueue(left1))
                spool.inserts(self.aging2.enqueue(left2))
            pairs = 0
            if spool.used:
                spool.deletes(self.aging1.drain())
                spool.inserts(self.aging2.drain())
                pairs = spool.settle(self.report, self.passes, self.bound.memory // 8)
            else:
                self.report.deletes(self.aging1.drain())
                self.report.inserts(self.aging2.drain())
        return Outcome(self.report.close(), seen[0], seen[1], pairs)

    def _matched(self, in1: Buffer, in2: Buffer) -> tuple[pa.Table, pa.Table]:
        """One round; the rows that found no match."""
        for number in range(len(self.passes)):
            pair_off(self.passes, number, in1, in2, self.report)
            pair_off(self.passes, number, in1, self.aging2, self.report)
            pair_off(self.passes, number, self.aging1, in2, self.report)
        return in1.left(), in2.left()
