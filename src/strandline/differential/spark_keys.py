"""After a run on Spark: how much was found, and whether the key was one.

Of a key that several rows have, rows have too many partners, or are reported twice. With unique keys the number of
pairs is that of the old rows with a partner, and that of the new ones; and with these three equal no matched key is
there twice, for d1 * d2 >= (d1 + d2) / 2 with equality for d1 = d2 = 1 alone.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from strandline.differential.report import AFTER, CHANGE_TYPE, DELETE, INSERT, Counts
from strandline.differential.spark_report import keys
from strandline.differential.spark_sets import Job
from strandline.differential.uniqueness import SHOWN, duplicate_key
from strandline.errors import DifferentialError
from strandline.sql.names import quoted

if TYPE_CHECKING:
    from strandline.engine.session import Engine


def counted_by_spark(engine: Engine, report: str) -> Counts:
    """What a report holds that this process cannot read."""
    rows = engine.worker.read.parquet(report).groupBy(CHANGE_TYPE).count().collect()
    found = {row[0]: int(row[1]) for row in rows}
    return Counts(found.get(INSERT, 0), found.get(DELETE, 0), found.get(AFTER, 0))


def check_keys(job: Job, counts: Counts) -> None:
    """Object to a key that several rows have; the report, which is then wrong, is removed."""
    partners = job.old_rows - counts.deleted
    wrong = partners != job.new.rows - counts.inserted or job.pairs not in (None, partners)
    if not wrong and not (counts.total and _reported_twice(job)):
        return
    shutil.rmtree(job.report, ignore_errors=True)
    for side, frame in (("new", job.new.frame), ("old", None if job.old is None else job.old.frame)):
        again = [] if frame is None else frame.groupBy(*keys(job.columns)).count().where("count > 1").take(SHOWN)
        if again:
            raise duplicate_key(side, job.columns.key, [tuple(row)[:-1] for row in again])
    raise DifferentialError(
        "KEY_NOT_UNIQUE",
        f"several rows of the old snapshot had the same key ({', '.join(job.columns.key)}) when it was kept; remove "
        "the folder where it was kept, and compare with the old snapshot itself.",
    )


def _reported_twice(job: Job) -> bool:
    by = [quoted(name) for name in (*job.columns.key, CHANGE_TYPE)]
    changes = job.engine.worker.read.parquet(job.report)
    return bool(changes.groupBy(*by).count().where("count > 1").take(1))
