"""An archive of Spark's classes for the Java processes that tests start: they find them parsed and verified.

``python -m tests.classes`` makes it, once for a virtual environment; without it tests run all the same, more slowly.
"""

from __future__ import annotations

import sys
from pathlib import Path

import psutil

ARCHIVE = Path(sys.prefix) / "spark-classes.jsa"

SILENT = "-Xlog:cds=off -Xlog:cds+dynamic=off"


def options() -> str:
    """What makes Java use the archive. One that was made for another Java or Spark is passed over in silence."""
    return f"-XX:SharedArchiveFile={ARCHIVE} -Xshare:auto {SILENT}" if ARCHIVE.exists() else ""


def make() -> None:
    """Let a session do what sessions in tests do, and keep the classes that it has loaded when its Java ends."""
    ARCHIVE.unlink(missing_ok=True)
    from pyspark import SparkContext

    from strandline.engine.session import Engine
    from tests.conftest import LITTLE_DATA

    made = ARCHIVE.with_suffix(".new")
    java_options = f"{LITTLE_DATA['spark.driver.extraJavaOptions']} -XX:ArchiveClassesAtExit={made} {SILENT}"
    engine = Engine(settings={**LITTLE_DATA, "spark.driver.extraJavaOptions": java_options})
    with engine.step("classes", "archive", small=True):
        joined = "SELECT a.id % 3 AS k, sum(b.id) AS s FROM range(9) AS a LEFT JOIN range(9) AS b ON a.id = b.id"
        engine.rows(f"SELECT k, s, rank() OVER (ORDER BY s) FROM ({joined} GROUP BY a.id % 3) ORDER BY s")
    (java,) = [process for process in psutil.Process().children(recursive=True) if process.name() == "java"]
    gateway = SparkContext._gateway
    engine.close()
    assert gateway is not None
    gateway.shutdown()
    gateway.proc.stdin.close()
    java.wait(300)
    made.rename(ARCHIVE)


if __name__ == "__main__":
    make()
