"""Groups of sources: F_Part against the equal partition, and refresh times."""

from __future__ import annotations

import pytest

from strandline.algebra.plan import At, Output, Scan
from strandline.algebra.scalar import Col, Scalar, equality
from strandline.algebra.schema import Column
from strandline.integrate import refresh_time
from strandline.integrate.partition import (
    busy,
    by_frequency,
    connected,
    equal_partition,
    f_part,
    f_part_exact,
    refresh_of,
)
from strandline.integrate.view import View

FALLING = [40, 20, 10, 10, 8, 6, 4, 2]


def sizes(groups: tuple[tuple[object, ...], ...]) -> list[int]:
    return [len(group) for group in groups]


@pytest.mark.parametrize(
    ("frequencies", "count", "expected", "mean", "size", "equal", "sweep"),
    [
        (FALLING, 3, [1, 3, 4], 2.8, 3, 3.88, 14),
        ([100, 50, 20, 10, 10, 5, 3, 2], 4, [1, 2, 5], 1.9, 2, 2.0, 14),
        ([8, 7, 6, 5, 4, 3, 2, 1], 4, [2, 2, 4], 3.11, 2, 2.0, 14),
        ([10, 1, 1, 1, 1, 1], 3, [1, 5], 2.67, 2, 2.0, 10),
        ([5, 5, 5, 5, 5, 5, 5], 3, [3, 3, 1], 3.43, 3, 3.43, 12),
        ([5, 5, 5, 5, 5, 5], 3, [3, 3], 4.0, 2, 2.0, 10),
    ],
)
def test_f_part_as_printed(
    frequencies: list[int], count: int, expected: list[int], mean: float, size: int, equal: float, sweep: int
) -> None:
    groups = f_part(frequencies, count)
    assert sizes(groups) == expected
    assert [number for group in groups for number in group] == list(range(len(frequencies)))
    names = [f"s{number}" for number in range(len(frequencies))]
    rates = dict(zip(names, map(float, frequencies), strict=True))
    named = tuple(tuple(names[number] for number in group) for group in groups)
    assert round(refresh_of(named, rates), 2) == mean
    assert round(refresh_of(equal_partition(names, size), rates), 2) == equal
    assert refresh_time.sweep(len(names)) == sweep


def test_the_floor_makes_shares_meaningless_and_without_it_they_are_counts() -> None:
    shares = [frequency / 100 for frequency in FALLING]
    assert sizes(f_part(shares, 3)) == [1] * 8
    assert sizes(f_part_exact(shares, 3)) == [1, 3, 4]


def test_closing_a_group_at_its_share_repairs_ties() -> None:
    assert sizes(f_part_exact([5, 5, 5, 5, 5, 5], 3)) == [2, 2, 2]


def chain(*homes: str, joins: tuple[tuple[int, int], ...] | None = None) -> View:
    """Relations in a chain, or joined by *joins*, at *homes*."""
    fields = (Column("a", "bigint"), Column("b", "bigint"))
    scans = tuple(Scan(At(f"r{place}"), f"r{place}", fields) for place in range(len(homes)))
    pairs = joins if joins is not None else tuple((place, place + 1) for place in range(len(homes) - 1))
    conditions: tuple[Scalar, ...] = tuple(equality(f"r{left}.b", f"r{right}.a") for left, right in pairs)
    return View(scans, conditions, (Output(Column("a", "bigint"), Col("r0.a")),), homes)


def test_a_partition_is_connected_if_its_groups_join() -> None:
    view = chain("s0", "s1", "s2", "s3")
    assert connected(view, (("s0", "s1"), ("s2", "s3")))
    assert not connected(view, (("s0", "s2"), ("s1", "s3")))


def test_frequencies_decide_where_the_groups_join() -> None:
    rates = dict(zip([f"s{n}" for n in range(8)], map(float, FALLING), strict=True))
    assert by_frequency(chain(*rates), rates, 3) == (("s0",), ("s1", "s2", "s3"), ("s4", "s5", "s6", "s7"))


