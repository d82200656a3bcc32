"""The border of this room: two snapshots in, a differential out.

``compare(engine, old, new, key=["id"])`` reads snapshots made by :func:`strandline.differential.snapshot.snapshot` (or
put together by a source), and leaves a report: Parquet files with the columns that both have and ``_change_type``,
which is insert, delete, update_preimage or update_postimage. ``Differential.changes`` is that report as a DataFrame.
"""

from __future__ import annotations

import math
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4

from strandline.differential import kept as keeping
from strandline.differential import misses
from strandline.differential.arrow_reading import DECODING, batches, row_bytes
from strandline.differential.blocks import in_blocks
from strandline.differential.choice import Facts, choose, comes_in_order, impossible, key_bytes, usable
from strandline.differential.columns import agreed
from strandline.differential.cost import COMPRESSED, Algorithm
from strandline.differential.hashing import Bits
from strandline.differential.kept import FORMS, Kept
from strandline.differential.outcome import Differential
from strandline.differential.report import Counts, counted
from strandline.differential.snapshot import Snapshot, without_common_files
from strandline.differential.unreadable import Policy, Unreadable
from strandline.differential.window import Bound, window, window_bag
from strandline.errors import DifferentialError

if TYPE_CHECKING:
    from strandline.engine.session import Engine

MEMORY = 1 << 30
"""Bytes that an algorithm may hold, unless told otherwise."""

SMALLEST = 1 << 20
"""Bytes without which Window has no room for rows."""

LITTLE = 32 << 20
"""Files of fewer bytes in all are compared without Spark's preparations for large data."""

Wanted = Algorithm | Literal["auto"]


def compare(
    engine: Engine,
    old: Snapshot | None,
    new: Snapshot,
    *,
    key: Sequence[str] | None = None,
    bag: bool = False,
    algorithm: Wanted = "auto",
    memory: int = MEMORY,
    bits: Bits = 64,
    kept: Path | None = None,
    output: str | None = None,
    unreadable: Policy = "fail",
    say: Callable[[str], None] = lambda text: None,
) -> Differential:
    """The changes that lead from *old* to *new*.

    Rows are told apart by *key*; as a *bag* they may be equal, and *key* are identification attributes, if there are
    any. *kept* is a folder where the new snapshot is kept for the next run, in the form that the algorithm wants; if it
    holds *old* from the run before, that is used, and *old* may be None: then deletes come with their key only.
    """
    return _Comparison(engine, old, new, key, bag, memory, bits, kept, output, unreadable, say).run(algorithm)


