"""DataFrames and their plans.

A Spark Connect DataFrame holds its plan on the client, as the message that it would send. PySpark has no public name
for it; what is private is used here and nowhere else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from strandline.algebra.schema import Schema
from strandline.engine.quiet import quiet
from strandline.engine.start import first_sentence
from strandline.engine.types import columns_of
from strandline.errors import SqlError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_CONNECT = "pyspark.sql.connect."


def is_frame(found: object) -> bool:
    """Whether this is a DataFrame, of whichever kind of Spark."""
    return any(c.__module__.startswith("pyspark.sql.") and c.__name__ == "DataFrame" for c in type(found).__mro__)


def frame_over(spark: SparkSession, sql: str, alias: str) -> DataFrame:
    """A DataFrame over a query, made without asking the server."""
    if not type(spark).__module__.startswith(_CONNECT):
        raise _classic()
    from pyspark.sql.connect.dataframe import DataFrame
    from pyspark.sql.connect.plan import SQL, SubqueryAlias

    session: Any = spark
    return DataFrame(SubqueryAlias(SQL(sql), alias), session)


def plan_of(frame: Any) -> Any:
    """The plan of a DataFrame, as a protobuf ``Relation``."""
    if not type(frame).__module__.startswith(_CONNECT):
        raise _classic()
    return frame._plan.plan(frame.sparkSession.client)


def columns_of_frame(frame: DataFrame) -> Schema:
    """The columns of a DataFrame, as its own session types them."""
    from pyspark.errors import PySparkException

    try:
        with quiet():
            return columns_of(frame.schema.json())
    except PySparkException as error:
        raise SqlError("SPARK_REJECTS", first_sentence(error)) from error


def _classic() -> SqlError:
    return SqlError(
        "DATAFRAME_CLASSIC",
        "a DataFrame of a classic Spark session keeps its plan inside the Java process, and cannot be read as SQL; "
        "give the view's SQL text, or a function that returns it, or open the warehouse over Spark Connect: "
        'Warehouse.open(..., remote="sc://host") or a session of SparkSession.builder.remote(...).',
    )
