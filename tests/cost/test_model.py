"""What the fixed costs prefer; the numbers are rough, the order is not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from strandline.cost.charges import Extent, Work
from strandline.cost.model import FIXED, handicapped
from strandline.define.storing import CLEARLY

MANY_GROUPS = Work(delta_rows=60_000, terms=1, inputs=Extent(6_000_000), table=Extent(1_500_000), partials=4)
FEW_GROUPS = replace(MANY_GROUPS, table=Extent(7), install="overwrite")


def test_a_large_table_absorbs_a_summary_delta_at_less_than_explicit_changes_cost() -> None:
    assert FIXED.absorbed(MANY_GROUPS) < FIXED.incremental(MANY_GROUPS) < FIXED.full(MANY_GROUPS)


def test_a_small_table_is_overwritten_rather_than_merged() -> None:
    assert FIXED.incremental(FEW_GROUPS) < FIXED.absorbed(FEW_GROUPS) < FIXED.full(FEW_GROUPS)


def test_recomputing_must_save_a_part_and_some_time() -> None:
    assert handicapped(3.5) < 4.0
    assert not handicapped(3.7) < 4.0
    assert handicapped(0.3) < 0.5
    assert not handicapped(0.42) < 0.5


@pytest.mark.parametrize("rows", [1_000, 100_000])
def test_over_little_data_either_way_is_nearly_all_fixed_costs(rows: int) -> None:
    """So whoever plans does not ask; asked, recomputing saves the terms, however small the tables are."""
    work = Work(rows // 1_000, 9, Extent(rows), Extent(rows), Extent(rows), install="overwrite")
    assert handicapped(FIXED.full(work)) < FIXED.incremental(work)
    without_rows = Work(0, 9, Extent(), Extent(), install="overwrite")
    assert FIXED.incremental(without_rows) > 0.8 * FIXED.incremental(work)


def test_a_small_join_is_recomputed_if_all_its_tables_changed_but_not_if_one_did() -> None:
    """The join of lines, orders, customers and suppliers of TPC-H's query 5, at scale factor 0.1."""
    rows = 766_000
    one = Work(600, 1, Extent(rows), Extent(5), Extent(166_000), partials=2, install="overwrite")
    every = replace(one, terms=4, looked_up=Extent(3 * rows))
    assert not handicapped(FIXED.full(one)) < FIXED.incremental(one)
    assert handicapped(FIXED.full(every)) < FIXED.incremental(every)


@pytest.mark.parametrize("rows", [1_000_000, 100_000_000])
@pytest.mark.parametrize("copies", [1, 2, 3])
def test_two_or_three_copies_are_stored_as_rows(rows: int, copies: int) -> None:
    assert FIXED.as_counts(rows, rows // copies) >= CLEARLY * FIXED.as_rows(rows)


def test_many_copies_of_many_rows_are_counted() -> None:
    assert FIXED.as_counts(100_000_000, 1_000_000) < CLEARLY * FIXED.as_rows(100_000_000)
