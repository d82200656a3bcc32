"""A refresh with nothing to do, over many views (VIEWS, default 100), inside a process."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

from bench import results
from strandline import Warehouse


def run() -> None:
    views = int(os.environ.get("VIEWS", 100))
    with tempfile.TemporaryDirectory(prefix="strandline-bench-") as folder:
        write_deltalake(Path(folder) / "lake" / "t", pa.table({"a": [1, 2, 3]}))
        project = Path(folder) / "project"
        with Warehouse.open(project) as warehouse:
            warehouse.add_source("lake", kind="delta", path=str(Path(folder) / "lake"))
            for number in range(views):
                text = f"CREATE MATERIALIZED VIEW v{number} AS SELECT a + {number} AS a FROM lake.t;"
                (project / "views" / f"v{number}.sql").write_text(text)
            warehouse.refresh()
        with Warehouse.open(project) as warehouse:
            times = []
            for _ in range(5):
                began = time.perf_counter()
                report = warehouse.refresh()
                times.append(time.perf_counter() - began)
            assert {view.strategy for view in report.views.values()} == {"none"}
            print(f"no-op refresh of {views} views: median {statistics.median(times):.2f} s, no Spark started")
    print(f"written to {results.write('noop', {'views': views, 'seconds': times})}")
