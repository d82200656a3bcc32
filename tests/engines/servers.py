"""Servers of the protocol Spark Connect, each in the process that starts it: Apache Spark, and Sail, another engine."""

from __future__ import annotations

import atexit
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from strandline.engine.jars import jar_paths
from tests.conftest import LITTLE_DATA

SETTINGS = {
    **LITTLE_DATA,
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "3",
}


@contextmanager
def sail() -> Iterator[Any]:
    from pysail.spark import SparkConnectServer
    from pyspark.sql import SparkSession

    server = SparkConnectServer(port=0)
    server.start(background=True)
    # A client that finds its server gone when the process ends asks again for ten minutes. What is registered first is
    # called last.
    atexit.register(server.stop)
    session = SparkSession.builder.remote(f"sc://localhost:{server.listening_address[1]}").getOrCreate()
    try:
        yield session
    finally:
        session.stop()


@contextmanager
def spark() -> Iterator[Any]:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.remote("local[2]").config("spark.jars", ",".join(jar_paths()))
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()


SERVERS = {"spark": spark, "sail": sail}
