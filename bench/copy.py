"""The first copy of a large PostgreSQL table (ROWS, default 10,000,000), beside the floor: reading it once with COPY.

Printed: seconds, and the most memory that this process and Spark's took.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from pathlib import Path

import psutil
import psycopg

from bench import results
from strandline import Warehouse
from strandline.demo.server import SUPERUSER, PostgresServer


def run() -> None:
    rows = int(os.environ.get("ROWS", 10_000_000))
    with (
        tempfile.TemporaryDirectory(prefix="strandline-bench-") as folder,
        PostgresServer.start(Path(folder) / "postgres") as server,
    ):
        os.environ["BENCH_DSN"] = dsn = server.dsn_for(SUPERUSER, server.password)
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("CREATE TABLE items (id int PRIMARY KEY, grp int, amount numeric(12,2), note text)")
            connection.execute(
                "INSERT INTO items SELECT n, n %% 500, n %% 97, 'note ' || n FROM generate_series(1, %s) AS n", (rows,)
            )
            floor = _floor(connection)
        with Warehouse.open(Path(folder) / "project") as warehouse, _Watched() as watched:
            warehouse.add_source("src", kind="postgres", dsn_env="BENCH_DSN", tables=["items"])
            began = time.monotonic()
            warehouse.sql(
                "CREATE MATERIALIZED VIEW groups AS SELECT grp, count(*) n, sum(amount) s, max(note) m, min(id) i "
                "FROM src.items GROUP BY grp"
            )
            seconds = time.monotonic() - began
            loads = [h.step.seconds for h in warehouse.history("src.items") if h.step.kind == "load"]
    copy = loads[0] or 0.0
    found = {"rows": rows, "copy": copy, "create": seconds, "floor": floor, **watched.most}
    print(
        f"{rows:,} rows: copied in {copy:.1f} s ({rows / copy:,.0f} rows/s), view there after {seconds:.1f} s; "
        f"COPY alone {floor:.1f} s, ratio {copy / floor:.1f}; at most {watched.most['python_mb']:.0f} MB in Python, "
        f"{watched.most['spark_mb']:.0f} MB in Spark"
    )
    print(f"written to {results.write('copy', found)}")


def _floor(connection: psycopg.Connection) -> float:
    began = time.monotonic()
    with connection.cursor() as cursor, cursor.copy("COPY items TO STDOUT") as copy:
        for _ in copy:
            pass
    return time.monotonic() - began


class _Watched:
    """Looks at the memory of this process and of Spark's while the context lasts."""

    def __init__(self) -> None:
        self.most = {"python_mb": 0.0, "spark_mb": 0.0}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> _Watched:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        own = psutil.Process()
        while not self._stop.wait(0.2):
            java = sum(p.memory_info().rss for p in own.children() if p.name() == "java") / 1e6
            self.most["spark_mb"] = max(self.most["spark_mb"], java)
            self.most["python_mb"] = max(self.most["python_mb"], own.memory_info().rss / 1e6)
