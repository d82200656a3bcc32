"""Views over two PostgreSQL databases and a Delta table that nobody copies, while all three are written to.

A process refreshes without pause and is killed with SIGKILL now and then. Afterwards every state that it published is
compared with the join of what the sources held at the positions that the state claims.

``python -m tests.campaign.asked [KILLS] [SEED] [ALGORITHM]``
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from strandline import Warehouse
from strandline.demo.server import SUPERUSER, PostgresServer
from strandline.engine.session import Engine
from strandline.ingest.uncopied import UncopiedSource
from strandline.propagate.report import RefreshReport
from tests.conftest import bag, new_project, rows_shown

Row = tuple[Any, ...]

JOINED = """
SELECT o.id, o.amount, c.name, c.region, p.title
FROM sales.orders o JOIN crm.customers c ON o.customer = c.id JOIN lake.products p ON o.product = p.id
"""
TOTALS = "SELECT region, title, sum(amount) AS total, count(*) AS n FROM joined GROUP BY region, title"
PRODUCTS = pa.schema([("id", pa.int32()), ("title", pa.string())])
CUSTOMERS = 40
TITLES = 8


@dataclass
class Writer:
    """One who writes rows of its own to a table, and remembers what each transaction did."""

    dsn: str
    table: str
    ids: range
    make: Callable[[random.Random, int], Row]
    random: random.Random
    pause: float
    done: list[tuple[str, dict[int, Row | None]]] = field(default_factory=list)

    def run(self, stopped: threading.Event) -> None:
        with psycopg.connect(self.dsn) as connection:
            while not stopped.is_set():
                self.write(connection)
                time.sleep(self.pause * self.random.random())

    def write(self, connection: psycopg.Connection[Any]) -> None:
        """One transaction of a few inserts, updates and deletes; some are rolled back."""
        now = self.rows(len(self.done))
        changed: dict[int, Row | None] = {}
        for _ in range(self.random.choice((1, 1, 2, 5))):
            id_ = self.random.choice(self.ids)
            there = changed.get(id_, now.get(id_)) is not None
            if there and self.random.random() < 0.4:
                connection.execute(f"DELETE FROM {self.table} WHERE id = %s".encode(), (id_,))
                changed[id_] = None
                continue
            row = self.make(self.random, id_)
            marks = ", ".join(["%s"] * len(row))
            if there:
                connection.execute(f"DELETE FROM {self.table} WHERE id = %s".encode(), (id_,))
            connection.execute(f"INSERT INTO {self.table} VALUES ({marks})".encode(), row)
            changed[id_] = row
        xid = connection.execute("SELECT pg_current_xact_id()::text").fetchone()
        assert xid is not None
        if self.random.random() < 0.05:
            connection.rollback()
            return
        connection.commit()
        self.done.append((xid[0], changed))

    def rows(self, count: int) -> dict[int, Row]:
        """The rows after so many transactions."""
        found: dict[int, Row] = {}
        for _, changed in self.done[:count]:
            for id_, row in changed.items():
                found.pop(id_, None)
                if row is not None:
                    found[id_] = row
        return found


@dataclass
class Lake:
    """One who writes to a Delta table, and remembers each version."""

    path: str
    random: random.Random
    versions: dict[int, list[Row]] = field(default_factory=dict)

    def write(self) -> None:
        rows = self.versions[max(self.versions)] if self.versions else []
        if rows and self.random.random() < 0.5:
            gone = self.random.choice(rows)
            DeltaTable(self.path).delete(f"id = {gone[0]}")
            rows = [row for row in rows if row[0] != gone[0]]
        else:
            row = (self.random.randrange(TITLES), f"title {self.random.randrange(3)}")
            write_deltalake(self.path, pa.table([[row[0]], [row[1]]], schema=PRODUCTS), mode="append")
            rows = [*rows, row]
        self.versions[DeltaTable(self.path).version()] = rows

    def run(self, stopped: threading.Event) -> None:
        while not stopped.wait(self.random.random() * 2):
            self.write()


class Sources:
    """The three sources and their writers."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.server = PostgresServer.start(folder / "postgres")
        self.dsns: dict[str, str] = {}
        for name in ("sales", "crm"):
            with psycopg.connect(self.server.dsn_for(SUPERUSER, self.server.password), autocommit=True) as connection:
                connection.execute(f"CREATE DATABASE {name}".encode())
            self.dsns[name] = self.server.dsn_for(SUPERUSER, self.server.password, name)
        self._create("sales", "orders", "id int PRIMARY KEY, customer int, product int, amount numeric(12,2)")
        self._create("crm", "customers", "id int PRIMARY KEY, name text, region text")
        rng = random.Random(seed)

        def made(
            ids: range, source: str, table: str, make: Callable[[random.Random, int], Row], pause: float
        ) -> Writer:
            return Writer(self.dsns[source], table, ids, make, random.Random(rng.random()), pause)

        self.orders = [made(range(n, 400, 2), "sales", "orders", _order, 0.05) for n in range(2)]
        self.customers = [made(range(n, CUSTOMERS, 2), "crm", "customers", _customer, 0.2) for n in range(2)]
        self.lake = Lake(str(folder / "lake" / "products"), random.Random(rng.random()))
        for _ in range(6):
            self.lake.write()
        for writer in (*self.orders, *self.customers):
            with psycopg.connect(writer.dsn) as connection:
                for _ in range(30):
                    writer.write(connection)

    def _create(self, source: str, table: str, columns: str) -> None:
        with psycopg.connect(self.dsns[source], autocommit=True) as connection:
            connection.execute(f"CREATE TABLE {table} ({columns})".encode())
            connection.execute(f"ALTER TABLE {table} REPLICA IDENTITY FULL".encode())

    @contextmanager
    def written_to(self) -> Iterator[None]:
        """Within, all writers write."""
        stopped = threading.Event()
        threads = [
            threading.Thread(target=run, args=(stopped,), daemon=True)
            for run in (*(writer.run for writer in (*self.orders, *self.customers)), self.lake.run)
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            stopped.set()
            for thread in threads:
                thread.join()

    def transactions(self) -> int:
        return sum(len(writer.done) for writer in (*self.orders, *self.customers))

    def expected(self, shown: Mapping[str, list[int]], version: int) -> list[Row]:
        """The join after the first transactions of each writer, as many as *shown* has, and at a version."""
        orders = _merged(self.orders, shown["sales.orders"])
        customers = _merged(self.customers, shown["crm.customers"])
        found = []
        for id_, customer, product, amount in orders.values():
            for other, title in self.lake.versions[version]:
                if customer in customers and other == product:
                    found.append((id_, amount, *customers[customer][1:], title))
        return found


def _merged(writers: list[Writer], counts: list[int]) -> dict[int, Row]:
    found: dict[int, Row] = {}
    for writer, count in zip(writers, counts, strict=True):
        found |= writer.rows(count)
    return found


def _order(rng: random.Random, id_: int) -> Row:
    return id_, rng.randrange(CUSTOMERS), rng.randrange(TITLES), Decimal(rng.randrange(100_000)) / 100


def _customer(rng: random.Random, id_: int) -> Row:
    return id_, f"name {rng.randrange(1000)}", rng.choice(("north", "south", None))


class Campaign:
    """A warehouse over the sources, and the processes that refresh it."""

    def __init__(self, folder: Path, engine: Engine, seed: int, algorithm: str = "auto") -> None:
        self.folder = folder
        self.engine = engine
        self.random = random.Random(seed)
        self.sources = Sources(folder, seed)
        self.reports: list[dict[str, Any]] = []
        for name, dsn in self.sources.dsns.items():
            os.environ[f"ASKED_{name.upper()}"] = dsn
        new_project(folder / "project")
        with self.sources.written_to(), self.open() as warehouse:
            for name in self.sources.dsns:
                warehouse.add_source(name, kind="postgres", dsn_env=f"ASKED_{name.upper()}", copies=False)
            warehouse.add_source("lake", kind="delta", path=str(folder / "lake"))
            properties = f"TBLPROPERTIES ('strandline.algorithm' = '{algorithm}')" if algorithm != "auto" else ""
            warehouse.sql(f"CREATE MATERIALIZED VIEW joined {properties} AS {JOINED}")
            warehouse.sql(f"CREATE MATERIALIZED VIEW totals AS {TOTALS}")

    def open(self) -> Warehouse:
        return Warehouse.open(self.folder / "project", spark=self.engine.spark)

    def close(self) -> None:
        """Stop the server."""
        self.sources.server.stop()

    def refresh_for(self, states: int, *, kill: bool) -> None:
        """Let a process refresh until it has published so many states, then end it in the middle of what it does."""
        command = [sys.executable, "-m", "tests.campaign.asked", "--refresh", str(self.folder / "project")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            for line in child.stdout:
                self.reports.append(json.loads(line))
                assert self.reports[-1]["ok"], self.reports[-1]
                states -= 1
                if not states:
                    break
            else:
                raise AssertionError("the refreshing process ended by itself")
            if kill:
                time.sleep(self.random.random() * 3)
                child.kill()
            else:
                child.terminate()

    def refresh_here(self, states: int) -> None:
        """Refresh in this process, so many times."""
        with self.open() as warehouse:
            for _ in range(states):
                self.reports.append(told(warehouse.refresh()))
                assert self.reports[-1]["ok"], self.reports[-1]

    def check(self) -> int:
        """Compare every published state with what the sources held at its positions; how many there are."""
        with self.open() as warehouse:
            states = [state for state in warehouse.states() if "totals" in state.entries]
            before: dict[str, list[int]] | None = None
            for state in sorted(states, key=lambda state: state.number):
                entry = state.entries["joined"]
                shown = {
                    "sales.orders": self._shown(warehouse, "sales.orders", self.sources.orders, entry.positions),
                    "crm.customers": self._shown(warehouse, "crm.customers", self.sources.customers, entry.positions),
                }
                version: Any = entry.positions["lake.products"]
                expected = self.sources.expected(shown, version["version"] if isinstance(version, dict) else version)
                found = rows_shown(warehouse, "joined", state.number)
                assert bag(found) == bag(expected), f"state {state.number}"
                totals = rows_shown(warehouse, "totals", state.number)
                assert bag(totals) == bag(_totals(expected)), f"totals in state {state.number}"
                assert before is None or all(
                    a <= b for leaf in shown for a, b in zip(before[leaf], shown[leaf], strict=True)
                )
                before = shown
            return len(states)

    def _shown(self, warehouse: Warehouse, leaf: str, writers: list[Writer], positions: Mapping[str, Any]) -> list[int]:
        """How many transactions of each writer a state shows of a table: the first ones, and no others."""
        position, source = positions[leaf], warehouse._sources[leaf.split(".", 1)[0]]
        assert isinstance(source, UncopiedSource)
        places = {t.txid: t.place for t in warehouse._catalog.unit_of_work.since(leaf)}
        seen = position.get("seen")
        counts = []
        for writer in writers:
            there = [
                (places.get(xid) or sys.maxsize) < position["place"]
                or (seen is not None and source.inner.sees(seen, xid))
                for xid, _ in writer.done
            ]
            # What was there when the view was first filled is in no log.
            first = next((n for n, (xid, _) in enumerate(writer.done) if xid in places), len(there))
            there[:first] = [True] * first if seen is None else there[:first]
            counts.append(there.index(False) if False in there else len(there))
            assert not any(there[counts[-1] :]), f"{leaf} shows a transaction and not one before it"
        return counts


def _totals(rows: list[Row]) -> list[Row]:
    found: dict[tuple[Any, Any], list[Decimal]] = {}
    for _, amount, _, region, title in rows:
        found.setdefault((region, title), []).append(amount)
    return [(region, title, sum(amounts), len(amounts)) for (region, title), amounts in found.items()]


def refresh_forever(project: str) -> None:
    """Refresh without pause, and print a line for each state."""
    with Warehouse.open(project) as warehouse:
        while True:
            print(json.dumps(told(warehouse.refresh())), flush=True)


def told(report: RefreshReport) -> dict[str, Any]:
    """What a refresh did, and when it was done."""
    views = report.to_dict()["views"]
    return {"at": time.time(), "seconds": report.seconds, "ok": report.ok, "asked": dict(report.asked), "views": views}


def main(kills: int, seed: int, algorithm: str) -> None:
    engine = Engine(settings={"spark.driver.memory": "2g"})
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="strandline-asked-") as folder:
        campaign = Campaign(Path(folder), engine, seed, algorithm)
        with campaign.sources.written_to():
            for number in range(kills):
                campaign.refresh_for(campaign.random.randrange(1, 5), kill=True)
                print(f"{number + 1}/{kills} {time.monotonic() - began:6.0f} s", flush=True)
            campaign.refresh_for(4, kill=False)
        gaps = [b["at"] - a["at"] for a, b in zip(campaign.reports, campaign.reports[1:], strict=False)]
        asked = [told for report in campaign.reports for told in report["asked"].values()]
        states = campaign.check()
        print(
            f"{kills} kills, {campaign.sources.transactions():,} transactions, {states} states as their positions say; "
            f"a state after {sorted(gaps)[len(gaps) // 2]:.1f} s (the longest, with a kill and a new start, "
            f"{max(gaps):.1f} s); {sum(t['fetched_rows'] for t in asked):,} rows fetched in "
            f"{sum(t['queries'] for t in asked):,} queries"
        )
        campaign.close()
    engine.close()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--refresh"]:
        refresh_forever(sys.argv[2])
    else:
        given = dict(enumerate(sys.argv[1:]))
        main(int(given.get(0, 10)), int(given.get(1, 1)), given.get(2, "auto"))
