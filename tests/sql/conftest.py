"""Queries here are small and many: Spark plans each as one task, and interprets it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from strandline.engine.session import Engine

_ONE_TASK = {
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    # Spark derives a number of constraints that is exponential in the number of aggregates of a merged summary.
    "spark.sql.constraintPropagation.enabled": "false",
}


@pytest.fixture(scope="package")
def small(engine: Engine) -> Iterator[Engine]:
    """The engine with settings for a few rows."""
    with engine.step("tests", "sql", small=True):
        for name, value in _ONE_TASK.items():
            engine.worker.conf.set(name, value)
        yield engine
    for name in _ONE_TASK:
        engine.worker.conf.unset(name)
    with engine.step("tests", "sql", small=True):
        pass