class _Comparison:
    """One call of :func:`compare`."""

    def __init__(
        self,
        engine: Engine,
        old: Snapshot | None,
        new: Snapshot,
        key: Sequence[str] | None,
        bag: bool,
        memory: int,
        bits: Bits,
        folder: Path | None,
        output: str | None,
        policy: Policy,
        say: Callable[[str], None],
    ) -> None:
        from strandline.differential.spark_reading import with_schema

        if not key and not bag:
            raise DifferentialError(
                "KEY_MISSING",
                "nothing says which columns tell rows apart; name them (--key), or compare as a bag (--bag).",
            )
        self.engine, self.bag, self.memory, self.bits, self.folder = engine, bag, memory, bits, folder
        self.policy, self.say, self.began = policy, say, time.monotonic()
        self.cleanup = ExitStack()
        self.new = with_schema(engine, new)
        self.kept, self.note = self._usable_kept(old)
        self.old = None if old is None else with_schema(engine, old)
        before = self.old or self._as_kept()
        self.columns = agreed(before, self.new, key if key else None)
        if self.kept is not None and not self._kept_fits():
            self.kept, self.note = None, "what was kept has other columns, another key or another hash"
            if old is None:
                raise DifferentialError(
                    "OLD_NOT_KEPT", f"{self.note}, and there is no old snapshot; compare with one that can be read."
                )
        if self.old is not None and folder is None:
            self.old, self.new = without_common_files(self.old, self.new)
        self.unreadable = {side: Unreadable(s.name) for side, s in (("old", before), ("new", self.new))}
        self.output = output

    def run(self, wanted: Wanted) -> Differential:
        """Choose the algorithm and carry it out."""
        try:
            facts = self._facts()
            if wanted == "auto":
                choice = choose(facts)
                algorithm, reason = choice.algorithm, choice.reason
            else:
                algorithm, reason = wanted, "asked for"
                unbound = replace(facts, in_order=True, keep=False, memory=1 << 62, reach=1.0)
                why = impossible(algorithm, unbound)
                if why is not None:
                    raise DifferentialError("ALGORITHM_IMPOSSIBLE", f"{algorithm} cannot be used here: {why}.")
            if self.note:
                reason = f"{reason} ({self.note})"
            report = self._report_folder()
            found = self._window(algorithm, report) if algorithm == "window" else self._explained(algorithm, report)
            return replace(found, reason=reason, seconds=time.monotonic() - self.began)
        except BaseException:
            self.cleanup.close()
            raise

    # ------------------------------------------------------------------ what there is

    def _usable_kept(self, old: Snapshot | None) -> tuple[Kept | None, str]:
        found = None if self.folder is None else keeping.load(self.folder)
        if found is None and old is None:
            raise DifferentialError(
                "OLD_NOT_KEPT", "there is no old snapshot, and nothing was kept of it; name it, or the folder with it."
            )
        if found is None or old is None or found.fingerprint == old.fingerprint:
            return found, ""
        return None, f"what was kept is of {found.snapshot}, which is not the old snapshot as it is now"

    def _as_kept(self) -> Snapshot:
        assert self.kept is not None
        return Snapshot(self.kept.snapshot, "parquet", schema=self.kept.schema(), rows=self.kept.rows)

    def _kept_fits(self) -> bool:
        kept = self.kept
        assert kept is not None
        same_bits = kept.form == "rows" or kept.bits == self.bits
        return kept.schema().equals(self.columns.schema) and kept.key == self.columns.key and same_bits

    def _facts(self) -> Facts:
        sides = [side for side in (self.old, self.new) if side is not None]
        here = self.old is not None and all(side.files is not None for side in sides)
        rows = [side.rows if side.rows is not None else (side.bytes or 0) // 100 for side in sides]
        if self.kept is not None:
            rows.append(self.kept.rows)
        schema, key = self.columns.schema, self.columns.key
        each = max((row_bytes(side, schema) for side in sides), default=1.0) if here else 0.0
        old_bytes = self.old.bytes if self.old is not None else self.new.bytes
        return Facts(
            old=float(old_bytes or 0),
            new=float(self.new.bytes or 0),
            rows=max(rows),
            small=key_bytes(schema, key),
            held=each * max(rows) if here else float("inf"),
            reach=float(Bound(self.memory - self._decoding()).aging_bytes),
            memory=self.memory,
            bag=self.bag,
            here=here,
            in_order=here and not self.bag and all(comes_in_order(side, key) for side in sides),
            kept=None if self.kept is None else self.kept.form,
            old_readable=self.old is not None,
            keep=self.folder is not None,
            addresses=all(side.format in ("parquet", "delta") and side.files is not None for side in sides),
            **({"change": self.kept.changed} if self.kept is not None and self.kept.changed is not None else {}),
        )

    def _report_folder(self) -> str:
        if self.output is None:
            folder = tempfile.mkdtemp(prefix="strandline-diff-")
            self.cleanup.callback(shutil.rmtree, folder, ignore_errors=True)
            return f"{folder}/report"
        if "://" not in self.output and Path(self.output).exists() and any(Path(self.output).iterdir()):
            raise DifferentialError(
                "OUTPUT_EXISTS", f"{self.output} is not empty; name a folder that is absent or empty for the changes."
            )
        return self.output

    # ------------------------------------------------------------------ running it

    def _window(self, algorithm: Algorithm, report: str) -> Differential:
        assert self.old is not None
        schema = self.columns.schema
        bound = Bound(self._memory_for_buffers())
        block = bound.block(max(row_bytes(side, schema) for side in (self.old, self.new)))
        old, new = (
            in_blocks(batches(side, schema, block, self.unreadable[name], self.policy), schema, block)
            for name, side in (("old", self.old), ("new", self.new))
        )
        self.say("reading both snapshots side by side")
        compared = window_bag if self.bag else window
        found = compared(old, new, schema, self.columns.key, bound, Path(report))
        rows = (found.old_rows, found.new_rows)
        reads = [(name, side.bytes or 0) for name, side in (("old", self.old), ("new", self.new))]
        return self._done(algorithm, report, found.counts, rows, reads, useless_pairs=found.useless_pairs)

    def _decoding(self) -> int:
        """What Window takes to read all columns of both snapshots, besides their rows."""
        return 2 * len(self.columns.schema) * DECODING

    def _memory_for_buffers(self) -> int:
        decoding = self._decoding()
        if self.memory < decoding + SMALLEST:
            raise DifferentialError(
                "MEMORY_TOO_SMALL",
                f"window needs {math.ceil((decoding + SMALLEST) / (1 << 20))} MB to read {len(self.columns.schema)} "
                f"columns of two snapshots, and may have {self.memory >> 20} MB; give it more (--memory).",
            )
        return self.memory - decoding

    def _explained(self, algorithm: Algorithm, report: str) -> Differential:
        """On Spark, whose refusals are told in one line."""
        from pyspark.errors import PySparkException

        try:
            return self._on_spark(algorithm, report)
        except PySparkException as error:
            raise DifferentialError(
                "COMPARISON_FAILED",
                f"Spark could not compare {self.unreadable['old'].name} with {self.new.name}: "
                f"{str(error).strip().splitlines()[0][:500]}; try another --algorithm, or more memory.",
            ) from error

    def _on_spark(self, algorithm: Algorithm, report: str) -> Differential:
        from strandline.differential import spark_bags, spark_sets
        from strandline.differential.spark_keys import check_keys, counted_by_spark
        from strandline.differential.spark_reading import read
        from strandline.differential.spark_report import keys

        scratch = tempfile.mkdtemp(prefix="strandline-diff-") if "://" not in report else f"{report}_passing"
        used = self.kept if usable(algorithm, None if self.kept is None else self.kept.form) else None
        keep = None if self.folder is None else self.folder / f"rows-{uuid4().hex[:12]}"
        small = sum(side.bytes or 0 for side in (self.old, self.new) if side is not None) < LITTLE
        with ExitStack() as names, self.engine.step("diff", algorithm, small=small):
            if "://" not in scratch:
                names.callback(shutil.rmtree, scratch, ignore_errors=True)
            self.say("reading both snapshots" if used is None else "reading the new snapshot and what was kept")
            old = None
            if self.old is not None:
                old = read(self.engine, self.old, self.columns, self.unreadable["old"], self.policy)
            new = read(self.engine, self.new, self.columns, self.unreadable["new"], self.policy)
            f1 = None
            if used is not None and self.folder is not None:
                by, in_order = keys(self.columns), keeping.sorted_buckets(used.algorithm)
                place = self.folder / used.data
                f1 = names.enter_context(
                    keeping.reading(self.engine, place, used.stored, by, used.buckets, in_order=in_order)
                )
            old_null_free = used.null_free if used is not None else old is not None and old.null_free
            job = spark_sets.Job(
                self.engine,
                self.columns,
                self.bits,
                old,
                new,
                f1,
                used.rows if used is not None else 0,
                used.bytes if used is not None else 0,
                old_null_free and new.null_free,
                keep,
                report,
                scratch,
                names,
            )
            self.say(f"comparing with {algorithm}")
            (spark_bags if self.bag else spark_sets).run(algorithm, job)
            counts = counted(report) if "://" not in report else counted_by_spark(self.engine, report)
            if not self.bag:
                check_keys(job, counts)
            elif keep is not None and algorithm in ("sm", "ph"):
                spark_sets.keep_rows(job, new.frame, algorithm)
        done = self._done(algorithm, report, counts, (job.old_rows, new.rows), job.reads)
        if job.stored is not None:
            return replace(done, kept=self._record(algorithm, job, counts))
        return done

    def _record(self, algorithm: Algorithm, job: Any, counts: Counts) -> Kept:
        assert self.folder is not None
        kept = Kept(
            algorithm,
            FORMS[algorithm],
            self.columns.key,
            tuple((field.name, str(field.type)) for field in self.columns.schema),
            job.stored,
            self.bits,
            job.new.rows,
            keeping.stored_bytes(job.keep),
            job.buckets,
            self.new.name,
            self.new.fingerprint,
            job.keep.name,
            job.new.null_free,
            keeping.arrow_text(self.columns.schema),
            counts.total / max(1, job.new.rows),
        )
        keeping.record(self.folder, kept)
        return kept

    def _done(
        self,
        algorithm: Algorithm,
        report: str,
        counts: Counts,
        rows: tuple[int, int],
        reads: list[tuple[str, int]],
        useless_pairs: int = 0,
    ) -> Differential:
        compared = min(rows) if algorithm in COMPRESSED else 0
        return Differential(
            algorithm,
            "",
            counts,
            self.columns,
            report,
            rows,
            reads,
            misses.any_miss(compared, misses.error(self.bits)),
            useless_pairs,
            self.unreadable,
            self.old is not None or algorithm in ("sm", "ph"),
            None,
            self.bits,
            0.0,
            self.engine,
            self.cleanup,
        )
