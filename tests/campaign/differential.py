"""Random snapshots through every differential algorithm; and Window within its memory on snapshots in disorder.

``python -m tests.campaign.differential [CASES] [SEED] [ROWS]``
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from strandline.differential.compare import compare
from strandline.differential.cost import ALGORITHMS, SETS_ONLY
from strandline.differential.snapshot import snapshot
from strandline.engine.session import Engine
from tests.differential.snapshots import KEY, applied, fewest, frozen, random_bag, random_set, reported, write

BOUND = 128 << 20


def one(folder: Path, engine: Engine, seed: int, *, bag: bool) -> None:
    """A random pair of snapshots, by every algorithm there is for it."""
    chance = random.Random(seed)
    rows = chance.choice([0, 1, 10, 300, 2_000])
    old, new = random_bag(chance, rows) if bag else random_set(chance, rows, nulls=chance.random() < 0.5)
    if chance.random() < 0.2:
        old, new = ([], new) if chance.random() < 0.5 else (old, [])
    sides = [snapshot(str(write(side, folder / name))) for name, side in (("old", old), ("new", new))]
    for algorithm in ALGORITHMS:
        if bag and algorithm in SETS_ONLY:
            continue
        found = compare(engine, sides[0], sides[1], key=KEY, bag=bag, algorithm=algorithm)
        assert applied(old, reported(found.report)) == Counter(map(frozen, new)), (seed, bag, algorithm)
        if not (bag and algorithm == "window"):
            assert found.counts.total == fewest(old, new), (seed, bag, algorithm)
        found.close()


def in_disorder(folder: Path, rows: int) -> None:
    """Window on shuffled snapshots that are far larger than its memory: right, and within it."""
    chance = np.random.default_rng(1)
    changed = chance.random(rows) < 0.005
    for side, order in (("old", np.arange(rows)), ("new", chance.permutation(rows))):
        values = {f"c{place}": order * (place + 1) for place in range(8)}
        values["c0"] = values["c0"] + (changed[order] if side == "new" else 0)
        pq.write_table(pa.table({"id": order, **values}), folder / f"{side}.parquet", row_group_size=500_000)
    program = f"""
import pyarrow as pa
from strandline.differential.compare import compare
from strandline.differential.snapshot import snapshot
from strandline.engine.session import Engine
old, new = snapshot({str(folder / "old.parquet")!r}), snapshot({str(folder / "new.parquet")!r})
found = compare(Engine(), old, new, key=["id"], algorithm="window", memory={BOUND})
print(pa.default_memory_pool().max_memory(), found.counts.updated, found.counts.total, found.useless_pairs)
found.close()
"""
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    most, updated, total, pairs = map(int, done.stdout.split())
    assert (updated, total) == (int(changed.sum()), int(changed.sum()))
    size = 2 * 9 * 8 * rows
    print(
        f"window, {rows:,} rows in disorder, {size / BOUND:.0f} times its memory: {most / BOUND:.2f} of it used, "
        f"{pairs:,} useless pairs settled, {time.monotonic() - began:.0f} s"
    )
    assert most <= BOUND


def main(cases: int, seed: int, rows: int) -> None:
    with tempfile.TemporaryDirectory(prefix="strandline-campaign-") as folder:
        in_disorder(Path(folder), rows)
    engine = Engine(settings={"spark.driver.memory": "2g"})
    began = time.monotonic()
    for number in range(cases):
        with tempfile.TemporaryDirectory(prefix="strandline-campaign-") as folder:
            one(Path(folder), engine, seed + number, bag=bool(number % 2))
        print(f"{number + 1}/{cases} pairs of snapshots {time.monotonic() - began:6.0f} s", flush=True)
    engine.close()
    print(f"{cases} pairs of snapshots: every algorithm leads from the old one to the new one")


if __name__ == "__main__":
    given = [int(argument) for argument in sys.argv[1:]]
    main(*given, *(60, 1, 20_000_000)[len(given) :])
