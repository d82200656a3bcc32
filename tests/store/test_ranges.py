"""Ranges of values that are told by the ends of files."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.algebra.near import Ranges
from strandline.algebra.schema import Column
from strandline.sql.names import literal
from strandline.sql.render import scalar_sql
from strandline.store.ranges import MOST, ranges_between

NUMBER, TEXT, DAY = Column("k", "bigint"), Column("s", "string"), Column("d", "date")


def between(column: Column, *ends: tuple[Any, Any], nulls: bool = False) -> Ranges:
    found = ranges_between(column, ends, nulls=nulls)
    assert found is not None
    return found


def test_pairs_that_overlap_become_one() -> None:
    assert between(NUMBER, (1, 4), (3, 9), (20, 30)).values == ((1, 9), (20, 30))
    assert between(NUMBER, (1, 4), (4, 9)).values == ((1, 9),)
    assert between(NUMBER, (1, 100), (3, 9), (20, 30)).values == ((1, 100),)


def test_they_may_come_in_any_order() -> None:
    assert between(NUMBER, (20, 30), (3, 9), (1, 4), (30, 31)).values == ((1, 9), (20, 31))


def test_numbers_are_compared_as_numbers() -> None:
    assert between(NUMBER, (9, 9), (10, 11), (-5, -1)).values == ((-5, -1), (9, 9), (10, 11))


def test_of_many_only_the_ends_are_told() -> None:
    pairs = [(10 * number, 10 * number + 1) for number in range(MOST + 1)]
    assert len(between(NUMBER, *pairs[:MOST]).pairs) == MOST
    assert between(NUMBER, *pairs).values == ((0, 10 * MOST + 1),)


@pytest.mark.parametrize("type", ["double", "timestamp", "decimal(10,2)", "boolean", "binary"])
def test_what_has_no_literals_has_no_ranges(type: str) -> None:
    assert ranges_between(Column("c", type), [(1, 2)], nulls=False) is None


def test_without_ends_there_are_none() -> None:
    assert ranges_between(NUMBER, [], nulls=True) is None


@pytest.mark.parametrize("nulls", [False, True])
def test_they_say_whether_a_null_is_among_the_values(nulls: bool) -> None:
    assert between(NUMBER, (1, 2), nulls=nulls).nulls == nulls


def test_days_are_texts_in_values_and_days_in_sql() -> None:
    found = between(DAY, (date(2026, 1, 5), date(2026, 2, 1)), (date(2025, 12, 1), date(2026, 1, 5)))
    assert (found.type, found.values) == ("date", (("2025-12-01", "2026-02-01"),))
    condition = scalar_sql(found.condition("d"), {"d": "d"})
    assert condition == "(d >= (DATE '2025-12-01')) AND (d <= (DATE '2026-02-01'))"


def test_texts_may_hold_anything() -> None:
    low, high = "it's ${env:HOME}", "zz\\"
    found = between(TEXT, (low, high))
    assert found.values == ((low, high),)
    condition = scalar_sql(found.condition("s"), {"s": "s"})
    assert condition == f"(s >= ({literal(low)})) AND (s <= ({literal(high)}))"


numbers = st.integers(-50, 50)
days = numbers.map(lambda number: date(2026, 1, 1) + timedelta(number))
texts = st.text("ab", max_size=3)


@given(st.data(), st.sampled_from([(NUMBER, numbers), (DAY, days), (TEXT, texts)]))
def test_what_lies_between_a_pair_of_ends_lies_in_the_ranges(
    data: st.DataObject, kind: tuple[Column, st.SearchStrategy[Any]]
) -> None:
    column, values = kind
    ends = data.draw(st.lists(st.tuples(values, values).map(lambda pair: (min(pair), max(pair))), min_size=1))
    found, value = between(column, *ends), data.draw(values)

    def told(end: Any) -> Any:
        return str(end) if column is DAY else end

    if any(low <= value <= high for low, high in ends):
        assert any(low <= told(value) <= high for low, high in found.values)
    assert found.values[0][0] == told(min(low for low, _ in ends))
    assert found.values[-1][1] == told(max(high for _, high in ends))