def test_the_equal_partition_is_taken_where_it_is_better_or_alone_connected() -> None:
    falling = dict(zip([f"s{n}" for n in range(8)], map(float, [8, 7, 6, 5, 4, 3, 2, 1]), strict=True))
    assert sizes(by_frequency(chain(*falling), falling, 4)) == [2, 2, 2, 2]
    scattered = {"s0": 1.0, "s1": 9.0, "s2": 1.0, "s3": 9.0}
    assert by_frequency(chain(*scattered), scattered, 2) == (("s0", "s1"), ("s2", "s3"))


def test_sources_that_are_never_updated_count_alike() -> None:
    never = dict.fromkeys(("s0", "s1", "s2", "s3"), 0.0)
    assert by_frequency(chain(*never), never, 2) == (("s0", "s1"), ("s2", "s3"))
    assert refresh_of((("s0", "s1", "s2"), ("s3",)), never) == 3


def test_busy_groups_have_their_share_of_the_updates() -> None:
    rates = {"s0": 6.0, "s1": 1.0, "s2": 1.0, "s3": 4.0}
    assert busy((("s0",), ("s1", "s2"), ("s3",)), rates) == (0, 2)
    assert busy((("s0",), ("s1",)), {"s0": 1.0, "s1": 1.0}) == (0, 1)


def test_f_part_never_gives_more_groups_than_were_asked_for() -> None:
    for count in range(1, 9):
        assert len(f_part(FALLING, count)) <= count
        assert len(f_part_exact(FALLING, count)) <= count


# Refresh times, in one-way message times.

TIMES = """
2 2 2 - - 2 2 2 2
3 4 2 4 - 4 4 6 8
4 6 2 4 6 6 8 18 32
5 8 2 4 6 8 16 54 128
6 10 2 4 6 10 32 162 512
8 14 2 4 6 14 128 1458 8192
10 18 2 4 6 18 512 13122 131072
12 22 2 4 6 22 2048 118098 2097152
"""


@pytest.mark.parametrize("line", TIMES.strip().splitlines())
def test_refresh_times(line: str) -> None:
    relations, sweep, *rest = line.split()
    n = int(relations)
    assert refresh_time.sweep(n) == int(sweep)
    assert refresh_time.grouped(1) == 0
    for size, expected in zip((2, 3, 4), rest[:3], strict=True):
        if expected != "-":
            assert refresh_time.grouped(size) == int(expected)
    assert [refresh_time.c_strobe(n, mu) for mu in (1, 2, 3, 4)] == [int(each) for each in rest[3:]]


@pytest.mark.parametrize(
    ("relations", "size", "expected"),
    [(3, 2, (2, 1)), (4, 3, (3, 1)), (5, 3, (3, 2)), (6, 2, (2, 2, 2)), (8, 3, (3, 3, 2)), (12, 4, (4, 4, 4))],
)
def test_sizes_of_groups(relations: int, size: int, expected: tuple[int, ...]) -> None:
    assert refresh_time.group_sizes(relations, size) == expected
    assert sizes(equal_partition([str(n) for n in range(relations)], size)) == list(expected)


def test_refresh_time_is_the_sum_over_the_queries() -> None:
    visits = [refresh_time.QueryTime(1.0, 1.0)] * refresh_time.sweep_queries(4)
    assert refresh_time.refresh(visits) == refresh_time.sweep(4)
    assert refresh_time.refresh([refresh_time.QueryTime(1.0, 2.0, 3.0, 4.0)]) == 10


def test_parallel_groups_gain_where_updates_fall_into_different_ones() -> None:
    assert refresh_time.parallel_in_one_group(3, 4, t=2.0) == 3 * refresh_time.grouped(4, t=2.0) == 36
    assert refresh_time.parallel_in_many_groups(4, t=2.0) == 12
    assert refresh_time.grouped(4, t=2.0, local=0.5) == 12.5
