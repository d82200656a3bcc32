"""Everything here is small: Spark plans few tasks and interprets instead of compiling."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from strandline.engine.session import Engine

_FEW_TASKS = {
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.files.minPartitionNum": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
    # VACUUM lists files in as many tasks as this.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "1",
}


@pytest.fixture(scope="package")
def spark_engine(engine: Engine) -> Iterator[Engine]:
    """The engine with settings for little data, as a small step of a refresh has them."""
    with engine.step("tests", "sources", small=True):
        for name, value in _FEW_TASKS.items():
            engine.worker.conf.set(name, value)
        yield engine
        for name in _FEW_TASKS:
            engine.worker.conf.unset(name)
