"""All differential algorithms side by side, in one session, beside the floor: Spark reads both snapshots once, with a
hash of each row.

Sizes come from the environment: ROWS (default 10,000,000, of 10 columns), CHANGED (percent, default 0.5), MOVED (how
far rows are moved on average, in rows; default 0), REPEATS (default 2), ALGORITHMS (names in their order, default all).
The generator is that of the paper's Table 2.3: the new snapshot is a copy of the old one in which each row is swapped
with one 0 to 2 * MOVED places on; then rows are updated. ``kept`` is a second run, for which the old snapshot was kept
by the first.
*Extra messages* are reports beyond the known minimum, before Window's second pass takes them out. *CPU* is that of this
process and of Spark: on a machine that others use too, it says more than the time.
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from bench import results
from bench.processors import Stopwatch
from strandline.differential.compare import compare
from strandline.differential.cost import ALGORITHMS, Algorithm
from strandline.differential.snapshot import Snapshot, snapshot
from strandline.engine.session import Engine

FILES = 4
WORDS = np.array([f"word{number:05d}" for number in range(20_000)])
STATUS = np.array(["open", "paid", "sent", "back"])


def run() -> None:
    rows = int(os.environ.get("ROWS", 10_000_000))
    changed = float(os.environ.get("CHANGED", 0.5)) / 100
    moved = int(os.environ.get("MOVED", 0))
    repeats = int(os.environ.get("REPEATS", 2))
    wanted = os.environ.get("ALGORITHMS", " ".join(ALGORITHMS)).split()
    algorithms = sorted(set(ALGORITHMS) & set(wanted), key=wanted.index)
    engine = Engine(settings={"spark.driver.memory": "5g", "spark.sql.shuffle.partitions": "8"})
    with tempfile.TemporaryDirectory(prefix="strandline-bench-") as folder:
        known, distance = generate(Path(folder), rows, changed, moved)
        found = _measure(engine, Path(folder), algorithms, repeats, known)
    engine.close()
    _print(found, rows, changed, distance)
    setting = {"rows": rows, "changed": known, "moved": moved, "distance": distance}
    print(f"written to {results.write('differential', {**setting, 'measured': found})}")


def generate(folder: Path, rows: int, changed: float, moved: int) -> tuple[int, float]:
    """Write both snapshots below *folder*; how many rows differ, and the distance."""
    chance = np.random.default_rng(1)
    updated = chance.random(rows) < changed
    order = np.arange(rows)
    if moved:
        jumps = chance.integers(0, 2 * moved + 1, rows)
        for place in range(rows):
            other = place + jumps[place]
            if other < rows:
                order[place], order[other] = order[other], order[place]
    step = -(-rows // FILES)
    for number in range(FILES):
        lot = slice(number * step, min(rows, (number + 1) * step))
        _write(_rows(np.arange(lot.start, lot.stop), None), folder / "old" / f"part-{number}.parquet")
        _write(_rows(order[lot], updated), folder / "new" / f"part-{number}.parquet")
    far = np.abs(order.astype(np.float64) - np.arange(rows)).sum()
    return int(updated.sum()), float(far / (rows**2 / 2))


def _rows(keys: np.ndarray[Any, Any], updated: np.ndarray[Any, Any] | None) -> pa.Table:
    """Ten columns, each a function of the key, so that a moved row is the same row."""
    mixed = (keys.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(8)
    small = mixed.astype(np.int64)
    quantity = (small % 50).astype(np.int32)
    return pa.table(
        {
            "id": keys,
            "customer": small % 1_000_003,
            "quantity": quantity if updated is None else quantity + updated[keys].astype(np.int32),
            "price": (small % 999_983) / 100.0,
            "status": pa.array(STATUS[small % 4]),
            "note": pa.array(WORDS[small % 20_000]),
            "reference": pa.array(np.char.add("R", (small % 1_000_000_007).astype(str))),
            "day": pa.array((10_000 + small % 10_000).astype(np.int32), pa.date32()),
            "moment": pa.array(1_600_000_000_000_000 + small % 100_000_000_000_000, pa.timestamp("us", "UTC")),
            "checksum": small,
        }
    )


def _write(table: pa.Table, file: Path) -> None:
    file.parent.mkdir(exist_ok=True)
    pq.write_table(table, file, row_group_size=1_000_000)


def _measure(
    engine: Engine, folder: Path, algorithms: list[Algorithm], repeats: int, known: int
) -> dict[str, dict[str, Any]]:
    old, new = snapshot(str(folder / "old")), snapshot(str(folder / "new"))
    measured: dict[str, dict[str, Any]] = {"floor": {"seconds": [], "cpu": []}}
    _floor(engine, old, new)
    for _ in range(repeats):
        with _timed(measured["floor"]):
            _floor(engine, old, new)
        for algorithm in algorithms:
            _note(measured, algorithm, engine, old, new, algorithm, None, known)
            if algorithm != "window":
                kept = folder / f"kept-{algorithm}"
                _note(measured, f"{algorithm}, keeping", engine, old, new, algorithm, kept, known)
                _note(measured, f"{algorithm}, kept", engine, None, old, algorithm, kept, known)
                shutil.rmtree(kept)
    return measured


def _note(
    measured: dict[str, dict[str, Any]],
    name: str,
    engine: Engine,
    old: Snapshot | None,
    new: Snapshot,
    algorithm: Algorithm,
    kept: Path | None,
    known: int,
) -> None:
    """Run one comparison; a *kept* one goes back from the new snapshot to the old one."""
    entry = measured.setdefault(name, {"seconds": [], "cpu": []})
    with _timed(entry):
        found = compare(engine, old, new, key=["id"], algorithm=algorithm, kept=kept)
    assert (found.counts.updated, found.counts.total) == (known, known), found.counts
    entry["bytes_read"] = found.bytes_read
    entry["kept_bytes"] = None if found.kept is None else found.kept.bytes
    entry["extra_messages"] = 2 * found.useless_pairs
    print(f"  {name}: {entry['seconds'][-1]:.1f} s, CPU {entry['cpu'][-1]:.1f} s", flush=True)
    found.close()


@contextmanager
def _timed(entry: dict[str, Any]) -> Iterator[None]:
    """Notes what is done within: time, and CPU of this process and its children."""
    with Stopwatch() as watch:
        yield
    entry["seconds"].append(watch.seconds)
    entry["cpu"].append(watch.cpu)


def _floor(engine: Engine, old: Snapshot, new: Snapshot) -> None:
    """Spark reads both snapshots once, and hashes each row."""
    for side in (old, new):
        rows = engine.worker.read.parquet(*(side.files or ()))
        rows.selectExpr("xxhash64(*) AS h").selectExpr("bit_xor(h)").collect()


def _print(found: dict[str, dict[str, Any]], rows: int, changed: float, distance: float) -> None:
    table = Table(title=f"{rows:,} rows, {100 * changed} % updated, distance {distance:.3f}; medians, seconds")
    titles = ("algorithm", "seconds", "times the floor", "CPU", "times its CPU", "MB read", "MB kept", "extra messages")
    for column in titles:
        table.add_column(column, justify="left" if column == "algorithm" else "right")
    floor = {measure: statistics.median(found["floor"][measure]) for measure in ("seconds", "cpu")}
    for name, entry in found.items():
        times = []
        for measure, least in floor.items():
            spent = statistics.median(entry[measure])
            times += [f"{spent:.1f}", f"{spent / least:.2f}"]
        sizes = [entry.get(field) for field in ("bytes_read", "kept_bytes")]
        shown = ["" if size is None else f"{size / 1e6:,.0f}" for size in sizes]
        extra = "" if name == "floor" else f"{entry['extra_messages']:,}"
        table.add_row(name, *times, *shown, extra)
    Console(width=120).print(table)
