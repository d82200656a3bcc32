"""The comparisons of WHIPS (Labio's thesis, chapter 7) on Delta: duplicates, deletions, aggregates, protected updates.

Every time is that of steps of a real refresh, or of one install, of tables treated as large: nothing is overwritten or
interpreted because it is small. Beside each number stands what the thesis found on a row store of 1999.

Sizes come from the environment: ROWS (line items, default 600,000), RATES (percent, default 1,5,10), COPIES (default
1,3), PARTS (duplicates, deletions, aggregates, updates; default all). What is written is named for its parts.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from rich.console import Console
from rich.table import Table

from bench import results
from strandline import Warehouse
from strandline.store import install as installing
from strandline.store.deltas import write_delta
from strandline.store.tables import make_ready

Found = dict[str, dict[str, float]]


def run() -> None:
    rows = int(os.environ.get("ROWS", 600_000))
    rates = [int(rate) for rate in os.environ.get("RATES", "1,5,10").split(",")]
    copies = [int(number) for number in os.environ.get("COPIES", "1,3").split(",")]
    parts: dict[str, Callable[[Path], Found]] = {
        "duplicates": lambda folder: _duplicates(folder, rows, rates, copies),
        "deletions": lambda folder: _deletions(folder, rows, rates),
        "aggregates": lambda folder: _aggregates(folder, rows, rates),
        "updates": lambda folder: _updates(folder, rows, rates),
    }
    wanted = [name for name in os.environ.get("PARTS", "").split(",") if name] or list(parts)
    found: dict[str, Any] = {"rows": rows}
    with _large():
        for name in wanted:
            with tempfile.TemporaryDirectory(prefix="strandline-bench-") as folder:
                found[name] = parts[name](Path(folder))
            _show(name, found[name])
    name = "whips" if wanted == list(parts) else "-".join(["whips", *wanted])
    print(f"written to {results.write(name, found)}")


FINDINGS = {
    "duplicates": "thesis: COUNT installs insertions 100 times slower, deletions 3 times slower without duplicates and "
    "faster above 4 % with three copies; computing gains with the number of copies; in total DUP is faster",
    "deletions": "thesis: deleting by key is 69 times faster than row by row without an index, 1.1 times with one",
    "aggregates": "thesis: many groups: full is worst, partial recompute gains on WHIPS as the rate grows, a summary "
    "delta needs an index; few groups: all but full about equal",
    "updates": "thesis: updates that touch no join, selection or grouping need not be deleted and inserted",
}


def _note(found: Found, case: str, times: dict[str, float]) -> None:
    """Keep what was measured, and say it at once: a run takes minutes."""
    found[case] = times
    print(f"  {case}: {', '.join(f'{name} {seconds:.2f}' for name, seconds in times.items())}", flush=True)


def _show(name: str, found: Found) -> None:
    columns = list(dict.fromkeys(column for times in found.values() for column in times))
    table = Table(title=f"{name}, seconds (and ratio to the first column)", caption=FINDINGS[name])
    table.add_column("case")
    for column in columns:
        table.add_column(column, justify="right")
    for case, times in found.items():
        first = times[columns[0]]
        table.add_row(case, *(f"{times[c]:.2f} ({times[c] / first:.2f})" if c in times else "" for c in columns))
    Console(width=160).print(table)


@contextmanager
def _large() -> Iterator[None]:
    """Within, no table counts as small."""
    with (
        mock.patch.object(installing, "TINY_ROWS", 0),
        mock.patch("strandline.store.replacing.MOST_BYTES", 0),
        mock.patch("strandline.propagate.planner.SMALL_BYTES", 0),
        mock.patch("strandline.propagate.step_maker.SMALL_BYTES", 0),
    ):
        yield


# The lake


def _lines(first: int, count: int, copies: int = 1) -> pa.Table:
    """Line items from number *first*, four to an order; each of them *copies* times."""
    number = np.repeat(np.arange(first, first + count // copies), copies)
    spread = number * 2_654_435_761 % 1_000_003
    return pa.table(
        {
            "orderkey": pa.array(number // 4, pa.int64()),
            "linenumber": pa.array(spread % 7, pa.int32()),
            "partkey": pa.array(spread % 20_000, pa.int64()),
            "quantity": pa.array(spread % 50, pa.int32()),
            "price": pa.array(spread, pa.int64()),
            "comment": pa.array([f"line {n} of some length, as comments are" for n in number]),
        }
    )


class _Lake:
    """Line items and orders, and a warehouse over them."""

    def __init__(self, folder: Path, rows: int, copies: int, warehouse: Warehouse) -> None:
        self.rows, self.copies, self.warehouse = rows, copies, warehouse
        self.lines, self.orders = folder / "lake" / "lines", folder / "lake" / "orders"
        feed = {"delta.enableChangeDataFeed": "true"}
        write_deltalake(self.lines, _lines(0, rows, copies), configuration=feed)
        self.all_orders = rows // copies // 4 + rows
        keys = pa.array(range(self.all_orders), pa.int64())
        day = pa.array([n % 2_400 for n in range(len(keys))], pa.int32())
        note = pa.array([f"order {n}" for n in range(len(keys))])
        write_deltalake(self.orders, pa.table({"orderkey": keys, "day": day, "note": note}), configuration=feed)
        self.next = rows // copies
        warehouse.add_source("lake", kind="delta", path=str(folder / "lake"), keys={"orders": ["orderkey"]})

    def view(self, name: str, query: str, clauses: str = "") -> None:
        policy = "" if "POLICY" in clauses else "REFRESH POLICY INCREMENTAL"
        self.warehouse.sql(f"CREATE MATERIALIZED VIEW {name} {clauses} {policy} AS {query}")

    def insert(self, percent: int) -> None:
        count = self.rows * percent // 100 // self.copies * self.copies
        write_deltalake(self.lines, _lines(self.next, count, self.copies), mode="append")
        self.next += count // self.copies

    def delete(self, percent: int) -> None:
        """All copies of a random part of the rows."""
        DeltaTable(self.lines).delete(f"(price * 7919 + {self.next}) % 100 < {percent}")

    def refresh(self, names: list[str]) -> dict[str, dict[str, float]]:
        """Seconds by view and kind of step."""
        found: dict[str, dict[str, float]] = {name: {} for name in names}
        report = self.warehouse.refresh(*names)
        assert report.ok, report.to_dict()
        for name in names:
            for entry in self.warehouse.history(name, 20):
                if entry.refresh.id == report.refresh_id and entry.step.seconds is not None:
                    found[name][entry.step.kind] = entry.step.seconds
        return found

    def warm_up(self) -> None:
        """One round that is not measured."""
        self.insert(1)
        self.delete(1)
        self.warehouse.refresh()

    def check(self) -> None:
        wrong = [name for name in self.warehouse.views() if not self.warehouse.verify(name).ok]
        print("every view equals its recomputation" if not wrong else f"WRONG: {', '.join(wrong)}")


# Figures 7.6 to 7.11


def _duplicates(folder: Path, rows: int, rates: list[int], copies: list[int]) -> Found:
    found: Found = {}
    for number in copies:
        with Warehouse.open(folder / f"project-{number}") as warehouse:
            lake = _Lake(folder / str(number), rows, number, warehouse)
            for kind in ("dup", "count"):
                stored = f"TBLPROPERTIES ('strandline.representation' = '{kind}')"
                lake.view(f"l_{kind}", "SELECT * FROM lake.lines", stored)
                joined = f"FROM l_{kind} l JOIN lake.orders o ON o.orderkey = l.orderkey"
                lake.view(f"lo_{kind}", f"SELECT l.partkey, l.quantity, l.price, l.comment, o.day {joined}", stored)
            lake.warm_up()
            for percent in rates:
                for change in (lake.insert, lake.delete):
                    change(percent)
                    steps = lake.refresh(["l_dup", "l_count", "lo_dup", "lo_count"])
                    case = f"{number} copies, {percent} % {change.__name__}"
                    for view, step, label in (("l", "install", "install L"), ("lo", "compute", "compute LO"),
                                              ("lo", "install", "install LO")):  # fmt: skip
                        dup, count = (steps[f"{view}_{kind}"].get(step, 0.0) for kind in ("dup", "count"))
                        _note(found, f"{label}, {case}", {"DUP": dup, "COUNT": count})
            lake.check()
    return found


# Figures 7.12 and 7.13


WAYS = {
    "by key (MERGE)": ("keyed", "merge"),
    "by key, clustered": ("clustered", "merge"),
    "copies (MERGE)": ("bag", "merge"),
    "overwrite": ("bag", "overwrite"),
    "list of keys (DELETE)": ("keyed", "delete+append"),
}
"""Ways of deleting: a view and an install method."""


def _deletions(folder: Path, rows: int, rates: list[int]) -> Found:
    found: Found = {}
    with Warehouse.open(folder / "project") as warehouse:
        lake = _Lake(folder, rows, 1, warehouse)
        lake.view("keyed", "SELECT * FROM lake.orders")
        lake.view("clustered", "SELECT * FROM lake.orders", "CLUSTER BY (orderkey)")
        lake.view("bag", "SELECT orderkey + 0 AS orderkey, day, note FROM lake.orders")
        tests = {"400 orders in a range": "orderkey < 400"}
        for percent in rates:
            tests[f"{percent} % of orders, scattered"] = f"pmod(xxhash64(orderkey), 100) < {percent}"
            tests[f"{percent} % of orders in a range"] = f"orderkey < {lake.all_orders * percent // 100}"
        for view, way in WAYS.values():
            _installed(lake, view, _deleted, "orderkey < 100", way)
        for case, test in tests.items():
            few = case.startswith("400")
            ways = {label: way for label, way in WAYS.items() if few or way[1] != "delete+append"}
            times = {label: _installed(lake, view, _deleted, test, way) for label, (view, way) in ways.items()}
            _note(found, case, times)
    return found


def _deleted(table: str, test: str) -> str:
    return f"SELECT *, -1 AS __sign FROM {table} WHERE {test}"


def _updated(table: str, test: str) -> str:
    """Deletions and insertions that change a column that is in no join, selection or key."""
    new = f"SELECT orderkey, day, note || '!' AS note, 1 AS __sign FROM {table} WHERE {test}"
    return f"SELECT orderkey, day, note, -1 AS __sign FROM {table} WHERE {test} UNION ALL {new}"


def _installed(lake: _Lake, view: str, changes: Callable[[str, str], str], test: str, method: str) -> float:
    """Seconds to install *changes* of the rows that pass *test*, in one way, into the table as it was at first."""
    warehouse = lake.warehouse
    engine, node = warehouse._engine, warehouse._refreshing.node(view)
    base = warehouse._catalog.versions.baseline(node.record.id)
    assert base is not None
    with tempfile.TemporaryDirectory() as scratch, engine.step(view, "bench", small=False):
        make_ready(engine, node, base.version, "bench")
        sql = changes(f"delta.`{node.path}` VERSION AS OF {base.version}", test)
        delta = write_delta(engine, sql, node.stored, f"{scratch}/delta")
        with mock.patch.object(installing, "method_for", lambda *_: method):
            began = time.perf_counter()
            installing.install(engine, node, delta, base.version, "bench")
            return time.perf_counter() - began


# Figures 7.14 to 7.17


GROUPS = {"many groups": "orderkey", "few groups": "linenumber"}
METHODS = ("explicit", "summary", "affected", "full")


def _aggregates(folder: Path, rows: int, rates: list[int]) -> Found:
    found: Found = {}
    with Warehouse.open(folder / "project") as warehouse:
        lake = _Lake(folder, rows, 1, warehouse)
        for label, key in GROUPS.items():
            for layout in ("", f"CLUSTER BY ({key})"):
                views = {method: _aggregate(lake, key, layout, method) for method in METHODS}
                lake.warm_up()
                for percent in rates:
                    lake.insert(percent)
                    lake.delete(percent)
                    steps = lake.refresh(list(views.values()))
                    times = {method: sum(steps[view].values()) for method, view in views.items()}
                    _note(found, f"{label}{', clustered' if layout else ''}, {percent} %", times)
                lake.check()
                for view in views.values():
                    warehouse.drop(view)
    return found


def _aggregate(lake: _Lake, key: str, layout: str, method: str) -> str:
    """A view that is maintained by one method; its name."""
    name = f"by_{key}_{method}"
    how = f"TBLPROPERTIES ('strandline.aggregates' = '{method}')" if method != "full" else "REFRESH POLICY FULL"
    sums = "count(*) AS n, sum(price) AS price, avg(quantity) AS quantity"
    lake.view(name, f"SELECT {key}, {sums} FROM lake.lines GROUP BY {key}", f"{layout} {how}")
    return name


# Protected updates


def _updates(folder: Path, rows: int, rates: list[int]) -> Found:
    """An update of a column that is in no join: the pair joined as it is, or once, by its key; then two installs."""
    found: Found = {}
    with Warehouse.open(folder / "project") as warehouse:
        lake = _Lake(folder, rows, 1, warehouse)
        lake.view("keyed", "SELECT * FROM lake.orders")
        lake.view("bag", "SELECT orderkey + 0 AS orderkey, day, note FROM lake.orders")
        for view in ("keyed", "bag"):
            _installed(lake, view, _updated, "orderkey < 100", "merge")
        for percent in rates:
            test = f"orderkey % 100 < {percent}"
            times = _joined(lake, test) | {
                "update in place": _installed(lake, "keyed", _updated, test, "merge"),
                "delete and insert copies": _installed(lake, "bag", _updated, test, "merge"),
            }
            _note(found, f"{percent} % of orders", times)
    return found


def _joined(lake: _Lake, test: str) -> dict[str, float]:
    """Seconds to join the updates of orders that pass *test* with all lines, medians of turns."""
    engine = lake.warehouse._engine
    times: dict[str, list[float]] = {"pair joined twice": [], "pair joined once": []}
    with engine.step("bench", "bench", small=False), tempfile.TemporaryDirectory() as scratch:
        engine.write_parquet(_updated(f"delta.`{lake.orders}`", test), f"{scratch}/pairs")
        stored, lines = f"parquet.`{scratch}/pairs`", f"delta.`{lake.lines}`"
        on = "ON l.orderkey = o.orderkey"
        twice = f"SELECT l.partkey, l.price, o.note, o.__sign FROM {stored} o JOIN {lines} l {on}"
        images = f"SELECT orderkey, collect_list(struct(note, __sign)) AS images FROM {stored} GROUP BY orderkey"
        once = (
            f"SELECT l.partkey, l.price, image.note, image.__sign FROM ({images}) o JOIN {lines} l {on} "
            "LATERAL VIEW explode(o.images) AS image"
        )
        for _ in range(3):
            for name, sql in zip(times, (twice, once), strict=True):
                began = time.perf_counter()
                engine.write_parquet(sql, f"{scratch}/out")
                times[name].append(time.perf_counter() - began)
    return {name: statistics.median(taken) for name, taken in times.items()}
