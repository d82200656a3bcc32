"""Window over Arrow batches: the same changes as record by record, within its memory, wherever rows have moved."""

from __future__ import annotations

import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.differential.blocks import in_blocks
from strandline.differential.records import window as records
from strandline.differential.records.distance import displacements
from strandline.differential.records.reports import Record
from strandline.differential.window import Bound, Outcome, window, window_bag
from strandline.errors import DifferentialError
from tests.differential.snapshots import (
    KEY,
    SCHEMA,
    Row,
    applied,
    fewest,
    frozen,
    random_bag,
    random_set,
    reported,
)


def run(folder: Path, old: list[Row], new: list[Row], block: int, aging: int | None, *, bag: bool = False) -> Outcome:
    def blocks(rows: list[Row]) -> Iterator[pa.Table]:
        return in_blocks(pa.Table.from_pylist(rows, SCHEMA).to_batches(max_chunksize=7), SCHEMA, block)

    compared = window_bag if bag else window
    return compared(blocks(old), blocks(new), SCHEMA, KEY, Bound(1 << 20, aging), folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("window")


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 60), st.integers(1, 9), st.sampled_from([None, 0, 1, 5, 40]))
def test_applying_the_changes_of_a_set_gives_the_new_snapshot(
    folder: Path, seed: int, rows: int, block: int, aging: int | None
) -> None:
    old, new = random_set(random.Random(seed), rows)
    found = run(folder, old, new, block, aging)
    assert applied(old, reported(folder)) == Counter(map(frozen, new))
    # The second pass leaves no useless pair of either order.
    assert found.counts.total == fewest(old, new)
    assert (found.old_rows, found.new_rows) == (len(old), len(new))


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 40), st.integers(1, 9), st.sampled_from([None, 0, 1, 5, 40]))
def test_applying_the_changes_of_a_bag_gives_the_new_snapshot(
    folder: Path, seed: int, rows: int, block: int, aging: int | None
) -> None:
    old, new = random_bag(random.Random(seed), rows)
    run(folder, old, new, block, aging, bag=True)
    assert applied(old, reported(folder)) == Counter(map(frozen, new))


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 60), st.integers(1, 9), st.integers(0, 12))
def test_extra_messages_are_those_of_the_algorithm_record_by_record(
    folder: Path, seed: int, rows: int, block: int, aging: int
) -> None:
    old, new = random_set(random.Random(seed), rows)
    sides = [[Record(frozen(row, KEY), frozen(row)[2:]) for row in side] for side in (old, new)]
    reference = list(records.first_pass(*sides, block=block, aging=aging))
    found = run(folder, old, new, block, aging)
    extra = len(reference) - fewest(old, new)
    # A pair of an unchanged row is two messages too many, one of a changed row is one.
    assert (found.useless_pairs == 0) == (extra == 0)
    assert found.useless_pairs <= extra <= 2 * found.useless_pairs


@pytest.mark.parametrize(
    ("old", "new", "counts"),
    [(0, 30, (30, 0, 0)), (30, 0, (0, 30, 0)), (0, 0, (0, 0, 0)), (30, 30, (0, 0, 0))],
    ids=["all new", "all gone", "empty", "equal"],
)
def test_whole_snapshots_come_and_go(folder: Path, old: int, new: int, counts: tuple[int, int, int]) -> None:
    row = {"number": 1, "weight": None, "text": "t", "tags": [1]}
    before, after = ([{"id": place, "part": None, **row} for place in range(count)] for count in (old, new))
    found = run(folder, before, after, 4, None).counts
    assert (found.inserted, found.deleted, found.updated) == counts


def test_nothing_is_extra_if_no_row_moved_farther_than_the_aging_buffer_reaches(folder: Path) -> None:
    chance = random.Random(5)
    keys = list(range(2_000))
    for place in range(0, 1_960, 3):
        other = place + chance.randint(0, 37)
        keys[place], keys[other] = keys[other], keys[place]
    row = {"part": "p", "number": 1, "weight": 0.5, "text": None, "tags": None}
    old, new = ([{"id": key, **row} for key in side] for side in (range(2_000), keys))
    reach = max(displacements(range(2_000), keys))
    assert run(folder, old, new, 16, reach).useless_pairs == 0
    assert run(folder, old, new, 16, 1).useless_pairs > 0


def test_two_rows_with_one_key_are_an_error_that_names_it(folder: Path) -> None:
    row = {"number": 1, "weight": None, "text": "t", "tags": None}
    rows = [{"id": key, "part": "p", **row} for key in (5, 3, 4, 3)]
    for block in (2, 4):
        with pytest.raises(DifferentialError, match=r"KEY_NOT_UNIQUE.*new snapshot.*id=3, part='p'"):
            run(folder, [], rows, block, None)


def test_memory_stays_within_the_bound_on_input_twenty_times_as_large(tmp_path: Path) -> None:
    rows, bound = 1_200_000, 24 << 20
    texts = pa.array(np.arange(rows)).cast(pa.string())
    texts = pc.utf8_lpad(texts, width=200, padding="x")
    for side, numbers in (("old", np.zeros(rows)), ("new", np.arange(rows) % 200 // 199)):
        table = pa.table({"id": np.arange(rows), "n": numbers.astype(np.int64), "text": texts})
        pq.write_table(table, tmp_path / f"{side}.parquet", row_group_size=200_000)
        assert 2 * table.nbytes > 20 * bound
    # In a process of its own, where nobody else uses Arrow's memory.
    program = f"""
import pyarrow as pa
from strandline.differential.compare import compare
from strandline.differential.snapshot import snapshot
from strandline.engine.session import Engine
old, new = snapshot({str(tmp_path / "old.parquet")!r}), snapshot({str(tmp_path / "new.parquet")!r})
found = compare(Engine(), old, new, key=["id"], algorithm="window", memory={bound})
print(pa.default_memory_pool().max_memory(), found.counts.updated)
found.close()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    most, updated = map(int, done.stdout.split())
    assert updated == rows // 200
    assert most <= bound, f"{most / (1 << 20):.1f} MB"


def test_the_order_of_a_list_counts_and_that_of_a_map_does_not(folder: Path) -> None:
    row = {"part": "p", "number": 1}
    old, new = (
        [
            {**row, "id": 1, "pairs": pairs},
            {**row, "id": 2, "marks": marks},
        ]
        for pairs, marks in (
            ([[1, 2], [3, 4]], [("a", {"w": 0.0}), ("b", None)]),
            ([[3, 4], [1, 2]], [("b", None), ("a", {"w": -0.0})]),
        )
    )
    assert run(folder, old, new, 4, None).counts.updated == 1
    assert {change["id"] for change in reported(folder)} == {1}
    assert run(folder, old, new, 4, None, bag=True).counts.total == 1
