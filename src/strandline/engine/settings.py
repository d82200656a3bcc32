"""The settings of a Spark session that we start: ours, then those of ``spark-submit``, then the project's."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

OLD_VERSIONS = "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration"
"""Whether a version older than a table's retention is refused, though its files may all be there."""

_EVERYWHERE = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "2",
    OLD_VERSIONS: "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # A step is counted when it ends. What Spark keeps longer is for its user interface, a plan with all its words each.
    "spark.sql.ui.retainedExecutions": "100",
    "spark.ui.retainedJobs": "300",
    "spark.ui.retainedStages": "500",
    "spark.sql.session.timeZone": "UTC",
    "spark.scheduler.mode": "FAIR",
    "spark.driver.memory": "2g",
    "spark.sql.shuffle.partitions": "4",
}

_HERE = {"spark.master": "local[*]", "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
"""For a session within one process. Executors elsewhere have to reach the driver, by whatever name Spark finds."""

_JARS = "spark.jars"


def under_spark_submit() -> bool:
    """Whether ``spark-submit`` started this process, and with it the Java side of the session."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def session_settings(given: Mapping[str, str], jars: Sequence[str], scratch: str) -> dict[str, str]:
    """All settings of a session; *given* ones replace ours, but for jars, which are added.

    Under ``spark-submit`` the driver has its jars already, and executors get what it was given.
    """
    submitted = _submitted()
    stated = {**submitted, **given}
    local = stated.get("spark.master", "local").startswith("local")
    ours = {**_EVERYWHERE, **(_HERE if local else {}), "spark.sql.warehouse.dir": f"{scratch}/tables"}
    if submitted:
        return {**ours, **stated}
    more = [jar for jar in stated.get(_JARS, "").split(",") if jar]
    return {**ours, **stated, _JARS: ",".join([*jars, *more])}


def _submitted() -> dict[str, str]:
    """What ``spark-submit`` was told, on its command line and in its files."""
    if not under_spark_submit():
        return {}
    from pyspark import SparkConf, SparkContext

    SparkContext._ensure_initialized()
    return dict(SparkConf().getAll())
