"""Set differentials on Spark: SM, PH, SMC1, PHC1, SMC2, PHC2, and PHC in memory.

Sort-merge is a full outer merge join of sides that are partitioned and sorted by the key, partitioned hash a full outer
shuffled hash join. What was kept of the old snapshot is read in its buckets and is not moved; what is kept of the new
one is written in such buckets before they are matched.
"""

from __future__ import annotations

import math
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from strandline.differential import kept
from strandline.differential.columns import Columns
from strandline.differential.cost import Algorithm
from strandline.differential.hashing import Bits, compressed, equal
from strandline.differential.spark_reading import FILE, ROW, Input
from strandline.differential.spark_report import (
    NEW,
    OLD,
    deleted_keys,
    fetched,
    keys,
    marked,
    named,
    on_key,
    rows_of_both,
    rows_of_new,
)

if TYPE_CHECKING:
    from strandline.engine.session import DataFrame, Engine

BUCKET_BYTES = 64 << 20
"""A bucket, as files have it, should not be larger: it is to fit in memory."""


@dataclass
class Job:
    """One comparison: the inputs, what was kept, where to keep, and where the report and passing files go.

    *old* is None if the old snapshot cannot be read, and then *f1* is what was kept of it. *keep* is where the rows to
    be kept are written, and *stored* then says in which columns. *names* ends what has a name in the session.
    """

    engine: Engine
    columns: Columns
    bits: Bits
    old: Input | None
    new: Input
    f1: DataFrame | None
    f1_rows: int
    f1_bytes: int
    null_free: bool
    keep: Path | None
    report: str
    scratch: str
    names: ExitStack
    observed: Any = None
    stored: str | None = None
    reads: list[tuple[str, int]] = field(default_factory=list)

    @property
    def buckets(self) -> int:
        """How many buckets both sides are put into."""
        largest = max(self.new.bytes, self.old.bytes if self.old else 0)
        return max(kept.BUCKETS, math.ceil(largest / BUCKET_BYTES))

    def hashes(self) -> list[str]:
        """b of a row, as named expressions."""
        names = self.columns.schema.names
        rest = [(f"c{names.index(name)}", self.columns.schema.field(name).type) for name in self.columns.rest]
        return [f"{text} AS b{place}" for place, text in enumerate(compressed(rest, self.bits))]

    @property
    def b(self) -> list[str]:
        """The names of b."""
        return [f"b{place}" for place in range(self.bits // 64)]

    @property
    def pairs(self) -> int | None:
        """After the run, how many rows had a partner; None if the algorithm did not count."""
        return None if self.observed is None else int(self.observed.get["pairs"])

    @property
    def old_rows(self) -> int:
        """How many rows the old snapshot has."""
        return self.f1_rows if self.f1 is not None else self.old.rows if self.old is not None else 0


def run(algorithm: Algorithm, job: Job) -> None:
    """Carry out *algorithm*; the report is there at the end, and what is to be kept is written."""
    match algorithm:
        case "sm" | "ph":
            _outer_join(job, algorithm)
        case "smc1" | "phc1":
            _hashes_against_rows(job, algorithm)
        case "smc2" | "phc2":
            _hashes_against_hashes(job, algorithm)
        case "phc":
            _in_memory(job)
        case "window":
            raise ValueError("Window does not run on Spark")


def _outer_join(job: Job, algorithm: Algorithm) -> None:
    """Whole rows on both sides."""
    old = job.f1 if job.f1 is not None else _old(job).frame
    job.reads += [_read_of_old(job), ("new", job.new.bytes)]
    new = _in_buckets(job, job.new.frame, algorithm)
    names = [(f"{OLD}{place}", f"{NEW}{place}", kind) for place, kind in enumerate(job.columns.schema.types)]
    same = equal([(o, kind) for o, _, kind in names], [(n, kind) for _, n, kind in names])
    found = _joined(job, old, new, algorithm).where(f"{OLD} IS NULL OR {NEW} IS NULL OR NOT ({same})")
    rows_of_both(found, job.columns).write.mode("overwrite").parquet(job.report)


def _hashes_against_rows(job: Job, algorithm: Algorithm) -> None:
    """``<K, b>`` of the old side against whole rows of the new one, which are partitioned uncompressed (C1)."""
    new = job.new.frame.selectExpr("*", *job.hashes())
    job.reads.append(("new", job.new.bytes))
    found = _stored(job, _joined(job, _f1(job), new, algorithm).where(_changed(job)), "found")
    _write_report(job, found, rows_of_new(found, job.columns))
    if job.keep is not None:
        # Spark cannot write f2 while it matches: the new snapshot is read once more.
        job.reads.append(("new", job.new.bytes))
        keep_rows(job, new.select(*keys(job.columns), *job.b), algorithm)


def _hashes_against_hashes(job: Job, algorithm: Algorithm) -> None:
    """``<K, b, p>`` on both sides; full rows are fetched for what has changed (C2).

    Where rows have no address (text files), they are fetched by their key.
    """
    pointed = job.new.pointed is not None
    whole = job.new.pointed if job.new.pointed is not None else job.new.frame
    address = [FILE, ROW] if pointed else []
    small = whole.selectExpr(*keys(job.columns), *job.hashes(), *address)
    job.reads.append(("new", job.new.bytes))
    new = _in_buckets(job, small, algorithm)
    found = _stored(job, _joined(job, _f1(job), new, algorithm).where(_changed(job)), "found")
    by = [(name, named(NEW, name)) for name in address] or [(key, named(NEW, key)) for key in keys(job.columns)]
    job.reads.append(("new", job.new.bytes))
    _write_report(job, found, fetched(whole, found, by, NEW, job.columns))


def _in_memory(job: Job) -> None:
    """All of f1 in memory: the rows of the new snapshot look themselves up in it, and are not moved.

    Who was not looked up is deleted. Spark does not mark: the keys of f1 are compared with those of f2.
    """
    from pyspark.sql.functions import broadcast, expr

    f1, new = marked(_f1(job), OLD), job.new.frame.selectExpr("*", *job.hashes())
    job.reads.append(("new", job.new.bytes))
    joined = marked(new, NEW).join(broadcast(f1), expr(on_key(job.columns, job.null_free)), "left")
    found = _stored(job, joined.where(_changed(job)), "found")
    hashed = new.select(*keys(job.columns), *job.b)
    job.reads.append(("new", job.new.bytes))
    if job.keep is not None:
        hashed = keep_rows(job, hashed, "phc")
    present = marked(hashed.select(*keys(job.columns)), NEW).hint("shuffle_hash")
    gone = f1.join(present, expr(on_key(job.columns, job.null_free)), "left_anti")
    gone = _stored(job, gone.selectExpr("*", f"CAST(NULL AS int) AS {NEW}"), "gone")
    found = found.unionByName(gone, allowMissingColumns=True)
    _write_report(job, found, rows_of_new(found, job.columns))


def _joined(job: Job, old: DataFrame, new: DataFrame, algorithm: Algorithm) -> DataFrame:
    """The full outer join of both sides on the key; it counts its pairs on the way."""
    from pyspark.sql import Observation
    from pyspark.sql.functions import expr

    hint = "merge" if algorithm.startswith("sm") else "shuffle_hash"
    left, right = marked(old, OLD), marked(new, NEW)
    joined = left.join(right.hint(hint), expr(on_key(job.columns, job.null_free)), "full")
    job.observed = Observation()
    return joined.observe(job.observed, expr(f"count_if({OLD} = 1 AND {NEW} = 1)").alias("pairs"))


def _in_buckets(job: Job, rows: DataFrame, algorithm: Algorithm) -> DataFrame:
    """*rows* in buckets by the key: those that are kept, or passing ones."""
    if job.keep is None:
        return rows.repartition(job.buckets, *keys(job.columns))
    return keep_rows(job, rows, algorithm)


def keep_rows(job: Job, rows: DataFrame, algorithm: Algorithm) -> DataFrame:
    """*rows* once they are written where they are to be kept."""
    assert job.keep is not None
    by, in_order = keys(job.columns), kept.sorted_buckets(algorithm)
    job.stored = kept.write(job.engine, rows, by, job.keep, job.buckets, in_order=in_order)
    return job.names.enter_context(kept.reading(job.engine, job.keep, job.stored, by, job.buckets, in_order=in_order))


def _f1(job: Job) -> DataFrame:
    """``<K, b>`` of the old snapshot, kept or made now."""
    job.reads.append(_read_of_old(job))
    if job.f1 is not None:
        return job.f1.select(*keys(job.columns), *job.b)
    return _old(job).frame.selectExpr(*keys(job.columns), *job.hashes())


def _changed(job: Job) -> str:
    differ = " OR ".join(f"{named(OLD, b)} <> {named(NEW, b)}" for b in job.b)
    return f"{OLD} IS NULL OR {NEW} IS NULL OR {differ}"


def _stored(job: Job, found: DataFrame, name: str) -> DataFrame:
    """*found*, computed once."""
    place = f"{job.scratch}/{name}"
    found.write.mode("overwrite").parquet(place)
    return job.engine.worker.read.schema(found.schema).parquet(place)


def _write_report(job: Job, found: DataFrame, new_rows: DataFrame) -> None:
    """New rows, and old ones from the old snapshot where it can be read; else deletes have their keys only."""
    if job.old is not None:
        job.reads.append(("old", job.old.bytes))
        by = [(key, named(OLD, key)) for key in keys(job.columns)]
        old_rows = fetched(job.old.frame, found, by, OLD, job.columns)
    else:
        kinds = [field.dataType.simpleString() for field in job.new.frame.schema.fields]
        old_rows = deleted_keys(found, job.columns, kinds)
    new_rows.unionByName(old_rows).write.mode("overwrite").parquet(job.report)


def _old(job: Job) -> Input:
    assert job.old is not None
    return job.old


def _read_of_old(job: Job) -> tuple[str, int]:
    return ("kept", job.f1_bytes) if job.f1 is not None else ("old", _old(job).bytes)
