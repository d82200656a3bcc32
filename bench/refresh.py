"""A refresh from changes beside a full recompute of the same views, in one session, taking turns.

Sizes come from the environment: ROWS (line items, default 400,000), DELTA (percent, default 0.1), REPEATS (default 3).
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from rich.console import Console
from rich.table import Table

from bench import results
from strandline import Warehouse

VIEWS = {
    "per_part": "SELECT part, count(*) AS n, sum(qty * price) AS revenue FROM lake.items GROUP BY part",
    "per_region": "SELECT o.region, count(*) AS n, avg(i.price) AS price FROM lake.orders o "
    "JOIN lake.items i ON i.o_id = o.o_id GROUP BY o.region",
    "large": "SELECT o.o_id, o.region, i.part, i.qty FROM lake.orders o JOIN lake.items i ON i.o_id = o.o_id "
    "WHERE i.qty > 45",
}


def run() -> None:
    rows = int(os.environ.get("ROWS", 400_000))
    percent = float(os.environ.get("DELTA", 0.1))
    repeats = int(os.environ.get("REPEATS", 3))
    with tempfile.TemporaryDirectory(prefix="strandline-bench-") as folder:
        measured = _measure(Path(folder), rows, percent, repeats)
    table = Table(title=f"{rows:,} rows, {percent} % out and in, median of {repeats}, seconds")
    for column in ("view", "refresh", "recompute", "ratio"):
        table.add_column(column, justify="left" if column == "view" else "right")
    found = {}
    for name, (incremental, full) in measured.items():
        a, b = statistics.median(incremental), statistics.median(full)
        found[name] = {"refresh": incremental, "recompute": full, "ratio": round(b / a, 2)}
        table.add_row(name, f"{a:.2f}", f"{b:.2f}", f"{b / a:.1f}x")
    Console().print(table)
    print(f"written to {results.write('refresh', {'rows': rows, 'percent': percent, 'views': found})}")


def _items(first: int, count: int) -> pa.Table:
    rng = np.random.default_rng(first)
    return pa.table(
        {
            "o_id": pa.array(np.arange(first, first + count) // 4, pa.int64()),
            "part": pa.array(rng.integers(0, 2000, count), pa.int64()),
            "qty": pa.array(rng.integers(1, 51, count), pa.int32()),
            "price": pa.array(rng.integers(100, 9999, count), pa.int64()),
        }
    )


def _measure(folder: Path, rows: int, percent: float, repeats: int) -> dict[str, tuple[list[float], list[float]]]:
    feed = {"delta.enableChangeDataFeed": "true"}
    orders = rows // 4 + 1_000_000
    write_deltalake(
        folder / "lake" / "orders",
        pa.table({"o_id": pa.array(range(orders), pa.int64()), "region": [f"r{i % 25}" for i in range(orders)]}),
    )
    write_deltalake(folder / "lake" / "items", _items(0, rows), configuration=feed)
    changed = max(1, int(rows * percent / 100))
    times: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in VIEWS}
    with Warehouse.open(folder / "project") as warehouse:
        warehouse.add_source("lake", kind="delta", path=str(folder / "lake"))
        for name, query in VIEWS.items():
            warehouse.sql(f"CREATE MATERIALIZED VIEW {name} REFRESH POLICY INCREMENTAL AS {query}")
        for repeat in range(repeats):
            first = repeat * changed
            DeltaTable(folder / "lake" / "items").delete(f"o_id >= {first // 4} AND o_id < {(first + changed) // 4}")
            write_deltalake(folder / "lake" / "items", _items(rows + first, changed), mode="append")
            for name in VIEWS:
                began = time.perf_counter()
                warehouse.refresh(name)
                times[name][0].append(time.perf_counter() - began)
                began = time.perf_counter()
                warehouse.refresh(name, full=True)
                times[name][1].append(time.perf_counter() - began)
        wrong = [name for name in VIEWS if not warehouse.verify(name).ok]
        print("every view equals its recomputation" if not wrong else f"WRONG: {', '.join(wrong)}")
    return times
