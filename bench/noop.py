"""A refresh with nothing to do, over many views (VIEWS, default 100), inside a process; then one of them has changes.

Of the second, what is not the work of that view's own steps counts.
"""

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
from strandline.propagate.progress import Event


def run() -> None:
    views = int(os.environ.get("VIEWS", 100))
    with tempfile.TemporaryDirectory(prefix="strandline-bench-") as folder:
        for table in ("t", "u"):
            write_deltalake(Path(folder) / "lake" / table, pa.table({"a": [1, 2, 3]}))
        project = Path(folder) / "project"
        with Warehouse.open(project) as warehouse:
            warehouse.add_source("lake", kind="delta", path=str(Path(folder) / "lake"))
            for number in range(views):
                table = "t" if number else "u"
                text = f"CREATE MATERIALIZED VIEW v{number} AS SELECT a + {number} AS a FROM lake.{table};"
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
            beside = [_one_changed(warehouse, Path(folder) / "lake" / "u") for _ in range(6)][1:]
            print(f"one of {views} views changed: {statistics.median(beside):.2f} s beside its steps (median)")
    found = {"views": views, "seconds": times, "one_changed_beside_its_steps": beside}
    print(f"written to {results.write('noop', found)}")


def _one_changed(warehouse: Warehouse, table: Path) -> float:
    """Seconds that a refresh takes beside the steps of the one view that has changes."""
    write_deltalake(table, pa.table({"a": [4]}), mode="append")
    steps = 0.0

    def watch(event: Event) -> None:
        nonlocal steps
        if event.what == "done" and event.step != "publish":
            steps += event.seconds

    began = time.perf_counter()
    report = warehouse.refresh(watcher=watch)
    seconds = time.perf_counter() - began
    assert report.ok and [name for name, view in report.views.items() if view.strategy != "none"] == ["v0"]
    return seconds - steps
