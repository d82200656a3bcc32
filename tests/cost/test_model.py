"""What the fixed costs prefer; the numbers are rough, the order is not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from strandline.cost.model import FIXED, Work
from strandline.define.storing import CLEARLY

MANY_GROUPS = Work(delta_rows=60_000, terms=1, input_rows=6_000_000, table_rows=1_500_000, partials=4)
FEW_GROUPS = replace(MANY_GROUPS, table_rows=7, install="overwrite")


def test_a_large_table_absorbs_a_summary_delta_at_less_than_explicit_changes_cost() -> None:
    assert FIXED.absorbed(MANY_GROUPS) < FIXED.incremental(MANY_GROUPS) < FIXED.full(MANY_GROUPS)


def test_a_small_table_is_overwritten_rather_than_merged() -> None:
    assert FIXED.incremental(FEW_GROUPS) < FIXED.absorbed(FEW_GROUPS) < FIXED.full(FEW_GROUPS)


@pytest.mark.parametrize("rows", [1_000_000, 100_000_000])
@pytest.mark.parametrize("copies", [1, 2, 3])
def test_two_or_three_copies_are_stored_as_rows(rows: int, copies: int) -> None:
    assert FIXED.as_counts(rows, rows // copies) >= CLEARLY * FIXED.as_rows(rows)


def test_many_copies_of_many_rows_are_counted() -> None:
    assert FIXED.as_counts(100_000_000, 1_000_000) < CLEARLY * FIXED.as_rows(100_000_000)
