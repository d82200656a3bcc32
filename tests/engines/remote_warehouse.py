"""A warehouse through Spark Connect, in a process of its own: ``remote_warehouse.py spark|sail FOLDER``.

Prints what it saw as one line of JSON.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from strandline import Warehouse
from strandline.engine.jars import jar_paths
from tests.warehouse.shop import VIEWS, Shop, assert_verified, create_views

SOME_VIEWS = {
    "big_orders": VIEWS["big_orders"],
    "by_product": VIEWS["by_product"],
    "firsts": "SELECT c_id, min(day) AS first_day, avg(total) AS mean FROM shop.orders GROUP BY c_id",
    "overall": "SELECT count(*) AS n, sum(total) AS total FROM big_orders",
    "everybody": "SELECT c.name, o.total FROM shop.customers c LEFT JOIN shop.orders o ON o.c_id = c.c_id",
}


@contextlib.contextmanager
def sail() -> Iterator[Any]:
    from pysail.spark import SparkConnectServer
    from pyspark.sql import SparkSession

    server = SparkConnectServer(port=0)
    server.start(background=True)
    try:
        yield SparkSession.builder.remote(f"sc://localhost:{server.listening_address[1]}").getOrCreate()
    finally:
        server.stop()


@contextlib.contextmanager
def spark() -> Iterator[Any]:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.remote("local[2]").config("spark.jars", ",".join(jar_paths()))
    for name, value in {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "3",
        "spark.driver.memory": "2g",
    }.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()


def main(server: str, folder: Path) -> dict[str, Any]:
    shop = Shop(folder / "lakes")
    shop.create()
    with (spark if server == "spark" else sail)() as session:
        before = session.conf.get("spark.sql.shuffle.partitions", None) if server == "spark" else None
        with Warehouse.open(folder / "project", spark=session) as warehouse:
            shop.declare(warehouse)
            create_views(warehouse, SOME_VIEWS)
            strategies = set()
            for change in (shop.place_orders, shop.cancel, shop.reprice):
                change()
                report = warehouse.refresh()
                assert report.ok, {name: view.problem for name, view in report.views.items()}
                strategies |= {view.strategy for view in report.views.values()}
            strategies |= {view.strategy for view in warehouse.refresh().views.values()}
            assert_verified(warehouse)
            recovered = undo_foreign_write(warehouse, shop)
            engine = warehouse._engine.capabilities.engine
        kept = before == session.conf.get("spark.sql.shuffle.partitions", None) if server == "spark" else True
    return {
        "engine": engine,
        "verified": True,
        "recovered": recovered,
        "strategies": sorted(strategies),
        "settings_kept": kept,
    }


def undo_foreign_write(warehouse: Warehouse, shop: Shop) -> bool:
    """A commit that no step of ours made is undone before the next step."""
    node = warehouse._node("by_product")
    warehouse._engine.run(f"DELETE FROM delta.`{node.path}` WHERE product = 'p1'")
    shop.place_orders()
    assert warehouse.refresh().ok
    assert_verified(warehouse)
    return True


if __name__ == "__main__":
    status = 1
    try:
        print(json.dumps(main(sys.argv[1], Path(sys.argv[2]))), flush=True)
        status = 0
    except Exception:
        traceback.print_exc()
    finally:
        # A Connect client waits long for a server that has stopped.
        os._exit(status)
