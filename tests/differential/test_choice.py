"""``auto``: the cheapest algorithm of those that are possible, and why."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from strandline.differential.choice import Facts, choose, comes_in_order, impossible, usable
from strandline.differential.cost import ALGORITHMS, Algorithm
from strandline.differential.snapshot import snapshot

GIGABYTE = 1 << 30
LARGE = Facts(
    old=100.0 * GIGABYTE,
    new=100.0 * GIGABYTE,
    rows=700_000_000,
    small=8.0,
    held=200.0 * GIGABYTE,
    reach=GIGABYTE / 8,
    memory=GIGABYTE,
    bag=False,
    here=True,
    in_order=False,
    kept=None,
    old_readable=True,
    keep=False,
    addresses=True,
)


@pytest.mark.parametrize(
    ("facts", "algorithm", "word"),
    [
        (replace(LARGE, in_order=True), "window", "order of their key"),
        (replace(LARGE, held=1e8), "window", "wherever it has moved"),
        (LARGE, "phc2", "changed rows are fetched"),
        (replace(LARGE, rows=10_000_000), "phc", "fit in memory"),
        (replace(LARGE, rows=10_000_000, kept="hashes", old_readable=False), "phc", "kept"),
        (replace(LARGE, kept="hashes", old_readable=False), "phc1", "kept"),
        (replace(LARGE, kept="pointers", old_readable=False), "phc2", "kept"),
        (replace(LARGE, kept="rows", old_readable=False), "ph", "kept"),
        (replace(LARGE, in_order=True, keep=True), "phc2", "hashes"),
        (replace(LARGE, bag=True, addresses=False), "ph", "row by row"),
        (replace(LARGE, bag=True), "phc2", "hashes"),
        (replace(LARGE, bag=True, held=1e8), "window", "memory"),
    ],
)
def test_the_cheapest_possible_algorithm_is_taken_and_says_why(facts: Facts, algorithm: Algorithm, word: str) -> None:
    choice = choose(facts)
    assert choice.algorithm == algorithm
    assert word in choice.reason
    assert choice.costs[algorithm] == min(choice.costs.values())
    assert "blocks" in choice.reason


@pytest.mark.parametrize(
    ("facts", "algorithms", "word"),
    [
        (replace(LARGE, bag=True), {"smc1", "phc1", "phc"}, "sets only"),
        (replace(LARGE, old_readable=False), set(ALGORITHMS), "neither there nor kept"),
        (replace(LARGE, bag=True, addresses=False), {"smc2", "phc2"}, "addresses"),
        (replace(LARGE, here=False), {"window"}, "streams"),
        (LARGE, {"window"}, "moved farther"),
        (replace(LARGE, in_order=True, reach=0.0), {"window"}, "too little memory"),
        (LARGE, {"phc"}, "do not fit"),
        (replace(LARGE, memory=1 << 20), {"sm", "ph", "smc1", "phc1"}, "too little memory"),
    ],
)
def test_what_is_impossible_is_said(facts: Facts, algorithms: set[Algorithm], word: str) -> None:
    for algorithm in algorithms:
        assert word in (impossible(algorithm, facts) or ""), algorithm


def test_more_changes_speak_against_fetching() -> None:
    costs = [choose(replace(LARGE, change=change)).costs for change in (0.0, 0.001, 0.01, 1.0)]
    for algorithm in ("smc2", "phc2"):
        assert [cost[algorithm] for cost in costs] == sorted(cost[algorithm] for cost in costs)
    assert len({cost["ph"] for cost in costs}) == 1


def test_what_was_kept_serves_algorithms_of_its_form() -> None:
    serves = {form: {a for a in ALGORITHMS if usable(a, form)} for form in ("rows", "hashes", "pointers", None)}
    assert serves == {
        "rows": {"sm", "ph"},
        "hashes": {"smc1", "phc1", "phc"},
        "pointers": {"smc1", "smc2", "phc1", "phc2", "phc"},
        None: set(),
    }


def test_the_order_of_rows_is_read_from_statistics(tmp_path: Path) -> None:
    for name, keys in (("sorted", range(100)), ("shuffled", [*range(50, 100), *range(50)])):
        pq.write_table(pa.table({"id": list(keys)}), tmp_path / f"{name}.parquet", row_group_size=10)
    assert comes_in_order(snapshot(str(tmp_path / "sorted.parquet")), ["id"])
    assert not comes_in_order(snapshot(str(tmp_path / "shuffled.parquet")), ["id"])
