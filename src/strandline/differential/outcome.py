"""What a comparison leaves: the changes, how they were found, and what that took."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from strandline.differential.columns import Columns
from strandline.differential.cost import Algorithm
from strandline.differential.hashing import Bits
from strandline.differential.kept import Kept
from strandline.differential.report import Counts, sample
from strandline.differential.unreadable import Unreadable

if TYPE_CHECKING:
    from strandline.engine.session import DataFrame, Engine


@dataclass
class Differential:
    """What changed between two snapshots, how it was found, and what that took.

    *error* is the probability that one of the rows compared by hashes was changed and missed; 0 for exact algorithms.
    *old_rows_known* says whether deletes and updates come with the old row. *report* is the folder with the changes; it
    is removed by :meth:`close` if nobody named it.
    """

    algorithm: Algorithm
    reason: str
    counts: Counts
    columns: Columns
    report: str
    rows: tuple[int, int]
    reads: list[tuple[str, int]]
    error: float
    useless_pairs: int
    unreadable: dict[str, Unreadable]
    old_rows_known: bool
    kept: Kept | None
    bits: Bits
    seconds: float
    engine: Engine = field(repr=False)
    cleanup: ExitStack = field(repr=False)

    @property
    def changes(self) -> DataFrame:
        """The report as a DataFrame."""
        return self.engine.worker.read.parquet(self.report)

    @property
    def bytes_read(self) -> int:
        """The sizes of all files that were read, each as often as it was."""
        return sum(size for _, size in self.reads)

    def sample(self, most: int) -> list[dict[str, Any]]:
        """Some rows from the beginning of the report, by their key."""
        if "://" in self.report:
            return [row.asDict(recursive=True) for row in self.changes.take(most)]
        return sample(self.report, most, self.columns.key)

    def close(self) -> None:
        """Remove what was written for this comparison only."""
        self.cleanup.close()

    def to_dict(self) -> dict[str, Any]:
        """What the ``--json`` output shows."""
        return {
            "algorithm": self.algorithm,
            "reason": self.reason,
            "counts": self.counts.to_dict(),
            "rows": {"old": self.rows[0], "new": self.rows[1]},
            "bytes_read": self.bytes_read,
            "reads": [{"what": what, "bytes": size} for what, size in self.reads],
            "error_probability": self.error,
            "expected_days_to_a_miss": 1 / self.error if self.error else None,
            "useless_pairs": self.useless_pairs,
            "old_rows_known": self.old_rows_known,
            "schema": self.columns.to_dict(),
            "unreadable": {side: found.to_dict() for side, found in self.unreadable.items()},
            "kept_bytes": None if self.kept is None else self.kept.bytes,
            "seconds": round(self.seconds, 3),
        }
