"""A refresh with nothing to do, over many views (VIEWS, default 100); then one of them has changes.

The first is measured inside a process, and as users meet it: the whole process ``strandline refresh``, below which none
may run, so no Java either. Of the second, what is not the work of that view's own steps counts.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pyarrow as pa
from deltalake import write_deltalake

from bench import results
from strandline import Warehouse
from strandline.propagate.progress import Event

TARGET = 1.0
"""Seconds that a refresh with nothing to do may take."""

TRIES = 5


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
        as_processes = [_as_process(project) for _ in range(TRIES)]
        told = f"no-op refresh of {views} views: median"
        print(f"{told} {statistics.median(as_processes):.2f} s as a process, with no Java and no other one below it")
        with Warehouse.open(project) as warehouse:
            inside = [_inside(warehouse) for _ in range(TRIES)]
            # The Java of this process filled the views; this warehouse has not turned to it.
            assert not warehouse._engine.started
            print(f"{told} {statistics.median(inside):.2f} s inside a process, with no Spark job")
            beside = [_one_changed(warehouse, Path(folder) / "lake" / "u") for _ in range(6)][1:]
            print(f"one of {views} views changed: {statistics.median(beside):.2f} s beside its steps (median)")
    found = {"views": views, "process": as_processes, "inside": inside, "one_changed_beside_its_steps": beside}
    print(f"written to {results.write('noop', found)}")
    print(_verdict(views, statistics.median(as_processes), statistics.median(inside)), flush=True)


def _verdict(views: int, process: float, inside: float) -> str:
    met = "met" if process < TARGET else f"MISSED by {process - TARGET:.2f} s"
    return (
        f"verdict: nothing to do over {views} views takes {process:.2f} s as a process, {inside:.2f} s inside one; "
        f"no Java, no Spark job; target for the process, under {TARGET:g} s: {met}"
    )


def _as_process(project: Path) -> float:
    """Seconds of ``strandline refresh`` in a process of its own, watched for any that it starts."""
    below: set[psutil.Process] = set()
    with tempfile.TemporaryFile("w+") as told:
        began = time.perf_counter()
        command = [sys.executable, "-m", "strandline", "refresh", "--json"]
        with subprocess.Popen(command, cwd=project, stdout=told) as process:
            looked_at = psutil.Process(process.pid)
            while process.poll() is None:
                below.update(looked_at.children(recursive=True))
                time.sleep(0.02)
        seconds = time.perf_counter() - began
        told.seek(0)
        report = json.load(told)
    assert process.returncode == 0 and not below, (process.returncode, below)
    assert {view["strategy"] for view in report["views"].values()} == {"none"}
    return seconds


def _inside(warehouse: Warehouse) -> float:
    """Seconds of a refresh in this process."""
    began = time.perf_counter()
    report = warehouse.refresh()
    seconds = time.perf_counter() - began
    assert {view.strategy for view in report.views.values()} == {"none"}
    return seconds


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
