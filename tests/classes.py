"""An archive of Spark's classes for the Java processes that tests start: they find them parsed and verified.

``python -m tests.classes`` makes it, once for a virtual environment; before it is there tests run all the same, more
slowly.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from unittest import mock

import psutil

if TYPE_CHECKING:
    from strandline.engine.session import Engine

ARCHIVE = Path(sys.prefix) / "spark-classes.jsa"

SILENT = "-Xlog:cds=off -Xlog:cds+dynamic=off"


def options() -> str:
    """What makes Java use the archive. One that is not there or does not fit is passed over in silence."""
    return f"-XX:SharedArchiveFile={ARCHIVE} -Xshare:auto {SILENT}"


def make() -> None:
    """Let a session do what sessions in tests do, and keep the classes that it has loaded when its Java ends."""
    ARCHIVE.unlink(missing_ok=True)
    from pyspark import SparkContext

    from strandline.engine.session import Engine
    from tests.conftest import LITTLE_DATA

    made = ARCHIVE.with_suffix(".new")
    usual = LITTLE_DATA["spark.driver.extraJavaOptions"].replace(options(), "")
    java_options = f"{usual} -XX:ArchiveClassesAtExit={made} {SILENT}"
    engine = Engine(settings={**LITTLE_DATA, "spark.driver.extraJavaOptions": java_options})
    with TemporaryDirectory() as folder:
        _use(engine, Path(folder))
    (java,) = [process for process in psutil.Process().children(recursive=True) if process.name() == "java"]
    gateway = SparkContext._gateway
    engine.close()
    assert gateway is not None
    gateway.shutdown()
    gateway.proc.stdin.close()
    java.wait(300)
    made.rename(ARCHIVE)


def _use(engine: Engine, folder: Path) -> None:
    """A view over a small shop: filled, and changed by a delta that Delta merges."""
    from strandline import Warehouse
    from tests.warehouse.shop import VIEWS, Shop, create_views

    shop = Shop(folder / "lakes")
    shop.create()
    none_is_tiny = mock.patch.multiple("strandline.store.install", TINY_ROWS=0, TINY_BYTES=0)
    none_is_replaced = mock.patch.multiple("strandline.store.replacing", MOST_BYTES=0)
    none_is_marked = mock.patch.multiple("strandline.store.marking", MOST_ROWS=0)
    with (
        none_is_tiny,
        none_is_replaced,
        none_is_marked,
        Warehouse.open(folder / "project", spark=engine.spark) as warehouse,
    ):
        shop.declare(warehouse)
        create_views(warehouse, {"big_orders": VIEWS["big_orders"]})
        shop.place_orders()
        shop.cancel()
        assert warehouse.refresh().ok


if __name__ == "__main__":
    make()
