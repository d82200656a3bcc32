"""The cost formulas give the numbers of the cost studies."""

from __future__ import annotations

import pytest

from strandline.integrate.costs import (
    Parameters,
    all_scanned_reads_eca_best,
    all_scanned_reads_eca_worst,
    all_scanned_reads_rv,
    bytes_eca_best,
    bytes_eca_worst,
    bytes_rv,
    crossover,
    differing_pairs,
    expected_pairs,
    indexed_reads_eca_best,
    indexed_reads_eca_exact,
    indexed_reads_eca_worst,
    indexed_reads_rv,
    messages_eca,
    messages_eca_key,
    messages_rv,
    scanned_reads_eca_best,
    scanned_reads_eca_worst,
    scanned_reads_rv,
)

DEFAULT = Parameters()

# k, M ECA, B: RV worst, ECA best, ECA worst, worst in turn; IO 1 and IO 2 alike.
TABLE = """
1 2 3200 32 32 32 15 5 5 5 125 15 15 15
2 4 6400 64 69.33 72 30 10 10.67 8 250 30 33.33 35
3 6 9600 96 112 120 45 15 17 18 375 45 55 60
4 8 12800 128 160 168 60 20 24 25 500 60 80 85
5 10 16000 160 213.33 224 75 25 31.67 30 625 75 108.33 115
6 12 19200 192 272 288 90 30 40 42 750 90 140 150
7 14 22400 224 336 352 105 35 49 51 875 105 175 185
8 16 25600 256 405.33 424 120 40 58.67 58 1000 120 213.33 225
9 18 28800 288 480 504 135 45 69 72 1125 135 255 270
10 20 32000 320 560 584 150 50 80 83 1250 150 300 315
20 40 64000 640 1653.33 1704 300 100 226.67 230 2500 300 933.33 965
29 58 92800 928 3093.33 3168 435 145 415.67 422 3625 435 1788.33 1835
30 60 96000 960 3280 3360 450 150 440 450 3750 450 1900 1950
31 62 99200 992 3472 3552 465 155 465 475 3875 465 2015 2065
50 100 160000 1600 8133.33 8264 750 250 1066.67 1080 6250 750 4833.33 4915
67 134 214400 2144 13936 14112 1005 335 1809 1831 8375 1005 8375 8485
99 198 316800 3168 29040 29304 1485 495 3729 3762 12375 1485 17655 17820
100 200 320000 3200 29600 29864 1500 500 3800 3833 12500 1500 18000 18165
101 202 323200 3232 30165.33 30432 1515 505 3871.67 3902 12625 1515 18348.33 18515
"""


