"""Comparisons that Spark binds otherwise than the parser are known to be such."""

from __future__ import annotations

import pytest
import sqlglot

from strandline.sql.precedence import bound_otherwise


@pytest.mark.parametrize(
    "text",
    [
        "a = b < c",
        "a <> b = c < d",
        "a = b IN (1)",
        "a < b BETWEEN 1 AND 2",
        "a LIKE 'x' = b",
        "a = NOT b",
        "a = b LIKE 'x'",
    ],
)
def test_sides_that_may_be_others(text: str) -> None:
    assert bound_otherwise(sqlglot.parse_one(text, dialect="spark"))


@pytest.mark.parametrize(
    "text",
    ["a = b", "a = (b < c)", "a < b = c", "(a IN (1)) = b", "a = (NOT b)", "a AND b = c", "a + 1 = b - 2", "NOT a = b"],
)
def test_sides_that_are_what_they_seem(text: str) -> None:
    assert not bound_otherwise(sqlglot.parse_one(text, dialect="spark"))
