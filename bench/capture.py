"""A steady load on PostgreSQL, followed by refreshes one after the other: does the warehouse keep up?

RATE row changes a second (default 1,000) for SECONDS (default 120). Printed for each refresh: what it captured, how
much was waiting when it began, and the memory of this process and of Spark's.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import psycopg
from rich.console import Console
from rich.table import Table

from bench import results
from strandline import Warehouse
from strandline.demo.server import SUPERUSER, PostgresServer

ROWS = 100_000
AT_ONCE = 50
"""Row changes in one transaction of the load."""


def run() -> None:
    rate, seconds = int(os.environ.get("RATE", 1_000)), float(os.environ.get("SECONDS", 120))
    with (
        tempfile.TemporaryDirectory(prefix="strandline-bench-") as folder,
        PostgresServer.start(Path(folder) / "postgres") as server,
    ):
        os.environ["BENCH_DSN"] = dsn = server.dsn_for(SUPERUSER, server.password)
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("CREATE TABLE items (id int PRIMARY KEY, grp int, amount numeric(12,2), note text)")
            connection.execute(
                "INSERT INTO items SELECT n, n %% 500, n %% 97, repeat('x', 40) FROM generate_series(1, %s) AS n",
                (ROWS,),
            )
        with Warehouse.open(Path(folder) / "project") as warehouse:
            warehouse.add_source("src", kind="postgres", dsn_env="BENCH_DSN", tables=["items"])
            warehouse.sql(
                "CREATE MATERIALIZED VIEW groups AS SELECT grp, count(*) n, sum(amount) s FROM src.items GROUP BY grp"
            )
            command = [sys.executable, "-m", "bench.capture", str(rate), str(seconds)]
            load = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            rounds = _follow(warehouse, dsn, load)
            written = int(load.communicate()[0])
            last = warehouse.refresh()
            captured = sum(r["captured"] for r in rounds) + _rows(last)
            right = warehouse.verify("groups").ok and warehouse.verify_source("src.items").ok
    _print(rounds, rate)
    print(f"written {written:,}, captured {captured:,}; the view is {'right' if right else 'WRONG'}")
    found = {
        "rate": rate,
        "seconds": seconds,
        "written": written,
        "captured": captured,
        "right": right,
        "rounds": rounds,
    }
    print(f"written to {results.write('capture', found)}")


def _follow(warehouse: Warehouse, dsn: str, load: subprocess.Popen[str]) -> list[dict[str, float]]:
    rounds = []
    while not _waiting(warehouse):
        time.sleep(0.1)
    began = time.monotonic()
    while load.poll() is None:
        start = time.monotonic()
        waiting = _waiting(warehouse)
        report = warehouse.refresh()
        rounds.append(
            {
                "at": start - began,
                "seconds": time.monotonic() - start,
                "waiting": waiting,
                "captured": _rows(report),
                "python_mb": psutil.Process().memory_info().rss / 1e6,
                "spark_mb": sum(p.memory_info().rss for p in psutil.Process().children() if p.name() == "java") / 1e6,
            }
        )
    return rounds


def _waiting(warehouse: Warehouse) -> int:
    plan = warehouse.plan()
    return next((node.estimated_rows or 0 for node in plan.nodes if node.name == "src.items"), 0)


def _rows(report: object) -> int:
    captured = getattr(report, "captured", {})
    return sum(n for source in captured.values() for counts in source.rows.values() for n in counts.values())


def _print(rounds: list[dict[str, float]], rate: int) -> None:
    table = Table(title=f"{rate:,} row changes a second")
    for column in ("at", "refresh s", "waiting before", "captured", "python MB", "spark MB"):
        table.add_column(column, justify="right")
    for r in rounds:
        table.add_row(
            f"{r['at']:.0f}",
            f"{r['seconds']:.1f}",
            f"{r['waiting']:,}",
            f"{r['captured']:,}",
            f"{r['python_mb']:.0f}",
            f"{r['spark_mb']:.0f}",
        )
    Console().print(table)


def write(rate: int, seconds: float) -> int:
    """The load: updates, inserts and deletes in transactions; how many rows were changed."""
    chance = random.Random(1)
    fresh, changed, began = ROWS, 0, time.monotonic()
    live = list(range(1, ROWS + 1))
    with psycopg.connect(os.environ["BENCH_DSN"]) as connection:
        while (now := time.monotonic() - began) < seconds:
            if changed > now * rate:
                time.sleep(0.005)
                continue
            for _ in range(AT_ONCE):
                kind = chance.random()
                place = chance.randrange(len(live))
                if kind < 0.2:
                    fresh += 1
                    live.append(fresh)
                    connection.execute("INSERT INTO items VALUES (%s, %s, 1, 'new')", (fresh, fresh % 500))
                elif kind < 0.4:
                    live[place], live[-1] = live[-1], live[place]
                    connection.execute("DELETE FROM items WHERE id = %s", (live.pop(),))
                else:
                    connection.execute("UPDATE items SET amount = amount + 1 WHERE id = %s", (live[place],))
                changed += 1
            connection.commit()
    return changed


if __name__ == "__main__":
    print(write(int(sys.argv[1]), float(sys.argv[2])))