@pytest.mark.parametrize("line", TABLE.strip().splitlines())
def test_costs_of_k_updates(line: str) -> None:
    numbers = [float(word) for word in line.split()]
    k = int(numbers[0])
    in_turn = ((k + 2) // 3, (k + 1) // 3, k // 3)
    pairs = differing_pairs(in_turn)
    found = [
        k,
        messages_eca(k),
        bytes_rv(DEFAULT, k),
        bytes_eca_best(DEFAULT, k),
        bytes_eca_worst(DEFAULT, k),
        bytes_eca_worst(DEFAULT, k, pairs),
        indexed_reads_rv(DEFAULT, k),
        indexed_reads_eca_best(DEFAULT, k),
        indexed_reads_eca_worst(DEFAULT, k),
        indexed_reads_eca_exact(DEFAULT, in_turn),
        scanned_reads_rv(DEFAULT, k),
        scanned_reads_eca_best(DEFAULT, k),
        scanned_reads_eca_worst(DEFAULT, k),
        scanned_reads_eca_worst(DEFAULT, k, pairs),
    ]
    assert [round(value, 2) for value in found] == numbers


def test_costs_of_three_updates_one_for_each_relation() -> None:
    assert [bytes_rv(DEFAULT, 1), bytes_rv(DEFAULT, 3), bytes_eca_best(DEFAULT, 3)] == [3200, 9600, 96]
    assert bytes_eca_worst(DEFAULT, 3, pairs=3) == 120
    assert [indexed_reads_rv(DEFAULT, 1), indexed_reads_rv(DEFAULT, 3), indexed_reads_eca_best(DEFAULT, 3)] == [
        15,
        45,
        15,
    ]
    assert indexed_reads_eca_worst(DEFAULT, 3, pairs=3) == 18
    assert [scanned_reads_rv(DEFAULT, 1), scanned_reads_rv(DEFAULT, 3), scanned_reads_eca_best(DEFAULT, 3)] == [
        125,
        375,
        45,
    ]
    assert scanned_reads_eca_worst(DEFAULT, 3, pairs=3) == 60


def test_three_updates_have_three_differing_pairs_and_two_on_average() -> None:
    assert differing_pairs((1, 1, 1)) == 3
    assert expected_pairs(3) == 2


@pytest.mark.parametrize(
    ("rows", "best", "worst"),
    [
        (1, 32, 96),
        (2, 64, 192),
        (3, 96, 288),
        (4, 128, 384),
        (5, 160, 480),
        (10, 320, 960),
        (20, 640, 1920),
        (50, 1600, 4800),
        (100, 3200, 9600),
    ],
)
def test_bytes_by_size_of_the_relations(rows: int, best: int, worst: int) -> None:
    p = Parameters(rows=rows)
    assert (bytes_rv(p, 1), bytes_rv(p, 3)) == (best, worst)
    assert (bytes_eca_best(p, 3), bytes_eca_worst(p, 3, pairs=3)) == (96, 120)


@pytest.mark.parametrize(
    ("rows", "blocks", "double", "scanned", "indexed"),
    [
        (20, 1, 1, (1, 3, 6), (3, 6, 9)),
        (40, 2, 1, (8, 6, 12), (6, 9, 12)),
        (60, 3, 2, (27, 18, 27), (9, 12, 15)),
        (80, 4, 2, (64, 24, 36), (12, 15, 18)),
        (100, 5, 3, (125, 45, 60), (15, 15, 18)),
        (200, 10, 5, (1000, 150, 180), (30, 15, 18)),
        (400, 20, 10, (8000, 600, 660), (60, 15, 18)),
        (1000, 50, 25, (125000, 3750, 3900), (150, 15, 18)),
    ],
)
def test_reads_by_size_of_the_relations(
    rows: int, blocks: int, double: int, scanned: tuple[int, ...], indexed: tuple[int, ...]
) -> None:
    p = Parameters(rows=rows)
    assert (p.blocks, p.double_blocks) == (blocks, double)
    assert (scanned_reads_rv(p, 1), scanned_reads_eca_best(p, 3), scanned_reads_eca_worst(p, 3, 3)) == scanned
    assert (indexed_reads_rv(p, 1), indexed_reads_eca_best(p, 3), indexed_reads_eca_worst(p, 3, 3)) == indexed


def test_messages() -> None:
    assert [messages_rv(10, every) for every in (1, 3, 10)] == [20, 8, 2]
    assert messages_eca(10) == 20
    assert messages_eca_key(inserts=4) == 8


def test_crossovers_against_one_recomputation() -> None:
    def reached(cost: object, once: float) -> float:
        return round(crossover(lambda k: cost(DEFAULT, k), lambda _: once), 2)  # type: ignore[operator]

    assert reached(bytes_eca_best, bytes_rv(DEFAULT, 1)) == 100
    assert reached(bytes_eca_worst, bytes_rv(DEFAULT, 1)) == 29.57
    assert reached(indexed_reads_eca_best, indexed_reads_rv(DEFAULT, 1)) == 3
    assert reached(indexed_reads_eca_worst, indexed_reads_rv(DEFAULT, 1)) == 2.70
    assert reached(scanned_reads_eca_best, scanned_reads_rv(DEFAULT, 1)) == 8.33
    assert reached(scanned_reads_eca_worst, scanned_reads_rv(DEFAULT, 1)) == 5.54
    assert reached(all_scanned_reads_eca_best, all_scanned_reads_rv(DEFAULT, 1)) == 7.75
    assert reached(all_scanned_reads_eca_worst, all_scanned_reads_rv(DEFAULT, 1)) == 5.60


def test_crossovers_against_a_recomputation_for_each_update() -> None:
    worst = {
        bytes_eca_worst: (bytes_rv(DEFAULT, 1), 1189),
        indexed_reads_eca_worst: (indexed_reads_rv(DEFAULT, 1), 31),
        scanned_reads_eca_worst: (scanned_reads_rv(DEFAULT, 1), 67),
    }
    for cost, (once, at) in worst.items():
        assert round(crossover(lambda k: cost(DEFAULT, k), lambda k: once * k), 6) == at  # noqa: B023


def test_small_relations_are_better_recomputed() -> None:
    def rv_less_eca(rows: float, eca: float) -> float:
        return DEFAULT.width * DEFAULT.selectivity * rows * DEFAULT.fanout**2 - eca

    assert rv_less_eca(3, bytes_eca_best(DEFAULT, 3)) == 0
    assert rv_less_eca(3.75, bytes_eca_worst(DEFAULT, 3, pairs=3)) == 0
