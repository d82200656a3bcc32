"""Everything here is small: Spark interprets instead of compiling."""

from __future__ import annotations

import pytest

from strandline.engine.session import Engine


@pytest.fixture(scope="session")
def spark_engine(engine: Engine) -> Engine:
    """The engine with settings for little data, as a small step of a refresh has them."""
    with engine.step("tests", "sources", small=True):
        pass
    # VACUUM lists files in as many tasks as this.
    engine.worker.conf.set("spark.sql.sources.parallelPartitionDiscovery.parallelism", "2")
    return engine
