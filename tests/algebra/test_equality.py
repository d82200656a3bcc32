from __future__ import annotations

import pytest

from strandline.algebra.equality import kept_apart


@pytest.mark.parametrize(
    ("kind", "other"),
    [
        ("string", "string"),
        ("double", "double"),
        ("bigint", "int"),
        ("int", "bigint"),
        ("int", "decimal(10,2)"),
        ("decimal(12,2)", "bigint"),
        ("decimal(28,8)", "decimal(12,2)"),
        ("int", "double"),
        ("float", "double"),
        ("date", "timestamp"),
    ],
)
def test_values_that_differ_stay_so_where_they_are_compared(kind: str, other: str) -> None:
    assert kept_apart(kind, other)


@pytest.mark.parametrize(
    ("kind", "other"),
    [
        ("string", "int"),  # '1' and '01' are equal to 1
        ("string", "date"),
        ("bigint", "double"),  # more digits than a floating number has
        ("int", "float"),
        ("decimal(12,2)", "double"),
        ("double", "float"),
        ("timestamp", "date"),
        ("decimal(38,18)", "decimal(38,0)"),  # the common type would have 56 digits
        ("timestamp_ntz", "timestamp"),  # an hour is left out in spring
        ("", "int"),
    ],
)
def test_values_that_differ_may_be_equal_to_the_same_one_of_another_type(kind: str, other: str) -> None:
    assert not kept_apart(kind, other)
