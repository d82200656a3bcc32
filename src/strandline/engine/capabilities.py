"""What the connected engine can do, found out by asking it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Capabilities:
    """Features beyond plain SQL and DataFrames.

    ``change_feed``: SQL can read a Delta change feed. ``commit_metadata``: a session setting puts our step id into the
    commits of SQL statements. ``deletion_vectors``: it writes them.
    """

    engine: str
    change_feed: bool
    commit_metadata: bool
    deletion_vectors: bool


APACHE_SPARK = Capabilities("spark", change_feed=True, commit_metadata=True, deletion_vectors=True)
PROTOCOL_ONLY = Capabilities("spark-connect-protocol", False, False, False)


def probe(spark: SparkSession) -> Capabilities:
    """The capabilities of *spark*.

    Another engine behind the Connect protocol may accept what it cannot do and ignore it, so it is not asked to do
    something, but whether it knows a function that only Delta's own extension of Apache Spark brings.
    """
    if not type(spark).__module__.startswith("pyspark.sql.connect"):
        return APACHE_SPARK
    from pyspark.errors import PySparkException

    try:
        spark.sql("SELECT * FROM table_changes_by_path('/strandline/probe', 0)").schema  # noqa: B018
    except PySparkException as error:
        known = "DELTA" in str(error).upper() and "UNRESOLVABLE" not in str(error).upper()
        return APACHE_SPARK if known else PROTOCOL_ONLY
    return PROTOCOL_ONLY
