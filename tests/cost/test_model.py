"""What the fixed costs prefer; the numbers are rough, the order is not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from strandline.cost.charges import Work
from strandline.cost.model import FIXED, handicapped
from strandline.define.storing import CLEARLY

MANY_GROUPS = Work(delta_rows=60_000, terms=1, input_rows=6_000_000, table_rows=1_500_000, partials=4)
FEW_GROUPS = replace(MANY_GROUPS, table_rows=7, install="overwrite")


def test_a_large_table_absorbs_a_summary_delta_at_less_than_explicit_changes_cost() -> None:
    assert FIXED.absorbed(MANY_GROUPS) < FIXED.incremental(MANY_GROUPS) < FIXED.full(MANY_GROUPS)


def test_a_small_table_is_overwritten_rather_than_merged() -> None:
    assert FIXED.incremental(FEW_GROUPS) < FIXED.absorbed(FEW_GROUPS) < FIXED.full(FEW_GROUPS)


def test_recomputing_must_save_a_part_and_some_time() -> None:
    assert handicapped(MANY_GROUPS, 3.0) < 4.0
    assert not handicapped(MANY_GROUPS, 3.5) < 4.0
    assert not handicapped(MANY_GROUPS, 0.1) < 0.5


@pytest.mark.parametrize("rows", [1_000, 100_000])
def test_changes_of_little_data_are_applied(rows: int) -> None:
    work = Work(rows // 1_000, 9, rows, rows, looked_up_rows=rows, install="overwrite")
    assert not handicapped(work, FIXED.full(work)) < FIXED.incremental(work)


def test_a_small_join_is_recomputed_if_all_its_tables_changed_but_not_if_one_did() -> None:
    """The join of lines, orders, customers and suppliers of TPC-H's query 5, at scale factor 0.1."""
    rows = 766_000
    one = Work(600, 1, rows, 5, looked_up_rows=166_000, partials=2, install="overwrite")
    every = replace(one, terms=4, looked_up_rows=3 * rows)
    assert not handicapped(one, FIXED.full(one)) < FIXED.incremental(one)
    assert handicapped(every, FIXED.full(every)) < FIXED.incremental(every)


@pytest.mark.parametrize("rows", [1_000_000, 100_000_000])
@pytest.mark.parametrize("copies", [1, 2, 3])
def test_two_or_three_copies_are_stored_as_rows(rows: int, copies: int) -> None:
    assert FIXED.as_counts(rows, rows // copies) >= CLEARLY * FIXED.as_rows(rows)


def test_many_copies_of_many_rows_are_counted() -> None:
    assert FIXED.as_counts(100_000_000, 1_000_000) < CLEARLY * FIXED.as_rows(100_000_000)
