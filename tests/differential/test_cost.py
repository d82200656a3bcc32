"""The paper's numbers from the formulas: input and output, crossovers, misses."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from strandline.differential import cost, misses
from strandline.differential.cost import ALGORITHMS, Algorithm, Work

BLOCK, RECORD = 16_384, 150


def paper(megabytes: int) -> Work:
    """Table 2.1: both snapshots of one size, 1% of the records reported as updated or inserted."""
    size = cost.blocks(megabytes * cost.MEGABYTE)
    return Work(size, size, probes=0.01 * megabytes * cost.MEGABYTE / RECORD)


TABLE_2_2: dict[tuple[Algorithm, int], int] = {
    ("sm", 256): 81_920,
    ("smc1", 256): 51_336,
    ("smc2", 256): 40_833,
    ("ph", 256): 65_536,
    ("phc", 256): 18_568,
    ("window", 256): 32_768,
    ("sm", 1024): 327_680,
    ("smc1", 1024): 205_346,
    ("smc2", 1024): 163_333,
    ("ph", 1024): 262_144,
    ("phc1", 1024): 205_346,
    ("phc2", 1024): 156_779,
    ("window", 1024): 131_072,
}


@pytest.mark.parametrize(("case", "printed"), TABLE_2_2.items(), ids=str)
def test_the_table_of_input_and_output_is_the_papers(case: tuple[Algorithm, int], printed: int) -> None:
    algorithm, megabytes = case
    assert math.floor(cost.io(algorithm, paper(megabytes))) == printed


def test_phc2_at_256_megabytes_is_the_variant_in_memory() -> None:
    assert math.floor(cost.io("phc", replace(paper(256), u1=10))) == 19_660


@pytest.mark.parametrize("megabytes", [256, 1024])
def test_intermediate_files_are_the_papers(megabytes: int) -> None:
    work = paper(megabytes)
    whole = {256: 16_384, 1024: 65_536}[megabytes]
    small = {256: 1_639, 1024: 6_554}[megabytes]
    found = {algorithm: math.ceil(cost.intermediate(algorithm, work)) for algorithm in ALGORITHMS}
    assert found == {
        "sm": whole, "ph": whole, "smc1": whole, "phc1": whole, "smc2": small, "phc2": small, "phc": 0, "window": 0
    }  # fmt: skip


@pytest.mark.parametrize(
    ("algorithm", "megabytes", "saving"),
    [
        ("smc1", 256, 37.33), ("smc2", 256, 50.15), ("ph", 256, 20.0), ("phc", 256, 77.33), ("phc1", 1024, 37.33),
        ("phc2", 1024, 52.15), ("window", 256, 60.0),
    ],
)  # fmt: skip
def test_savings_against_sort_merge_are_the_papers(algorithm: Algorithm, megabytes: int, saving: float) -> None:
    work = paper(megabytes)
    assert 100 * (1 - cost.io(algorithm, work) / cost.io("sm", work)) == pytest.approx(saving, abs=0.005)


def test_a_sort_that_is_finished_first_costs_one_more_pass() -> None:
    work = paper(256)
    assert cost.io("sm", work) + work.new == work.old + 5 * work.new


def test_without_anything_kept_partitioned_hash_costs_three_passes_of_each() -> None:
    work = paper(256)
    assert cost.io("ph", replace(work, kept=False)) == 3 * work.old + 3 * work.new


def test_crossovers_are_the_papers() -> None:
    found = {
        "phc1 over phc2": cost.c1_is_cheaper_above("ph", 15, 10, RECORD, BLOCK),
        "smc1 over smc2": cost.c1_is_cheaper_above("sm", 15, 10, RECORD, BLOCK),
        "window over smc2": cost.window_is_cheaper_above("smc2", 10, RECORD),
        "window over phc2": cost.window_is_cheaper_above("phc2", 10, RECORD),
        "sm over smc2": cost.outer_join_is_cheaper_above("sm", 10, RECORD, BLOCK),
        "ph over phc2": cost.outer_join_is_cheaper_above("ph", 10, RECORD, BLOCK),
    }
    assert {name: round(100 * share, 3) for name, share in found.items()} == {
        "phc1 over phc2": 1.678,
        "smc1 over smc2": 1.587,
        "window over smc2": 0.549,
        "window over phc2": 0.641,
        "sm over smc2": 3.296,
        "ph over phc2": 2.472,
    }


@pytest.mark.parametrize("megabytes", [256, 1024, 10_240])
def test_crossovers_are_where_the_formulas_meet(megabytes: int) -> None:
    work = paper(megabytes)
    records = megabytes * cost.MEGABYTE / RECORD
    for kind, c1, c2 in (("ph", "phc1", "phc2"), ("sm", "smc1", "smc2")):
        share = cost.c1_is_cheaper_above(kind, 15, 10, RECORD, BLOCK)  # type: ignore[arg-type]
        at = replace(work, probes=share * records)
        assert cost.io(c1, at) == pytest.approx(cost.io(c2, at))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("algorithm", "other", "u"),
    [("smc1", "ph", 2.0), ("smc1", "sm", 1.0), ("smc2", "ph", 2.097), ("smc2", "sm", 1.376), ("phc1", "ph", 2.0),
     ("phc2", "ph", 1.573), ("phc", "window", 2.0)],
)  # fmt: skip
def test_compression_pays_from_a_factor_on(algorithm: Algorithm, other: Algorithm, u: float) -> None:
    def gain(factor: float) -> float:
        work = replace(paper(1024), u1=factor, u2=factor)
        return cost.io(other, work) - cost.io(algorithm, work)

    assert gain(u - 0.002) < 0 < gain(u + 0.002)


def test_the_old_snapshot_fits_in_memory_up_to_480_megabytes() -> None:
    assert cost.possible("phc", paper(480))
    assert not cost.possible("phc", paper(481))
    assert not cost.possible("phc", replace(paper(321), u1=10))


def test_two_passes_suffice_for_the_papers_sizes() -> None:
    assert all(cost.possible(algorithm, paper(1024)) for algorithm in ALGORITHMS if algorithm != "phc")


def test_probes_in_the_order_of_addresses_touch_no_block_twice() -> None:
    work, per_block = paper(256), BLOCK / RECORD
    touched = cost.sorted_probes(work.new, 0.01, per_block)
    assert round(touched) == 10_918
    assert round(cost.io("smc2", replace(work, probes=touched))) == 33_856
    large = paper(1024)
    assert round(cost.io("phc2", replace(large, probes=cost.sorted_probes(large.new, 0.01, per_block)))) == 128_869
    all_changed = replace(work, probes=cost.sorted_probes(work.new, 1.0, per_block))
    assert cost.io("smc2", all_changed) == pytest.approx(2.4 * work.new)
    assert cost.io("phc2", all_changed) == pytest.approx(2.3 * work.new)
    assert cost.io("smc1", work) == pytest.approx((3 + 2 / 15) * work.new)


RECORDS = {256: 1_789_569, 1024: 7_158_278, 10_240: 71_582_788}


@pytest.mark.parametrize(
    ("bits", "days"),
    [
        (32, (2_400.5, 600.5, 60.5)),
        (40, (614_400.7, 153_600.5, 15_360.5)),
        (48, (1.573e8, 3.932e7, 3.932e6)),
        (64, (1.031e13, 2.577e12, 2.577e11)),
        (128, (1.901e32, 4.754e31, 4.754e30)),
    ],
)
def test_expected_days_to_a_miss(bits: int, days: tuple[float, ...]) -> None:
    found = [misses.expected_days(count, misses.error(bits)) for count in RECORDS.values()]
    assert found == [pytest.approx(day, rel=5e-4) for day in days]


def test_the_papers_2430_days_come_of_a_rounded_rate() -> None:
    assert misses.expected_days(1_789_570, 2.3e-10) == pytest.approx(2_430.04, abs=0.01)
    assert misses.expected_days(1_789_570, misses.error(32)) == pytest.approx(2_400.50, abs=0.01)
    assert 1 - misses.any_miss(1_789_570, misses.error(32)) == pytest.approx(0.99958342, abs=1e-8)
    assert 1 - misses.any_miss(1_789_570, misses.error(33)) == pytest.approx(0.99979169, abs=1e-8)


def test_only_changed_records_can_be_missed() -> None:
    assert misses.expected_days(17_895, misses.error(32)) == pytest.approx(240_010, abs=1)
    assert misses.expected_days(357_914, misses.error(32)) == pytest.approx(12_000.5, abs=0.1)


def test_the_error_of_short_values_is_smaller() -> None:
    assert misses.error(32) == pytest.approx(2.328e-10, rel=1e-3)
    assert misses.error(2, of=3) == (2**3 / 2**2 - 1) / 2**3
    assert misses.any_miss(0, misses.error(64)) == 0.0
    assert misses.expected_days(0, misses.error(64)) == math.inf
