"""What no refresh can be quicker than: reading the changes and the files that they touched, a job, a commit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from bench.floor import empty_job, floors, median
from bench.tpch.lake import Lake, Versions
from strandline.engine.session import Engine


def fixed(spark: Any, folder: Path) -> dict[str, float]:
    """Of an empty job, and an empty commit of Delta."""
    engine = Engine(spark)
    _, commit = floors(engine, folder)
    return {"job": empty_job(engine), "commit": commit}


def reading(lake: Lake, before: Versions, after: Versions) -> dict[str, float]:
    """Of one pass of Arrow over the change feed of what changed, and one over the files that were touched."""
    touched = lake.touched(before, after)

    def feeds() -> None:
        for table, version in after.items():
            if before[table] != version:
                lake.feed(table, before[table], version)

    def files() -> None:
        for file in touched:
            for _ in pq.ParquetFile(file).iter_batches():
                pass

    return {"changes": median(feeds, 1), "touched_files": median(files, 1)}
