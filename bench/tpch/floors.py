"""What no refresh can be quicker than: reading the changes and the files that they touched, a job, a commit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.floor import empty_job, floors, median
from bench.tpch.lake import Lake, Versions
from strandline.engine.session import Engine


def fixed(spark: Any, folder: Path) -> dict[str, float]:
    """Of an empty job, and an empty commit of Delta."""
    engine = Engine(spark)
    _, commit = floors(engine, folder)
    return {"job": empty_job(engine), "commit": commit}


def reading(spark: Any, lake: Lake, before: Versions, after: Versions) -> dict[str, float]:
    """Of one pass over the change feed of what changed, and one over the files that were touched."""
    changed = [table for table in after if before[table] != after[table]]
    touched = lake.touched(before, after)

    def feed() -> None:
        for table in changed:
            lake.feed(table, before[table], after[table])

    def files() -> None:
        for table in changed:
            own = [file for file in touched if file.startswith(f"{lake.path(table)}/")]
            spark.read.parquet(*own).write.format("noop").mode("overwrite").save()

    return {"changes": median(feed, 1), "touched_files": median(files, 1)}
